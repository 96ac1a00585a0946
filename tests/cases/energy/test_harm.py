"""Harm and luck: which zones are harmed, by literal numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dffl.cases.energy.harm import excesses, total_change
from tests.cases.energy.made_rows import with_weeks

WEEKS = [f"week_{week:02d}" for week in range(4)]


def rows(regrets: dict[str, list[float]]) -> pd.DataFrame:
    """Two seeds in which each zone's own model loses 10, and fedavg so much."""
    made = [
        {"seed": seed, "zone": zone, "method": method, "regret": lost[seed] if method == "fedavg" else 10.0}
        for zone, lost in regrets.items()
        for method in ("local-tuned", "fedavg")
        for seed in range(2)
    ]
    return with_weeks(pd.DataFrame(made), np.full(4, 0.25))


def test_a_zone_is_harmed_if_it_is_over_one_percent_and_beyond_luck():
    table = rows({"small": [10.05, 10.05], "sure": [11, 11], "start": [9, 13], "gain": [8, 8]})
    found = excesses(table, "local-tuned").set_index("zone")
    assert found["change"].to_dict() == pytest.approx({"small": 0.5, "sure": 10, "start": 10, "gain": -20}, rel=1e-5)
    assert found["over"].to_dict() == {"small": False, "sure": True, "start": True, "gain": False}
    assert found["harmed"].to_dict() == {"small": False, "sure": True, "start": False, "gain": False}
    # the weeks are alike, the starts 9 and 13: their mean has a variance of 8 / 2
    half = stats.t.ppf(0.975, 1) * 2 * 10
    assert (found["low"]["start"], found["high"]["start"]) == pytest.approx((10 - half, 10 + half))


def test_one_week_that_makes_all_the_difference_may_be_luck():
    table = rows({"A": [11, 11]})
    shared = table["method"] == "fedavg"
    table.loc[shared, WEEKS] = [[5.0, 2.0, 2.0, 2.0]] * 2
    assert excesses(table, "local-tuned")["harmed"].tolist() == [False]
    table.loc[shared, WEEKS] = [[2.75, 2.7, 2.8, 2.75]] * 2
    assert excesses(table, "local-tuned")["harmed"].tolist() == [True]


def test_zones_whose_own_model_loses_nothing_are_left_out():
    table = rows({"A": [11, 11], "B": [5, 5]})
    table.loc[(table["zone"] == "B") & (table["method"] == "local-tuned"), ["regret", *WEEKS]] = 0.0
    assert excesses(table, "local-tuned")["zone"].tolist() == ["A"]
    assert excesses(table.assign(regret=0.0), "local-tuned").empty


def test_the_total_change_is_of_the_mean_over_zones():
    table = rows({"A": [11, 11], "B": [8, 9]})
    found = total_change(table, "fedavg", "local-tuned")
    assert found.change == pytest.approx(100 * (9.75 / 10 - 1))
    # the weeks are alike; the starts lose 9.5 and 10: their mean has a variance of .125 / 2
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.125 / 2) * 10
    assert (found.low, found.high) == pytest.approx((found.change - half, found.change + half))
    assert total_change(table, "local-tuned", "local-tuned") == pytest.approx((0, 0, 0))
    nothing = table.assign(**dict.fromkeys(WEEKS, 0.0))
    assert total_change(nothing, "fedavg", "local-tuned") is None
