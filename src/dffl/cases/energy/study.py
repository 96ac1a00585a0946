"""The energy study: every method on one panel, one job per seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.cases.energy.data import digest
from dffl.cases.energy.setup import METHODS, SEEDS, Setup, halves
from dffl.studies.study import Study, grid


def study(panel: Path, setup: Setup, seeds: Sequence[int] = SEEDS) -> Study:
    """The study of a panel. Its protocol knows the panel by its content, so that the file may move between two runs."""
    protocol = {"data": digest(panel), "protocol": setup.as_json()}
    return Study("energy", judge, grid(seed=list(seeds)), protocol, places={"panel": str(panel.resolve())})


def judge(*, data: str, protocol: dict[str, Any], seed: int, panel: str) -> pd.DataFrame:
    """One row per zone and method or rule: the mean regret of a test day in US$ for each MW, and what the method chose."""
    from dffl.cases.energy.naive import naive_regrets
    from dffl.comparing import fit_all, tabulate

    if digest(panel) != data:
        raise ValueError(f"{panel}: the panel is not the one that the study began with; start again in another folder")
    setup = Setup.of(protocol)
    market = setup.open(panel)
    train, test, _, first_test = halves(market, setup)
    fits = fit_all(train, METHODS, progress=False, **setup.training(seed))
    judged = tabulate(fits, test).rename(columns={"client": "zone"})[["zone", "method", "regret", "lambda", "epochs"]]
    rules = naive_regrets(market, setup.cost, first_test)
    naive = pd.DataFrame({"zone": test.names} | rules).melt("zone", var_name="method", value_name="regret")
    best = [float((client.c * client.w_star).sum(axis=-1).mean()) for client in test]
    zones = {"zone": test.names, "demand": market.demands, "n": train.counts, "n_test": test.counts, "best": best}
    rows = pd.DataFrame(zones).merge(pd.concat([judged, naive]), on="zone")
    return rows.astype({"n": "int32", "n_test": "int32"})
