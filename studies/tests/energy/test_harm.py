"""Harm and noise: which zones are harmed, by literal numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dffl_studies.energy.summary import excesses, harmed_zones
from studies.tests.energy.made_rows import with_weeks

WEEKS = [f"week_{week:02d}" for week in range(4)]


def rows(regrets: dict[str, list[float]]) -> pd.DataFrame:
    """Three seeds in which each zone's own model loses 10, and fedavg so much."""
    made = [
        {"seed": seed, "zone": zone, "method": method, "regret": lost[seed] if method == "fedavg" else 10.0}
        for zone, lost in regrets.items()
        for method in ("local-tuned", "fedavg")
        for seed in range(3)
    ]
    return with_weeks(pd.DataFrame(made), np.full(4, 0.25))


def test_a_zone_is_harmed_if_it_is_over_one_percent_and_beyond_luck():
    table = rows({"small": [10.05] * 3, "sure": [11] * 3, "start": [9, 11, 13], "gain": [8] * 3})
    found = excesses(table, "local-tuned").set_index("zone")
    assert found["change"].to_dict() == pytest.approx({"small": 0.5, "sure": 10, "start": 10, "gain": -20}, rel=1e-5)
    assert found["over"].to_dict() == {"small": False, "sure": True, "start": True, "gain": False}
    assert found["harmed"].to_dict() == {"small": 0, "sure": 1, "start": 0, "gain": 0}
    # the weeks are alike, the starts 9, 11 and 13: their mean has a variance of 4 / 3
    half = stats.t.ppf(0.975, 2) * np.sqrt(4 / 3) * 10
    assert (found["low"]["start"], found["high"]["start"]) == pytest.approx((10 - half, 10 + half))


def test_one_week_that_makes_all_the_difference_may_be_luck():
    table = rows({"A": [11] * 3})
    shared = table["method"] == "fedavg"
    table.loc[shared, WEEKS] = [[5.0, 2.0, 2.0, 2.0]] * 3
    assert excesses(table, "local-tuned")["harmed"].tolist() == [0]
    table.loc[shared, WEEKS] = [[2.75, 2.7, 2.8, 2.75]] * 3
    assert excesses(table, "local-tuned")["harmed"].tolist() == [1]


def test_zones_whose_own_model_loses_nothing_are_left_out():
    table = rows({"A": [11] * 3, "B": [5] * 3})
    table.loc[(table["zone"] == "B") & (table["method"] == "local-tuned"), ["regret", *WEEKS]] = 0.0
    assert excesses(table, "local-tuned")["zone"].tolist() == ["A"]
    assert excesses(table.assign(regret=0.0), "local-tuned").empty


def test_two_seeds_do_not_tell():
    table = rows({"A": [11] * 3, "B": [11] * 3})
    assert harmed_zones(table, "local-tuned").to_dict() == {"fedavg": 2}
    few = table[table["seed"] < 2]
    assert excesses(few, "local-tuned")["over"].all()
    assert np.isnan(harmed_zones(few, "local-tuned")["fedavg"])
