"""The paper's energy study: every method on one panel, one job per seed, and naive rules of past prices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl.federation import Client, optima
from dffl.sets import TopK
from dffl.time.bases import NAIVE
from dffl_studies.energy.backtests import naive_losses
from dffl_studies.energy.data import Panel, digest
from dffl_studies.energy.setup import SEEDS, Setup, halves
from dffl_studies.running.study import Study, grid


def study(panel: Path, setup: Setup, seeds: Sequence[int] = SEEDS) -> Study:
    """The study of a panel. Its protocol knows the panel by its content, so that the file may move between two runs."""
    protocol = {"data": digest(panel), "protocol": setup.as_json(), "methods": [*setup.methods, *NAIVE]}
    places = {"panel": str(panel.resolve())}
    return Study("energy", judge, grid(seed=list(seeds)), protocol, places=places, inner_axis=("methods", "method"))


def judge(*, data: str, protocol: dict[str, Any], methods: list[str], seed: int, panel: str) -> pd.DataFrame:
    """One row per zone and method or rule: the mean regret of a test day in US$ for each MW, and what the method chose.

    Next to it is what each week adds to that mean.
    """
    from dffl.comparing import fit_all
    from dffl_studies.energy.weeks import week_columns, week_names, weeks_of

    if digest(panel) != data:
        raise ValueError(f"{panel}: the panel is not the one that the study began with; start again in another folder")
    setup = Setup.of(protocol)
    market = setup.open(panel)
    train, test, _, first_test = halves(market, setup)
    weeks, tables = weeks_of(market, first_test), []
    trained, rules = ([name for name in methods if (name in NAIVE) == rule] for rule in (False, True))
    settings = {name: value for name, value in setup.training(seed).items() if name.partition(".")[0] in (*trained, name)}
    fits = fit_all(train, trained, progress=False, **settings) if trained else {}
    for method in trained:
        fit = fits[method]
        lost = fit.regrets_of(test.clients)
        chosen = pd.DataFrame([fit.row(client, own) for client, own in zip(test, lost, strict=True)])
        kept = chosen[[name for name in ("regret", "lambda", "epochs") if name in chosen]]
        tables.append(week_columns(lost, weeks).join(kept).assign(zone=test.names, method=method))
    regrets = naive_regrets(market, setup.cost, first_test) if rules else {}
    for rule in rules:
        lost = regrets[rule]
        known = {"zone": test.names, "method": rule, "regret": [own.mean() for own in lost]}
        tables.append(week_columns(lost, weeks).assign(**known))
    best = [float((client.c * client.w_star).sum(axis=-1).mean()) for client in test]
    zones = {"zone": test.names, "demand": market.demands, "n": train.counts, "n_test": test.counts, "best": best}
    judged = pd.concat(tables)
    facts = ["zone", "method", "regret", "lambda", "epochs"]
    rows = pd.DataFrame(zones).merge(judged.reindex(columns=[*facts, *week_names(judged)]), on="zone")
    return rows.astype({"n": "int32", "n_test": "int32"})


def naive_regrets(panel: Panel, cost: str, first_test: str) -> dict[str, list[np.ndarray]]:
    """What the naive rules of `dffl.backtest` lose on each test day, zone by zone; the steady average's weight is of before."""
    costs, end = panel.costs(cost), np.datetime64(first_test, "D")
    clients = [
        Client(zone, costs[rows, :1], costs[rows], TopK(panel.periods, float(demand)))  # rules use no features
        for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True)
    ]
    optima(clients)
    dates = [panel.dates[rows] for rows in panel.zones.values()]
    known = [int((own < end).sum()) for own in dates]
    lost = naive_losses(clients, dates, known)
    return {rule: [own[first:] for own, first in zip(lost[rule], known, strict=True)] for rule in NAIVE}
