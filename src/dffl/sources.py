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
    """``demo``, ``knapsack``, ``portfolio``, or a panel of electricity zones: a file, or a folder with prices and weather."""
    if source in ("demo", "knapsack"):
        rich = source == "demo"
        return Source(synthetic.knapsack(seed, imbalanced=rich), "the demo's 20 knapsacks" if rich else "20 knapsacks", False)
    if source == "portfolio":
        return Source(synthetic.portfolio(seed), "20 portfolios", False)
    path = Path(source)
    if not path.exists():
        raise ValueError(f"SOURCE must be demo, knapsack, portfolio, or a market's panel (see dffl energy), found {source!r}")
    from dffl.data import energy

    federation = energy.federation(energy.open_panel(path))
    return Source(federation, f"{len(federation)} zones of {path}", True)
