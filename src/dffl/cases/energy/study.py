"""The energy study: every method on one panel, a job for each seed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.cases.energy.data import digest
from dffl.cases.energy.setup import METHODS, SEEDS, Setup, halves
from dffl.studies.study import Study, grid

PANEL = "DFFL_ENERGY_PANEL"
"""The environment variable through which workers find the panel; a study knows it by its content alone."""


def study(panel: Path, protocol: Setup, seeds: Sequence[int] = SEEDS) -> Study:
    """Five seeds on a panel."""
    os.environ[PANEL] = str(panel.resolve())
    return Study("energy", judge, grid(seed=list(seeds)), {"data": digest(panel), "protocol": protocol.as_json()})


def judge(*, data: str, protocol: dict[str, Any], seed: int) -> pd.DataFrame:
    """A row a zone and method: the mean regret of a test day in US$ for each MW, and what the method chose."""
    from dffl.cases.energy.naive import naive_regrets
    from dffl.comparing import fit_all
    from dffl.federation import optima

    asked, path = Setup.of(protocol), os.environ[PANEL]
    if digest(path) != data:
        raise ValueError(f"{path}: the panel is not the one that the study began with; start anew in another folder")
    panel = asked.open(path)
    train, test, _, first_test = halves(panel, asked)
    fits = fit_all(train, METHODS, progress=False, **asked.training(seed))
    optima(test.clients)
    naive = naive_regrets(panel, asked.cost, first_test)
    rows = []
    for place, client in enumerate(test):
        best = float((client.c * client.w_star).sum(axis=-1).mean())
        facts = {"zone": client.name, "demand": panel.demands[place], "n": train[place].n, "n_test": client.n, "best": best}
        for method, fit in fits.items():
            choices = fit.members[client.name].choices
            rows.append(facts | {"method": method, "regret": float(fit.regrets(client).mean())} | choices)
        rows += [facts | {"method": rule, "regret": float(lost[place])} for rule, lost in naive.items()]
    return pd.DataFrame(rows).astype({"n": "int32", "n_test": "int32"})
