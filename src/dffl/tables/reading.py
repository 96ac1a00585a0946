"""What `dffl fit` and `dffl compare` say of methods next to their baselines: a table, a first sentence, and a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from dffl.checks import require_whole
from dffl.comparing import Start
from dffl.fitting import Fit
from dffl.harm import ENOUGH_STARTS
from dffl.jsonable import jsonable
from dffl.judging import left_out_words
from dffl.named import listed
from dffl.report.comparison import from_starts
from dffl.report.data import ReportData
from dffl.serial import too_alike
from dffl.tables.description import Description
from dffl.tables.model import VERSION
from dffl.tables.money import ROW, units_of_sums
from dffl.tables.winner import BESIDE, TINY, TRAINED_ONCE, finite_regrets, instead_of, winner
from dffl.terminal import command_name
from dffl.time.chosen import Chosen
from dffl.time.outcome import Backtest
from dffl.time.timeline import DAY
from dffl.time.words import keep_or_use
from dffl.training import Settings
from dffl.training.keywords import MethodChoice
from dffl.training.methods import METHODS
from dffl.training.methods.crossfit import LOCAL_EPOCHS
from dffl.training.trainers.tuning import checked_epochs

MORE_STARTS = "--starts 3 judges it"
"""How a user of `dffl fit` and `dffl compare` gets a harm verdict."""
THREE_RUNS = "Ask the coordinator for runs with three seeds"
"""The same for a site."""
SHOWN = 5
"""The most names of clients in a line."""
BY_CHANCE = 0.025
"""The share of clients that seem to be harmed where there is no difference, at most."""
ALL_ZERO = "The best possible objective of all clients is zero: no relative regret can be given."


def trained_baselines(description: Description) -> list[str]:
    """The baselines that are fitted once. If clients have a forecast, it is one of them."""
    return [name for name in TRAINED_ONCE if name != "forecast" or description.train.has_forecast]


def report_of(
    description: Description, runs: Sequence[Start], fits: Mapping[str, Fit], command: str,
    choices: Backtest | None = None, rules: Mapping[str, str] | None = None,
) -> ReportData:  # fmt: skip
    """The page for the results of several seeds.

    - ``fits``: the fits of the first seed.
    - ``command``: repeats the training.
    - ``choices``: the backtest of the choice over time.
    - ``rules``: the rule that each client uses from now on.
    """
    who = f"{len(description.train)} sites" if len(description.train) > 1 else description.train[0].name
    return from_starts(
        runs, description.test, fits=fits, units=units_of_sums(description.units), main=description.method,
        notes=description.notes, title=f"{who}: decisions together or alone", sample=sample_of(description), command=command,
        dates=description.dates, choices=choices, rules=rules,
    )  # fmt: skip


def sample_of(description: Description) -> str:
    """The name of a row: as in the file, or a day if rows are one day apart."""
    if description.per is not None:
        return description.per
    times = description.test[0].times
    gap = 0.0 if times is None or len(times) < 2 or not description.dates else float(np.median(np.diff(np.unique(times))))
    return "day" if gap == DAY else ROW


def capped(name: str, description: Description) -> MethodChoice:
    """The baselines of a method. `local-tuned` may train as long as a client does with this method, and no longer."""
    if name != "local-tuned":
        return name
    usual = Settings.of(**description.settings)
    tuning = description.options.get("epochs", _options(description.method).get("epochs"))
    most = usual.rounds * usual.local_epochs + (max(checked_epochs(tuning)) if tuning is not None else 0)
    return name, {"epochs": tuple(sorted({min(epochs, most) for epochs in LOCAL_EPOCHS}))}


def _options(method: str) -> Mapping[str, Any]:
    """The options of a method; the choice among methods has none."""
    return METHODS[method].options if method in METHODS else {}


def checkpoints(path: str | PathLike[str], starts: int) -> list[Path]:
    """For each seed, the file from which an interrupted training resumes."""
    require_whole("starts", starts, least=1)
    return [Path(path), *(Path(f"{path}-start-{number}") for number in range(2, starts + 1))]


def backtest_of(part: Path) -> Path:
    """The file from which an interrupted backtest of a seed resumes, next to that of its training."""
    return part.with_name(f"{part.name}-backtest")


def words_of(choice: Mapping[str, Any]) -> str:
    """What was chosen without an order, and why."""
    if not np.isfinite(choice["means"][0][1]):
        return f"{keep_or_use(choice['rule'])}: it loses least on training rows that it had not seen. {ALL_ZERO}"
    if len(choice["means"]) > 1 and choice["means"][-1][1] - choice["means"][0][1] <= TINY:
        lost = f"all methods lose the same on training rows that they had not seen ({100 * choice['means'][0][1]:.2f} %)"
        return f"{keep_or_use(choice['rule'])}: {lost}."
    others = ", ".join(f"{name} {100 * value:.2f} %" for name, value in choice["means"][1:])
    best = f"{100 * choice['means'][0][1]:.2f} %"
    return f"{keep_or_use(choice['rule'])}: it loses least on training rows that it had not seen ({best}; {others})."


def evaluation(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table of `dffl.compare` that are saved with a model."""
    shown = ["client", "method", "n", "n_test", "regret", "relative_regret", "verdict", "harmed"]
    shown += ["change", "change_low", "change_high"]
    rows = table[shown].astype({"harmed": object}).to_dict("records")
    plain = [{str(name): None if value is pd.NA else value for name, value in row.items()} for row in rows]
    return list(jsonable(plain))


