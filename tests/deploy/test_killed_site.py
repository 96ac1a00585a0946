"""A site that is killed at any moment goes on with its own state, and ends with the model of an undisturbed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dffl
from dffl.deploy.ledger import ACCEPTED
from tests.deploy.in_memory import Fuse, deployed
from tests.deploy.test_equal_to_fit import QUICK, federation, planned, require_same

STATEFUL: dict[str, dict[str, Any]] = {
    "a personal model": {"method": "ditto"},
    "a control variate": {"method": "scaffold"},
    "several trainings and pooled units": {"method": "crossfit", "folds": 2, "epochs": [0, 1], "pooled_units": True},
}


@pytest.mark.parametrize("training", STATEFUL.values(), ids=STATEFUL.keys())
def test_killed_at_any_moment_a_site_ends_with_the_same_model(training: dict[str, Any], tmp_path: Path) -> None:
    data, plan = federation(), planned(training)
    keywords = {key: value for key, value in training.items() if key != "method"}
    whole = dffl.fit(data, training["method"], progress=False, **QUICK | keywords)
    counted = Fuse(-1)
    deployed(plan, data, tmp_path / "counted", fuses={"south": counted})
    assert counted.seen >= 14
    for moment in range(counted.seen % 3, counted.seen, 3 if counted.seen > 30 else 1):
        fuse = Fuse(moment)
        found = deployed(plan, data, tmp_path / str(moment), fuses={"south": fuse})
        assert fuse.seen > moment
        assert all(outcome == ACCEPTED for record in found.records for outcome in record.outcomes.values())
        require_same(found.fits, whole, data)
