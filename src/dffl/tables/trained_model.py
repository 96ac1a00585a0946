"""Trains the method of a federation's file, and compares it with the usual baselines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.checks import require_whole
from dffl.choosing import fit_best
from dffl.comparing import Start, against, fit_all
from dffl.fitting import Fit
from dffl.models import OWN_DATA
from dffl.randomness import start_seeds
from dffl.tables.chosen import ChosenModel, train_over_time
from dffl.tables.cost_range import cost_range
from dffl.tables.description import Description
from dffl.tables.over_time import method_of, naive_over_time, with_rules
from dffl.tables.reading import (
    MORE_STARTS,
    THREE_RUNS,
    about_of,
    capped,
    checkpoints,
    next_steps,
    reading,
    regrets_by_client,
    report_of,
    trained_baselines,
    words_of,
)
from dffl.time.outcome import CHOSEN
from dffl.training.keywords import MethodChoice

MORE_RUNS = "runs with three seeds in the plan would tell"
"""How a site gets a harm verdict, although it cannot train again alone."""


@dataclass(frozen=True)
class GivenFit:
    """A fit of one client that was made elsewhere, together with other sites, and the command that repeats it."""

    fit: Fit
    command: str


@dataclass(frozen=True)
class TrainedModel:
    """A fit with all that decisions and a report need, and its results on the test rows."""

    fit: Fit
    table: pd.DataFrame
    """One row per client and method, as `dffl.compare` has them."""
    starts: int
    description: Description
    path: Path | None = None
    more_starts: str = MORE_STARTS
    """What to do if there are too few seeds for a harm verdict."""

    def show(self, console: Console) -> None:
        """Print each client's regret under each method, and what to type next."""
        method = self.description.method
        first = words_of(self.fit.about[CHOSEN]) if CHOSEN in self.fit.about else None
        console.print(reading(self.table, method, self.starts, self.more_starts, first))
        console.print(regrets_by_client(self.table, method))
        for line in self.description.notes:
            console.print(line, style="yellow")
        if self.path is not None:
            next_steps(console, self.path, next(iter(self.fit.members)), self.description)

    def as_json(self) -> dict[str, Any]:
        about = self.fit.about[OWN_DATA]
        return {
            "method": self.description.method, "model": None if self.path is None else str(self.path), "starts": self.starts,
            "clients": about["evaluation"], "notes": self.description.notes, "forecast": self.description.forecast or None,
        } | ({CHOSEN: self.fit.about[CHOSEN]} if CHOSEN in self.fit.about else {})  # fmt: skip


def train_file(
    description: Description, progress: bool | None = None, checkpoint: str | PathLike[str] | None = None, starts: int = 1
) -> TrainedModel | ChosenModel:
    """Fit the method that a file names, or the default, and compare it with its baselines."""
    require_whole("starts", starts, least=1)
    method, notes = method_of(description)
    description = replace(description, method=method, notes=[*notes, *description.notes])
    if method == CHOSEN and description.order is not None:
        return train_over_time(description, progress, checkpoint, starts)
    return train(description, progress, checkpoint, starts)


def train(
    description: Description,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    starts: int = 1,
    fitted: GivenFit | None = None,
) -> TrainedModel:
    """Fit the method of a description and its baselines on the training rows, and judge them on the test rows.

    - The model is that of the first seed. With three seeds or more there is a harm verdict.
    - ``checkpoint``: a file from which an interrupted training resumes.
    - ``given``: a fit that exists already, as at a deployed site; it is judged as it is, with one seed.
    """
    require_whole("starts", starts, least=1)
    wanted: MethodChoice = (description.method, description.options)
    beside = [capped(name, description) for name in trained_baselines(description) if name != description.method]
    over_time = naive_over_time(description) if description.order is not None else {}
    methods: list[MethodChoice] = [wanted, *beside] if fitted is None and description.method != CHOSEN else beside
    first = int(description.settings.get("seed", 0))
    runs: list[Start] = []
    first_fits: dict[str, Fit] = {}
    parts: list[Path | None] = [None] * starts if checkpoint is None else [*checkpoints(checkpoint, starts)]
    for part, seed in zip(parts, start_seeds(first, starts), strict=True):
        settings = {**description.settings, "seed": seed}
        fits = fit_all(description.train, methods, progress=progress, checkpoint=part, **settings)
        if fitted is not None:
            fits = {description.method: fitted.fit, **fits}
        elif description.method == CHOSEN:
            fits = {CHOSEN: fit_best(description.train, progress=progress, **settings), **fits}
        first_fits = first_fits or fits
        runs.append(with_rules(Start.of(fits, description.test), over_time, description.train, description.test))
    fit, table = first_fits[description.method], against(runs, description.test)
    command = fitted.command if fitted else f"dffl fit {description.path.name} -o MODEL --starts {starts}"
    report = report_of(description, runs, first_fits, command)
    report = replace(report, again=THREE_RUNS) if fitted else report
    ranges = {
        client.name: cost_range(fit, client, description.train[client.name], description.order is not None).as_json()
        for client in description.test
    }
    about = about_of(description, fit, table, starts, report, ranges)
    with_data = replace(fit, about=fit.about | {OWN_DATA: about})
    return TrainedModel(with_data, table, starts, description, more_starts=MORE_RUNS if fitted else MORE_STARTS)
