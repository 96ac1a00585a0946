"""Distances between sets, diameters, and the proofs behind them: one file per family that has proofs of its own."""
