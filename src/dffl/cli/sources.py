"""Federations that the command line knows by name, or by the folder that they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dffl.data import synthetic
from dffl.federation import Federation

NAMED = ("demo", "knapsack", "portfolio", "shortest-path")


class Source(NamedTuple):
    """A federation, what it is called, whether its samples are in the order of time, and how its file says to hold them out."""

    federation: Federation
    title: str
    ordered: bool
    settings: Mapping[str, Any] = MappingProxyType({})
    notes: Sequence[str] = ()


def inputs_at(source: str) -> list[Path]:
    """The files that `load` reads."""
    path = Path(source)
    if source in NAMED or not path.exists():
        return []
    if path.suffix == ".toml":
        from dffl.data.description import inputs_of

        return inputs_of(path)
    from dffl.cases.energy.data.folder import panel_files

    return panel_files(path)


def load(source: str, seed: int = 0, without: Sequence[str] = ()) -> Source:
    """A name of ``NAMED``, or a panel of electricity zones, ``without`` some: a file, or a folder."""
    if without and source in NAMED:
        raise ValueError(f"--without leaves out zones of a panel; {source} has none")
    if source in ("demo", "knapsack"):
        rich = source == "demo"
        return Source(synthetic.knapsack(seed, imbalanced=rich), "the demo's 20 knapsacks" if rich else "20 knapsacks", False)
    if source == "portfolio":
        return Source(synthetic.portfolio(seed), "20 portfolios", False)
    if source == "shortest-path":
        return Source(synthetic.shortest_path(seed), "20 shortest paths", False)
    path = Path(source)
    if path.suffix == ".toml":
        from dffl.data.description import read

        made = read(path)
        how: dict[str, Any] = {name: value for name, value in made.settings.items() if name in ("split", "period")}
        return Source(made.train, f"{len(made.train)} clients of {path}", made.order is not None, how, made.notes)
    if not path.exists():
        known = f"{', '.join(NAMED)}, or a market's panel (see dffl energy), or a federation.toml"
        raise ValueError(f"SOURCE must be {known}, found {source!r}")
    from dffl.cases.energy import data as energy

    federation = energy.federation(energy.open_panel(path, without))
    return Source(federation, f"{len(federation)} zones of {path}", True)
