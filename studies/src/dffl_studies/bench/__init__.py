"""Benchmarks: what `dffl bench` measures, in one run on one machine."""
