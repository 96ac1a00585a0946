"""The energy study as a page: each zone's regret under each method and naive rule, from the rows of the study."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dffl.fitting import Fit
from dffl.harm import HARM_TOLERANCE, interval
from dffl.report.comparison import plain
from dffl.report.curves import curves
from dffl.report.data import Change, Client, Method, ReportData, Result
from dffl.report.repeat import settings_in_words, versions
from dffl.report.styles import known
from dffl.terminal import typed
from dffl.training import Settings
from dffl.training.methods import requests
from dffl_studies.energy.data import HOURS, Panel
from dffl_studies.energy.harm import Change as Excess
from dffl_studies.energy.harm import excesses
from dffl_studies.energy.model import METHOD
from dffl_studies.energy.naive import FORESIGHT, RULES
from dffl_studies.energy.setup import Setup
from dffl_studies.energy.summary import REFERENCES
from dffl_studies.energy.tables import RULE_LABELS
from dffl_studies.energy.weeks import week_names

UNIT = "US$ for each MW"
CHOSEN = ("lambda", "epochs")


def report_data(rows: pd.DataFrame, panel: Panel, setup: Setup, first_test: str, fit: Fit | None = None) -> ReportData:
    """The report of a study's rows; ``fit``, the model of the training days, gives the training curves."""
    there = set(rows["method"])
    methods = [_rule(name) for name in RULES if name in there and name != FORESIGHT]
    methods += [known(name) for name in setup.methods if name in there]
    references = [name for name in REFERENCES if name in there]
    _, settings = requests(setup.methods, setup.training(int(rows["seed"].min())))
    seeds = sorted(int(seed) for seed in rows["seed"].unique())
    return ReportData(
        title=f"Electricity: {rows['zone'].nunique()} zones that buy the cheapest hours",
        main=METHOD,
        methods=tuple(methods),
        clients=tuple(_client(str(zone), part) for zone, part in rows.groupby("zone", sort=False)),
        results=tuple(_results(rows, [one.name for one in methods], references)),
        references=tuple(references),
        starts=len(seeds),
        tolerance=HARM_TOLERANCE,
        sample="day",
        notes=(
            f"{panel.days[0]} to {np.datetime64(first_test, 'D') - 1} train, {first_test} to {panel.days[-1]} test. Intervals "
            "are over the weeks of the test days and over the seeds: days that follow each other are alike.",
            *panel.notes,
        ),
        curves=() if fit is None else curves({fit.method: fit}),
        settings=settings_in_words(replace(Settings.of(**settings), forecast=setup.lags).at(HOURS))
        | {"seed": ", ".join(map(str, seeds))},
        versions=versions(),
        command=typed(),
        made=date.today().isoformat(),
    )


def _rule(name: str) -> Method:
    """A naive rule of past prices; all have one colour, and a marker of their own."""
    words = RULE_LABELS[name]
    return Method(name, "naive", words[0].lower() + words[1:], known("mean-cost").colour)


def _client(zone: str, rows: pd.DataFrame) -> Client:
    first = rows.iloc[0]
    decides = f"buy {float(first['demand']):g} of {HOURS} hours"
    return Client(zone, int(first["n"]), int(first["n_test"]), "minimises", decides, UNIT)


def _results(rows: pd.DataFrame, methods: list[str], references: list[str]) -> list[Result]:
    compared: dict[str, dict[tuple[Any, Any], Any]] = {
        against: {(one["zone"], one["method"]): one for one in excesses(rows, against).to_dict("records")}
        for against in references
    }
    weeks, made = week_names(rows), []
    for (zone, method), part in rows.groupby(["zone", "method"], sort=False):
        if method not in methods:
            continue
        best = abs(float(part["best"].mean()))
        # The columns of the weeks add up to the mean regret: multiplied by their number they are what a day of each loses.
        _, low, high = interval(part[weeks].to_numpy(float) * len(weeks))
        ends = (None, None) if not np.isfinite(high) else (_share(max(low, 0.0), best), _share(high, best))
        chosen = {name: value for name in CHOSEN if name in part and (value := plain(part[name].mean())) is not None}
        changes = tuple(
            _change(against, found.get((zone, method)), best, method == against) for against, found in compared.items()
        )
        mean = float(part["regret"].mean())
        made.append(Result(str(zone), str(method), _share(mean, best), *ends, mean, chosen, changes))
    return made


def _change(against: str, found: Any, best: float, itself: bool) -> Change:
    """A change of the study, in percent of the reference's regret, as a share of the best possible cost."""
    if itself:
        return Change(against, 0.0, 0.0, 0.0, "reference", False)
    if found is None:  # the reference loses nothing: there is no percentage, and the study does not judge it
        return Change(against, None, None, None, "not judged", None)
    scale = float(found["reference"]) / 100
    value, low, high = (_share(scale * float(found[name]), best) for name in Excess._fields)
    if low is None or high is None:
        return Change(against, value, None, None, "not judged", None, bool(found["over"]))
    verdict = "better" if high < 0 else "worse" if low > 0 else "unclear"
    return Change(against, value, low, high, verdict, bool(found["harmed"] == 1), bool(found["over"]))


def _share(value: float, best: float) -> float | None:
    return plain(value / best) if best > 0 else None
