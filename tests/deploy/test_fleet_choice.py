"""The choice over time of a fleet whose rows stay apart: as in one process to the last bit, and no liar chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy.federation_plan import FederationPlan
from dffl.time.fleet import fit_apart
from tests.deploy.in_memory import deployed
from tests.deploy.made import a_plan
from tests.time.made import ITEMS, series

NAMES = ("a", "b", "c")
SOON = {"join_seconds": 300, "quorum_seconds": 2, "dead_seconds": 600}
FEDERATION: dict[str, Any] = {
    "features": "temp", "costs": "price_*", "inputs": 1, "dimension": ITEMS, "order": "day", "split": "time",
    "train_from": "2021-01-04", "test_from": "2021-02-18", "seed": 3,
}  # fmt: skip
TRAINING = {"method": "chosen", "rounds": 1, "local_epochs": 1, "hidden": None}
TIME = {"lags": [1], "means": [3]}


def chosen_plan(time: dict[str, Any] | None = None, sites: tuple[str, ...] = NAMES, **more: Any) -> FederationPlan:
    federation = FEDERATION | more.pop("federation", {})
    training = TRAINING | more.pop("training", {})
    return a_plan(sites, federation=federation, training=training, rounds=SOON, time=TIME | (time or {}), **more)


def fleet(forecast_error: float | None = None, rows: int = 80) -> dffl.Federation:
    """Sites of different lengths, whose times are seconds, as tables have them."""
    made = [series(name, number, forecast_error, rows + number) for number, name in enumerate(NAMES)]
    return dffl.Federation([one.with_rows(one.x, one.c, np.asarray(one.times) / 1e9) for one in made])


def test_a_deployment_chooses_and_fits_as_one_process_does(tmp_path: Path) -> None:
    data, plan = fleet(), chosen_plan()
    assert plan.choice is not None
    models, found = fit_apart(data, plan.choice), deployed(plan, data, tmp_path)
    for name, mine in found.fits.items():
        whole: Any = models[name]
        assert mine.rules == whole.rules  # type: ignore[union-attr]
        assert mine.digest(name) == whole.digest(name)  # type: ignore[union-attr]
        assert mine.evidence == whole.evidence  # type: ignore[union-attr]
        x = np.zeros((2, 1))
        np.testing.assert_array_equal(mine.predict(name, x[:1]), whole.predict(name, x[:1]))
