"""Trains the method of a federation's file, and compares it with the baselines to try first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from dffl.checks import require_whole
from dffl.comparing import Start, against, fit_all
from dffl.fitting import Fit
from dffl.harm import ENOUGH_STARTS
from dffl.jsonable import jsonable
from dffl.named import listed
from dffl.randomness import start_seeds
from dffl.report.comparison import from_starts
from dffl.report.data import ReportData
from dffl.tables.cost_range import cost_range
from dffl.tables.description import Description
from dffl.tables.model import ABOUT, VERSION
from dffl.terminal import command_name
from dffl.training import Settings
from dffl.training.keywords import MethodChoice
from dffl.training.methods import METHODS
from dffl.training.methods.crossfit import LOCAL_EPOCHS
from dffl.training.trainers.tuning import checked_epochs

MORE_STARTS = "--starts 3 judges it"
"""How a user of `dffl fit` and `dffl compare` gets a harm verdict."""
MORE_RUNS = "runs with three seeds in the plan would tell"
"""How a site does, which cannot train again alone."""
THREE_RUNS = "Ask the coordinator for runs with three seeds"
TINY = 1e-9
"""A difference of relative regrets below this is rounding."""
SHOWN = 5
"""Names of clients in a line."""
BESIDE = ("mean-cost", "forecast", "ridge", "local", "local-tuned")
"""Baselines shown next to the method: the naive rows, the forecast that clients bring, and what a client does alone, trained
once and with care."""


@dataclass(frozen=True)
class GivenFit:
    """A fit of one client that was made with others, elsewhere, and the command that gives it again."""

    fit: Fit
    command: str


@dataclass(frozen=True)
class TrainedModel:
    """A fit with everything that decisions and a report need, and how it does on the test rows."""

    fit: Fit
    table: pd.DataFrame
    """One row per client and method, as `dffl.compare` has them."""
    starts: int
    description: Description
    path: Path | None = None
    more_starts: str = MORE_STARTS
    """What to do if the starts are too few for a harm verdict."""

    def show(self, console: Console) -> None:
        """Print each client's regret under each method, and what to type next."""
        for line in self.description.notes:
            console.print(line, style="yellow")
        console.print(regrets_by_client(self.table, self.fit.method))
        console.print(reading(self.table, self.fit.method, self.starts, self.more_starts))
        if self.path is not None:
            dffl, client = command_name(), next(iter(self.fit.members))
            console.print(f"\nModel: {self.path}\n\nNext, try:", soft_wrap=True)
            console.print(f"  {dffl} decide {self.path} --client {client} NEW.csv -o decisions.csv", soft_wrap=True)
            console.print(f"  {dffl} report {self.path} -o report.html", soft_wrap=True)
            console.print(f"  {dffl} advise {self.description.path}", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        about = self.fit.about[ABOUT]
        return {
            "method": self.fit.method, "model": None if self.path is None else str(self.path), "starts": self.starts,
            "clients": about["evaluation"], "notes": self.description.notes, "forecast": self.description.forecast or None,
        }  # fmt: skip


def checkpoints(path: str | PathLike[str], starts: int) -> list[Path]:
    """The files from which an interrupted training of each start resumes."""
    require_whole("starts", starts, least=1)
    return [Path(path), *(Path(f"{path}-start-{number}") for number in range(2, starts + 1))]


def train(
    description: Description,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    starts: int = 1,
    given: GivenFit | None = None,
) -> TrainedModel:
    """Fit the method of a description and its baselines on the training rows, and judge them on the test rows.

    The model of the first start is kept. With three seeds or more, harm is distinguished from noise. A ``checkpoint`` is a file
    from which an interrupted training resumes. A fit of the method that is ``given``, as a deployed site has one, is judged
    as it is, from one start.
    """
    require_whole("starts", starts, least=1)
    wanted: MethodChoice = (description.method, description.options)
    beside = [_capped(name, description) for name in baselines(description) if name != description.method]
    methods: list[MethodChoice] = [wanted, *beside] if given is None else beside
    first = int(description.settings.get("seed", 0))
    found: list[Start] = []
    first_fits: dict[str, Fit] = {}
    parts: list[Path | None] = [None] * starts if checkpoint is None else [*checkpoints(checkpoint, starts)]
    for part, seed in zip(parts, start_seeds(first, starts), strict=True):
        settings = {**description.settings, "seed": seed}
        fits = fit_all(description.train, methods, progress=progress, checkpoint=part, **settings)
        if given is not None:
            fits = {description.method: given.fit, **fits}
        first_fits = first_fits or fits
        found.append(Start.of(fits, description.test))
    kept, table = first_fits[description.method], against(found, description.test)
    command = given.command if given else f"dffl fit {description.path.name} -o MODEL --starts {starts}"
    report = report_of(description, found, first_fits, command)
    report = replace(report, again=THREE_RUNS) if given else report
    about = _about(description, kept, table, starts) | {"report": report.as_json()}
    whole = replace(kept, about=kept.about | {ABOUT: about})
    return TrainedModel(whole, table, starts, description, more_starts=MORE_RUNS if given else MORE_STARTS)


def baselines(description: Description) -> list[str]:
    """The baselines of a federation: the forecast is one where clients bring it."""
    return [name for name in BESIDE if name != "forecast" or description.train.has_forecast]


def report_of(description: Description, found: Sequence[Start], fits: Mapping[str, Fit], command: str) -> ReportData:
    """The page of what was found from several starts; ``fits`` are those of the first, ``command`` repeats it."""
    who = f"{len(description.train)} sites" if len(description.train) > 1 else description.train[0].name
    return from_starts(
        found, description.test, fits=fits, units=description.units, main=description.method, notes=description.notes,
        title=f"{who}: decisions together or alone", sample="row", command=command,
    )  # fmt: skip


def _capped(name: str, description: Description) -> MethodChoice:
    """A baseline; `local-tuned` may train as long as a client does under that one, and no longer."""
    if name != "local-tuned":
        return name
    usual = Settings.of(**description.settings)
    tuning = description.options.get("epochs", METHODS[description.method].options.get("epochs"))
    most = usual.rounds * usual.local_epochs + (max(checked_epochs(tuning)) if tuning is not None else 0)
    return name, {"epochs": tuple(sorted({min(epochs, most) for epochs in LOCAL_EPOCHS}))}


def _about(description: Description, fit: Fit, table: pd.DataFrame, starts: int) -> dict[str, Any]:
    shown = ["client", "method", "n", "n_test", "regret", "relative_regret", "verdict", "harmed"]
    shown += ["change", "change_low", "change_high"]
    rows = table[shown].astype({"harmed": object}).to_dict("records")
    rows = [{name: None if value is pd.NA else value for name, value in row.items()} for row in rows]
    ranges = {
        client.name: cost_range(fit, client, description.train[client.name], description.order is not None).as_json()
        for client in description.test
    }
    return {
        "version": VERSION,
        "encoding": description.encoding.as_json(),
        "units": dict(description.units),
        "costs": list(description.costs),
        "order": description.order,
        "starts": starts,
        "evaluation": jsonable(rows),
        "ranges": ranges,
    }


def regrets_by_client(table: pd.DataFrame, method: str) -> Table:
    """One row per client, one column per method, in % of the best possible objective."""
    out = Table(title="Relative regret on the test rows, in %; lower is better", title_justify="left")
    out.add_column("client", overflow="fold", min_width=8)
    out.add_column("test rows", justify="right")
    methods = list(dict.fromkeys(table["method"]))
    order = [*(name for name in BESIDE if name in methods), *(name for name in methods if name not in BESIDE)]
    for name in order:
        out.add_column(name, justify="right", style="bold" if name == method else "")
    for client, rows in table.groupby("client", sort=False):
        by = rows.set_index("method")["relative_regret"]
        out.add_row(str(client), str(int(rows["n_test"].iloc[0])), *(f"{100 * by[name]:.2f}" for name in order))
    finite, left_out = _by_client(table)
    if len(finite) + len(left_out) > 1 and len(finite):
        out.add_section()
        number = f"{len(finite)} of {len(finite) + len(left_out)}" if left_out else ""
        out.add_row("mean", number, *(f"{100 * finite[name].mean():.2f}" for name in order))
    return out


def _by_client(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The relative regret of each client under each method, and the clients left out, of which one is infinite.

    It is infinite where the best possible objective is zero and something is lost. A mean over all would say nothing.
    """
    by = table.pivot_table(index="client", columns="method", values="relative_regret", sort=False)
    finite = np.isfinite(by.to_numpy(np.float64)).all(axis=1)
    return by.loc[finite].clip(lower=0), by.index[~finite].tolist()  # below zero there is only rounding


def reading(table: pd.DataFrame, method: str, starts: int, more_starts: str = MORE_STARTS) -> str:
    """What the table says, in words."""
    by, left_out = _by_client(table)
    if not len(by):
        return "The best possible objective of all clients is zero: no relative regret can be given."
    tuned = by["local-tuned"] if "local-tuned" in by else by["local"]
    naive = by["mean-cost"]
    better, best, several = int((by[method] < tuned - TINY).sum()), by[method].mean(), len(by) > 1
    average, own = (" on average", "each client's") if several else ("", "the client's")
    lines = [
        f"{method} loses {100 * best:.2f} %{average}, {own} own tuned model (local-tuned) "
        f"{100 * tuned.mean():.2f} %, the mean of past costs {100 * naive.mean():.2f} %."
    ]
    if left_out:
        zero = "their best possible objective is zero, so their relative regret is infinite"
        lines.append(f"Left out of these means: {listed(left_out, SHOWN)}; {zero}.")
    lines += [f"It loses less than local-tuned for {better} of {len(by)} clients."] if several else []
    simpler = by[[name for name in BESIDE if name in by and name != method]].mean()
    if simpler.min() < best - TINY:
        name = str(simpler.idxmin())
        where = f", and for {int((by[name] < by[method] - TINY).sum())} of {len(by)} clients" if several else ""
        lines.append(
            f"Attention: {name}, which uses no other client, loses less{average} ({100 * simpler[name]:.2f} %){where}. "
            f"Do not use {method} here yet."
        )
    mine = table[table["method"] == method]
    if starts < ENOUGH_STARTS:
        few = "One training is" if starts == 1 else f"{starts} trainings are"
        lines.append(f"{few} not enough to say whether a difference is real: {more_starts}.")
    else:
        harmed = mine.loc[mine["harmed"].fillna(False).astype(bool), "client"].tolist()
        unknown = mine.loc[mine["harmed"].isna(), "client"].tolist()
        told = [", ".join(harmed)] if harmed else ["no client"] if len(unknown) < len(mine) else []
        told += [f"not judged, with fewer than two test rows: {listed(unknown, SHOWN)}"] if unknown else []
        lines.append(f"Significantly harmed, compared with local: {'; '.join(told)}.")
    if poor := int(((by[method] >= naive) & (by[method] > TINY)).sum()):
        where, whose = (f"For {poor} of {len(by)} clients the", "their") if several else ("The", "the")
        lines.append(f"{where} mean of past costs does as well or better: look at {whose} features.")
    return "\n".join(lines)
