"""Naive rules against a plain reading of them."""

import os

import numpy as np
import pytest

from dffl_studies.energy.data import open_panel, read_panel
from dffl_studies.energy.data.lagged import WEIGHTS
from dffl_studies.energy.naive import RULES, naive_regrets, tuned_weight
from studies.tests.energy.data.made import zone_days
from studies.tests.energy.markets import frame, panel_file

SPLIT = "2022-01-31"


def lost(expected: np.ndarray, prices: np.ndarray, hours: int) -> float:
    """The mean regret of buying the hours that are expected to be cheapest, hour by hour and day by day."""
    total = 0.0
    for guess, price in zip(expected, prices, strict=True):
        order = sorted(range(24), key=lambda hour: (guess[hour], hour))[:hours]
        total += price[order].sum() - np.sort(price)[:hours].sum()
    return total / len(prices)


def means(panel) -> dict[str, list[float]]:
    """The mean regret of each rule in each zone on the test days."""
    return {rule: [own.mean() for own in lost.test] for rule, lost in naive_regrets(panel, "total", SPLIT).items()}


def test_each_rule_is_what_it_says(tmp_path):
    panel = read_panel(panel_file(tmp_path))
    found = means(panel)
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
        for days in (7, 14, 28):
            expected = [zone.prices[day - days : day].mean(axis=0) for day in range(first, len(tests))]
            assert found[f"last-{days}-days"][place] == pytest.approx(lost(expected, zone.prices[first:], int(demand)))
        assert found["perfect-foresight"][place] == 0


def test_on_the_training_days_a_rule_knows_the_days_before_each_day(tmp_path):
    panel = read_panel(panel_file(tmp_path))
    found = naive_regrets(panel, "total", SPLIT)
    for place, (name, demand) in enumerate(zip(panel.names, panel.demands, strict=True)):
        zone = zone_days(panel, name)
        days = range(1, int((zone.dates < np.datetime64(SPLIT)).sum()))
        for rule, first in (("mean-cost", lambda day: 0), ("last-7-days", lambda day: max(0, day - 7))):
            expected = [zone.prices[first(day) : day].mean(axis=0) for day in days]
            assert found[rule].training[place] == pytest.approx(lost(expected, zone.prices[days], int(demand)))
        assert found["yesterday"].training[place] == pytest.approx(
            lost(zone.prices[: len(days)], zone.prices[days], int(demand))
        )


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
    np.testing.assert_allclose(means(panel)["moving-average"], later[best])


def test_tuning_never_looks_at_the_days_that_test(tmp_path):
    table = frame()
    late = table["date"] >= SPLIT
    prices = [f"price_{h}" for h in range(24)]
    other = table.copy()
    other.loc[late, prices] = np.random.default_rng(1).normal(40, 30, (late.sum(), 24))
    weights, training = [], []
    for name, one in (("a.csv", table), ("b.csv", other)):
        one.assign(demand=6).to_csv(tmp_path / name, index=False)
        panel = read_panel(tmp_path / name)
        weights.append(tuned_weight(panel, "total", SPLIT))
        training.append({rule: lost.training for rule, lost in naive_regrets(panel, "total", SPLIT).items()})
    assert weights[0] == weights[1]
    assert training[0] == training[1]  # by which a rule is chosen
    assert tuned_weight(read_panel(tmp_path / "b.csv"), "total") != weights[0]  # the check could fail


@pytest.mark.skipif("DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the real zones' folder")
def test_what_naive_rules_lose_on_the_zones_of_2021():
    panel = open_panel(os.environ["DFFL_ENERGY_DATA"], without=["NE_INTERNAL_HUB"])
    found = naive_regrets(panel, "total", "2021-07-02")
    expected = {
        "mean-cost": 38.57, "yesterday": 47.84, "last-7-days": 37.26, "last-14-days": 35.17, "last-28-days": 33.11,
        "moving-average": 33.67, "steady-average": 32.19,
    }  # fmt: skip
    for rule, value in expected.items():
        assert np.mean([own.mean() for own in found[rule].test]) == pytest.approx(value, abs=0.006)
