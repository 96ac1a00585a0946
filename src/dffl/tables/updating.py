"""`dffl update`: a model trained again with the grown tables of its federation, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from dffl.cells import shown_moment
from dffl.tables.chosen import ChosenModel
from dffl.tables.description import Description
from dffl.tables.model import OwnModel
from dffl.tables.trained_model import TrainedModel
from dffl.terminal import printable
from dffl.time.chosen import Chosen
from dffl.time.words import rule_in_words


@dataclass(frozen=True)
class ModelUpdate:
    """The changes of an update at each client."""

    changes: Mapping[str, Mapping[str, Any]]
    """For each client: the number of rows and the rule, before and after."""
    words: str
    """The messages of the new model."""
    path: Path

    @classmethod
    def of(cls, old: OwnModel, trained: TrainedModel | ChosenModel, rows: Mapping[str, Any], path: Path) -> ModelUpdate:
        """Compare a model with the one that replaces it."""
        before, after = rules_of(old.fit), rules_of(trained.fit)
        changes = {
            name: {"rows": list(count), "rule": [before[name], after[name]]} for name, count in rows.items()
        }  # fmt: skip
        words = trained.as_json()["chosen"]["words"] if isinstance(trained, ChosenModel) else ""
        return cls(changes, words, path)

    def show(self, console: Console) -> None:
        """Print the changes, the messages of the new model, and its file."""
        for name, change in self.changes.items():
            (had, has), (before, after) = change["rows"], change["rule"]
            line = f"still decides by {rule_in_words(after)}"
            rule = line if before == after else f"decided by {rule_in_words(before)}, now by {rule_in_words(after)}"
            console.print(printable(f"{name}: {has - had} more rows ({has} in all); {rule}."), soft_wrap=True)
        if self.words:
            console.print(printable(self.words), soft_wrap=True)
        console.print(f"wrote {self.path}: a new model; what `dffl score` keeps begins anew with it", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        return {
            "model": str(self.path),
            "clients": {name: dict(change) for name, change in self.changes.items()},
            "words": self.words,
        }


def rules_of(fit: Any) -> dict[str, str]:
    """The rule by which each client decides. A model that was fitted once has one rule for all."""
    return dict(fit.rules) if isinstance(fit, Chosen) else dict.fromkeys(fit.members, fit.method)


def require_grown(old: OwnModel, description: Description) -> dict[str, tuple[int, int]]:
    """The rows of each client, before and now. Another federation than the model's, or one that has not grown, is refused."""
    where, about = description.path, old.about
    had = {row["client"]: int(row["n"]) + int(row["n_test"]) for row in about["evaluation"]}
    now = {train.name: train.n + description.test[train.name].n for train in description.train}
    if set(had) != set(now):
        name = sorted(set(had) ^ set(now))[0]
        what = f"client {name!r} is {'missing' if name in had else 'new'}"
        raise ValueError(f"{where}: {what}; an update has the clients of its model; for others type dffl fit")
    if tuple(about["costs"]) != description.costs:
        name = sorted(set(about["costs"]) ^ set(description.costs))[:1] or [description.costs[0]]
        raise ValueError(
            f"{where}: costs are not those of the model ({name[0]!r}); an update keeps them; for others type dffl fit"
        )
    if about["order"] != description.order:
        what = f"order is {description.order!r}, and that of the model {about['order']!r}"
        raise ValueError(f"{where}: {what}; an update keeps it; for another type dffl fit")
    for name, count in now.items():
        units = [about["units"].get(name), description.units.get(name)]
        if units[0] != units[1]:
            what = f"the unit of its costs is {units[1]!r}, and that of the model {units[0]!r}"
            raise ValueError(f"{where}: client {name!r}: {what}; bring the costs to one unit, or type dffl fit")
        if count < had[name]:
            what = f"it has {count} rows, and the model was made of {had[name]}"
            raise ValueError(f"{where}: client {name!r}: {what}; an update needs the old rows and newer ones")
        _require_newest(old, description, name)
    return {name: (had[name], count) for name, count in now.items()}


def _require_newest(old: OwnModel, description: Description, name: str) -> None:
    """Refuse a table that ends before the last row of the model."""
    if not isinstance(old.fit, Chosen):
        return
    known, test = old.fit.kept[name].times, description.test[name].times
    if known is not None and test is not None and float(np.max(test)) < known[-1]:
        ends = [shown_moment(float(moment), old.fit.dates) for moment in (np.max(test), known[-1])]
        what = f"its rows end at {ends[0]}, and those of the model at {ends[1]}"
        raise ValueError(f"{description.path}: client {name!r}: {what}; an update needs the old rows and newer ones")
