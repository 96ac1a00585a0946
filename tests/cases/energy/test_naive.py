"""Naive rules against a plain reading of them."""

import os

import numpy as np
import pandas as pd
import pytest

from dffl.cases.energy.data import open_panel, read_panel
from dffl.cases.energy.data.lagged import WEIGHTS
from dffl.cases.energy.naive import RULES, naive_regrets, tuned_weight
from tests.cases.energy.data.made import zone_days
from tests.cases.energy.markets import frame, panel_file

SPLIT = "2022-01-31"


def lost(expected: np.ndarray, prices: np.ndarray, hours: int) -> float:
    """The mean regret of buying the hours that are expected to be cheapest, hour by hour and day by day."""
    total = 0.0
    for guess, price in zip(expected, prices, strict=True):
        order = sorted(range(24), key=lambda hour: (guess[hour], hour))[:hours]
        total += price[order].sum() - np.sort(price)[:hours].sum()
    return total / len(prices)


def test_each_rule_is_what_it_says(tmp_path):
    panel = read_panel(panel_file(tmp_path))
    found = naive_regrets(panel, "total", SPLIT)
    assert tuple(found) == RULES
    for place, (name, demand) in enumerate(zip(panel.names, panel.demands, strict=True)):
        zone = zone_days(panel, name)
        tests = zone.dates >= np.datetime64(SPLIT)
        mean = zone.prices[~tests].mean(axis=0)
        assert found["mean-cost"][place] == pytest.approx(
            lost(np.tile(mean, (tests.sum(), 1)), zone.prices[tests], int(demand))
        )
        first = int(np.argmax(tests))
        assert found["yesterday"][place] == pytest.approx(lost(zone.prices[first - 1 : -1], zone.prices[first:], int(demand)))
        assert found["perfect-foresight"][place] == 0


def test_the_moving_average_has_the_weight_that_lost_least_before_the_split(tmp_path):
    panel = read_panel(panel_file(tmp_path))
    past = dict.fromkeys(WEIGHTS, 0.0)
    later = {weight: [] for weight in WEIGHTS}
    for name, demand in zip(panel.names, panel.demands, strict=True):
        zone = zone_days(panel, name)
        tests = zone.dates >= np.datetime64(SPLIT)
        for weight in WEIGHTS:
            mean, expected = zone.prices[0], []
            for day in zone.prices:
                expected.append(mean)
                mean = mean + weight * (day - mean)
            expected = np.array(expected)
            past[weight] += lost(expected[~tests][1:], zone.prices[~tests][1:], int(demand))
            later[weight].append(lost(expected[tests], zone.prices[tests], int(demand)))
    best = min(past, key=past.get)
    np.testing.assert_allclose(naive_regrets(panel, "total", SPLIT)["moving-average"], later[best])


def test_tuning_never_looks_at_the_days_that_test(tmp_path):
    table = frame()
    late = table["date"] >= SPLIT
    prices = [f"price_{h}" for h in range(24)]
    other = table.copy()
    other.loc[late, prices] = np.random.default_rng(1).normal(40, 30, (late.sum(), 24))
    weights = []
    for name, one in (("a.csv", table), ("b.csv", other)):
        one.assign(demand=6).to_csv(tmp_path / name, index=False)
        weights.append(tuned_weight(read_panel(tmp_path / name), "total", SPLIT))
    assert weights[0] == weights[1]
    assert tuned_weight(read_panel(tmp_path / "b.csv"), "total") != weights[0]  # the check could fail


@pytest.mark.skipif("DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the real zones' folder")
def test_what_naive_rules_lose_on_the_zones_of_2021():
    panel = open_panel(os.environ["DFFL_ENERGY_DATA"], without=["NE_INTERNAL_HUB"])
    means = pd.DataFrame(naive_regrets(panel, "total", "2021-07-02")).mean()
    expected = {"mean-cost": 38.57, "yesterday": 47.84, "moving-average": 33.67, "steady-average": 32.19}
    for rule, value in expected.items():
        assert means[rule] == pytest.approx(value, abs=0.006)
