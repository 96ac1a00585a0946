"""The study of real markets (`dffl energy study`): every day from the earliest one on is decided, so any half-year is a test.

A job is one backtest of one market. Models that are shared, models of each zone alone, and shared models of other settings are
jobs of their own, so that what one of them chooses does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.federation import Federation
from dffl.time.network import VECTOR
from dffl.time.outcome import CHOSEN, Backtest
from dffl.time.ranges import misses
from dffl.training.keywords import MethodChoice
from dffl_studies.energy.backtests import kind_of
from dffl_studies.energy.checks import PAST
from dffl_studies.energy.data.panel import Panel
from dffl_studies.energy.preset import REFIT, Preset
from dffl_studies.energy.weeks import WEEK
from dffl_studies.running.study import Job, Study

BEST, DAYS, INSIDE, RANGED = "best", "days", "inside", "ranged"
"""Rows that are no rules: the best possible costs, the number of days, costs inside their range, and costs with a range."""


class Source(NamedTuple):
    """A market: the folder of its data, the files in it that are read, and how."""

    folder: str
    files: tuple[str, ...]
    preset: Preset


ABROAD = ("forecasts_BE.csv.gz", "forecasts_FR.csv.gz")
MARKETS = {
    "zones of 2021": Source("zones", (".",), Preset(without=("NE_INTERNAL_HUB",), currency="USD")),
    "PJM 2020-21": Source("pjm", (".",), Preset(currency="USD")),
    "BE and FR": Source("epf", ABROAD, Preset(currency="EUR")),
    "BE and FR with DNN": Source("epf", ABROAD, Preset(currency="EUR", forecast="DNN Ensemble")),
    "BE and FR with LEAR": Source("epf", ABROAD, Preset(currency="EUR", forecast="LEAR Ensemble")),
}
SHARED, ALONE, TUNED, SETTINGS = "shared", "alone", "tuned", "settings"
CANDIDATES: dict[str, list[MethodChoice]] = {
    SHARED: ["fedavg", ("fedavg", {"network": VECTOR})],
    ALONE: ["local", ("local", {"network": VECTOR})],
    TUNED: ["local-tuned"],
    SETTINGS: [
        ("fedavg", {"rounds": 40}), ("fedavg", {"local_epochs": 5, "rounds": 8}), ("fedavg", {"client_fraction": 0.2}),
        ("local", {"rounds": 5}), ("local", {"rounds": 40}),
    ],
}  # fmt: skip
"""What a job trains. Settings: other numbers of rounds (T; a usual refit has 20), local epochs (E; 2), clients (C; all)."""


def study(folders: Mapping[str, Path], seeds: Sequence[int]) -> Study:
    """The markets whose folder is given; models of other settings are trained with the first seed only."""
    there = [name for name, source in MARKETS.items() if source.folder in folders]
    if not there:
        raise ValueError("there are no data: give at least one of --zones, --pjm and --epf")
    jobs = [
        Job({"market": market, "trained": trained, "seed": seed})
        for seed in seeds
        for trained in CANDIDATES
        for market in there
        if trained in (SHARED, ALONE) or (seed == seeds[0] and MARKETS[market].preset.forecast is None)
    ]
    places = {kind: str(folder.resolve()) for kind, folder in folders.items()}
    return Study("energy-half-years", judge, jobs, {"refit": REFIT}, places=places)


def judge(*, market: str, trained: str, seed: int, refit: int, **folders: str) -> pd.DataFrame:
    """One row for each zone and rule: the sum of its regrets in each week, counted from the first day that is decided."""
    import dffl

    source = MARKETS[market]
    panels = [source.preset.panel(Path(folders[source.folder]) / file) for file in source.files]
    clients = [client for panel in panels for client in source.preset.federation(panel).clients]
    first = max(panel.dates[rows][PAST] for panel in panels for rows in panel.zones.values())
    outcome = dffl.backtest(Federation(clients), CANDIDATES[trained], refit=refit, start=str(first), seed=seed, progress=False)
    return _rows(outcome, panels, first)


def _rows(outcome: Backtest, panels: Sequence[Panel], first: np.datetime64) -> pd.DataFrame:
    dates = [panel.dates[rows] for panel in panels for rows in panel.zones.values()]
    weeks = [(days[days >= first] - first).astype(int) // WEEK for days in dates]
    count = 1 + max(int(client_weeks.max()) for client_weeks in weeks)
    sums_of: list[tuple[str, str, str, np.ndarray]] = []
    for place, (client, client_weeks) in enumerate(zip(outcome.clients, weeks, strict=True)):
        rows, spans = outcome.reported(place), outcome.spans[place]
        ranged = np.isfinite(spans.ends).all(axis=1)
        below, above = misses(spans.cost, spans.ends)
        facts = {BEST: client.best_objective, DAYS: np.ones(client.n), INSIDE: ~(below | above) & ranged, RANGED: ranged}
        lost = {rule: outcome.regrets(rule, place) for rule in (*outcome.lost, CHOSEN)}
        for name, values in (facts | lost).items():
            kind = "fact" if name in facts else kind_of(name)
            sums_of.append(
                (client.name, name, kind, np.bincount(client_weeks, weights=values[rows].astype(float), minlength=count))
            )
    table = pd.DataFrame([row[:3] for row in sums_of], columns=["zone", "rule", "kind"])
    sums = np.array([row[3] for row in sums_of], np.float32)
    rows_and_weeks = table.join(pd.DataFrame(sums, columns=[f"week_{week:03d}" for week in range(count)]))
    return rows_and_weeks.assign(first=str(first))