def about_of(
    description: Description, fit: Fit | Chosen, table: pd.DataFrame, starts: int, report: ReportData, ranges: Mapping[str, Any]
) -> dict[str, Any]:
    """What a model of a user's data saves in addition to its predictors, as plain values."""
    return {
        "version": VERSION,
        "encoding": description.encoding.as_json(),
        "units": dict(description.units),
        "per": description.per,
        "instead": instead_of(fit, table),
        "costs": list(description.costs),
        "order": description.order,
        "starts": starts,
        "evaluation": evaluation(table),
        "ranges": dict(ranges),
        "report": report.as_json(),
    }


def next_steps(console: Console, path: Path, client: str, description: Description) -> None:
    """The next command to type."""
    dffl = command_name()
    console.print(f"\nModel: {path}\n\nNext, try:", soft_wrap=True)
    console.print(f"  {dffl} decide {path} --client {client} NEW.csv -o decisions.csv", soft_wrap=True)
    console.print(f"  {dffl} report {path} -o report.html", soft_wrap=True)
    console.print(f"  {dffl} advise {description.path}", soft_wrap=True)


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
    finite, left_out = finite_regrets(table)
    if len(finite) + len(left_out) > 1 and len(finite):
        out.add_section()
        number = f"{len(finite)} of {len(finite) + len(left_out)}" if left_out else ""
        out.add_row("mean", number, *(f"{100 * finite[name].mean():.2f}" for name in order))
    return out


def reading(table: pd.DataFrame, method: str, starts: int, more_starts: str = MORE_STARTS, first: str | None = None) -> str:
    """The results of the table in words. The ``first`` sentence names the best method of the table, unless another is given."""
    by, left_out = finite_regrets(table)
    if not len(by):
        return " ".join([*([first] if first else []), *([] if first and ALL_ZERO in first else [ALL_ZERO])])
    tuned = by["local-tuned"] if "local-tuned" in by else by["local"]
    naive = by["mean-cost"]
    better, best, several = int((by[method] < tuned - TINY).sum()), by[method].mean(), len(by) > 1
    average, own_words = (" on average", "each client's") if several else ("", "the client's")
    lines = [
        first or winner(by, method, average),
        f"{method} loses {100 * best:.2f} %{average}, {own_words} own tuned model (local-tuned) "
        f"{100 * tuned.mean():.2f} %, the mean of past costs {100 * naive.mean():.2f} %.",
    ]
    lines += [left_out_words(left_out)] if left_out else []
    lines += [f"It loses less than local-tuned for {better} of {len(by)} clients."] if several else []
    lines.append(harm_verdict(table, method, starts, more_starts))
    if poor := int(((by[method] >= naive) & (by[method] > TINY)).sum()):
        where, whose = (f"For {poor} of {len(by)} clients the", "their") if several else ("The", "the")
        lines.append(f"{where} mean of past costs does as well or better: look at {whose} features.")
    return "\n".join(lines)


def harm_verdict(table: pd.DataFrame, method: str, starts: int, more_starts: str = MORE_STARTS) -> str:
    """The clients that a method harms compared with their local models, or that there are too few seeds for a verdict."""
    mine = table[table["method"] == method]
    if starts < ENOUGH_STARTS:
        few = "One training is" if starts == 1 else f"{starts} trainings are"
        return f"{few} not enough to say whether a difference is real: {more_starts}."
    harmed = mine.loc[mine["harmed"].fillna(False).astype(bool), "client"].tolist()
    unknown = mine[mine["harmed"].isna()]
    told = [", ".join(harmed)] if harmed else ["no client"] if len(unknown) < len(mine) else []
    expected = BY_CHANCE * (len(mine) - len(unknown))
    if 0 < len(harmed) <= 2 * expected:
        told.append(f"by chance alone, up to {expected:.2g} of {len(mine) - len(unknown)} may seem to be")
    if len(unknown):
        few = unknown["independent"].max()
        why = f"as {too_alike(few)}" if few > 1 else "with fewer than two test rows"
        told.append(f"not judged, {why}: {listed(unknown['client'].tolist(), SHOWN)}")
    return f"Significantly harmed, compared with local: {'; '.join(told)}."
