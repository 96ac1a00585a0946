"""Federations that the command line knows by name, or by the folder that they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dffl import synthetic
from dffl.federation import Federation
from dffl.plugins import plugins

if TYPE_CHECKING:
    from dffl.tables.description import Description

NAMED = ("demo", "knapsack", "portfolio", "shortest-path")


class FederationSource(NamedTuple):
    """A federation, what it is called, whether its samples are in the order of time, and how its file says to train."""

    federation: Federation
    title: str
    ordered: bool
    settings: Mapping[str, Any] = MappingProxyType({})
    notes: Sequence[str] = ()
    over_time: OrderedSource | None = None
    """The same with its test rows, where a backtest can judge by them."""


class OrderedSource(NamedTuple):
    """All rows of a federation in their order, and the keywords of `dffl.backtest` that its file gives."""

    federation: Federation
    keywords: Mapping[str, Any]
    notes: Sequence[str]


ADVISED = ("mean-cost", "local", "local-tuned", "fedavg", "finetune", "crossfit")
"""The methods that advice compares."""
DIVIDING = ("seed", "split", "period")
"""The settings that a quick advice uses too: it trains nothing."""


def for_advice(description: Description) -> tuple[dict[str, Any], list[str]]:
    """The keywords of `dffl.advise` that a file gives, and a note of what advice cannot use."""
    where = f"{description.path}: training."
    if description.method not in ADVISED:
        names = ", ".join(ADVISED)
        more = " with its options" if description.options else ""
        return dict(description.settings), [f"{where}method: advice compares {names}; {description.method}{more} is not used"]
    used = {name: value for name, value in description.options.items() if name != "folds"}
    folds = [f"{where}folds: advice has folds of its own, see --folds"] if "folds" in description.options else []
    return {**description.settings, **{f"{description.method}.{name}": value for name, value in used.items()}}, folds


def over_time_of(description: Description) -> OrderedSource | None:
    """All rows of a file with an order, where they are enough for a backtest."""
    from dffl.tables.over_time import keywords_of, notes_of, past_of, settings_of, whole
    from dffl.time.choosing import enough_past

    if description.order is None or description.twice or "privacy" in description.settings:
        return None
    federation = whole(description)
    if not enough_past(federation, {"past": past_of(description), "clock": keywords_of(description)["clock"]}):
        return None
    notes = [*description.notes, *notes_of(description, federation)]
    if description.named and description.method != "chosen":
        what = f"advice over time compares the choice among all rules; {description.method} is not used"
        notes.append(f"{description.path}: training.method: {what}")
    return OrderedSource(federation, {**settings_of(description), **keywords_of(description)}, notes)


def unused_if_quick(settings: Mapping[str, Any]) -> list[str]:
    """That a quick advice uses no settings of training, where a file gives some."""
    names = [name for name in settings if name not in DIVIDING]
    return [f"a quick answer trains nothing, and does not use {', '.join(names)} of [training]"] if names else []


def inputs_at(source: str) -> list[Path]:
    """The files that `load` reads."""
    path = Path(source)
    if source in NAMED or not path.exists():
        return []
    if path.suffix == ".toml":
        from dffl.tables.description import inputs_of

        return inputs_of(path)
    return [file for plugin in plugins("dffl.sources").usable.values() for file in plugin.load().files(path)]


def load(source: str, seed: int = 0, without: Sequence[str] = ()) -> FederationSource:
    """A name of ``NAMED``, a federation.toml, or a file or folder that another package reads, ``without`` some clients."""
    if without and source in NAMED:
        raise ValueError(f"--without leaves out zones of a panel; {source} has none")
    if source in ("demo", "knapsack"):
        rich = source == "demo"
        return FederationSource(
            synthetic.knapsack(seed, imbalanced=rich), "the demo's 20 knapsacks" if rich else "20 knapsacks", False
        )
    if source == "portfolio":
        return FederationSource(synthetic.portfolio(seed), "20 portfolios", False)
    if source == "shortest-path":
        return FederationSource(synthetic.shortest_path(seed), "20 shortest paths", False)
    path = Path(source)
    if path.suffix == ".toml":
        from dffl.tables.description import read

        description = read(path)
        how, notes = for_advice(description)
        ordered = bool(how.pop("validation_blocks", False))
        title, timed = f"{len(description.train)} clients of {path}", over_time_of(description)
        return FederationSource(description.train, title, ordered, how, [*description.notes, *notes], timed)
    brought = plugins("dffl.sources").usable
    if not path.exists() or not brought:
        more = "" if brought else "; panels of electricity markets need the package dffl-studies"
        raise ValueError(f"SOURCE must be {', '.join(NAMED)}, or a file of a federation, found {source!r}{more}")
    [first, *_] = brought.values()
    return first.load().load(path, without)
