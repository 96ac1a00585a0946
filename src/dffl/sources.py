"""Federations that the command line knows by name, or by the folder that they are in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dffl.data import synthetic
from dffl.federation import Federation


class Source(NamedTuple):
    """A federation, what it is called, and whether its samples stand in the order of time."""

    federation: Federation
    title: str
    ordered: bool


def load(source: str, seed: int = 0) -> Source:
    """``demo``, ``knapsack``, ``portfolio``, or a folder with the prices and the weather of electricity zones."""
    if source in ("demo", "knapsack"):
        rich = source == "demo"
        return Source(synthetic.knapsack(seed, imbalanced=rich), "the demo's 20 knapsacks" if rich else "20 knapsacks", False)
    if source == "portfolio":
        return Source(synthetic.portfolio(seed), "20 portfolios", False)
    folder = Path(source)
    if not folder.is_dir():
        known = "demo, knapsack, portfolio or a folder with prices.csv.gz and weather.csv.gz"
        raise ValueError(f"SOURCE must be {known}, found {source!r}")
    from dffl.data import energy

    federation = energy.zones(folder)
    return Source(federation, f"{len(federation)} zones in {folder}", True)
