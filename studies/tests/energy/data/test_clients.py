"""Zones as clients: what a day's features know, and which days are samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dffl
from dffl.time.bases import steady
from dffl_studies.energy.data import Panel, Sampling, federation, read_panel
from dffl_studies.energy.data.clients import WARM_UP
from studies.tests.energy.data.made import made_panel, panel_table, refused, write, zone_days


def with_prices(panel: Panel, prices: np.ndarray) -> Panel:
    fields = {name: getattr(panel, name) for name in panel.__dataclass_fields__}
    return Panel(**fields | {"prices": prices})


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Panel:
    return made_panel(tmp_path_factory.mktemp("panel"), ("A", "B", "C"), 30, demand=[3] * 30 + [6.5] * 30 + [24] * 30)


def test_each_zone_buys_its_hours_of_each_day_in_the_order_of_time(panel: Panel) -> None:
    fed = federation(panel)
    assert fed.names == ["A", "B", "C"]
    assert fed.counts == [30, 30, 30]
    assert fed.feature_names == ("tmean", "wind", "day_of_week")
    for client, demand in zip(fed, (3, 6.5, 24), strict=True):
        zone = zone_days(panel, client.name)
        np.testing.assert_array_equal(client.c, zone.prices)
        np.testing.assert_array_equal(client.x, zone.covariates)
        assert isinstance(client.set, dffl.TopK)
        assert (client.set.dim, float(client.set.k)) == (24, demand)
        assert not client.maximize


def test_costs_are_those_that_the_sampling_asks_for(panel: Panel) -> None:
    fed = federation(panel, Sampling("total+own"))
    np.testing.assert_array_equal(np.concatenate([client.c for client in fed]), panel.costs("total+own"))


def test_first_and_last_are_both_inclusive(panel: Panel) -> None:
    fed = federation(panel, None, "2021-01-05", "2021-01-20")
    assert fed.counts == [16, 16, 16]
    np.testing.assert_array_equal(fed["B"].c, zone_days(panel, "B").prices[4:20])


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(weight=0.1), Sampling("total+own", 2, 0.3)])
def test_two_federations_split_at_a_day_have_each_day_once(tmp_path: Path, sampling: Sampling) -> None:
    long = made_panel(tmp_path, ("A", "B"), 50)
    whole = federation(long, sampling)
    early, late = federation(long, sampling, last="2021-01-30"), federation(long, sampling, first="2021-01-31")
    for one, before, after in zip(whole, early, late, strict=True):
        np.testing.assert_array_equal(np.concatenate([before.c, after.c]), one.c)
        np.testing.assert_array_equal(np.concatenate([before.x, after.x]), one.x)
        assert after.n == 20


def test_features_are_the_covariates_and_with_past_prices_a_forecast_of_24_hours(panel: Panel) -> None:
    sampling = Sampling(weight=0.1)
    fed = federation(panel, sampling)
    assert fed.feature_names == (*panel.covariate_names, "weekend", *(f"recent_{hour}" for hour in range(24)))
    assert fed.counts == [30 - WARM_UP] * 3
    zone = zone_days(panel, "B")
    np.testing.assert_array_equal(fed["B"].c, zone.prices[WARM_UP:])
    np.testing.assert_array_equal(fed["B"].x[:, -24:], steady(zone.prices, 0.1, zone.dates.astype(float))[WARM_UP:])
    np.testing.assert_array_equal(fed["B"].x[:, :3], zone.covariates[WARM_UP:])
    weekend = np.isin(np.arange(1, 31), [2, 3, 9, 10, 16, 17, 23, 24, 30])  # of January 2021
    np.testing.assert_array_equal(fed["B"].x[:, 3], weekend[WARM_UP:])


@settings(max_examples=40, deadline=None)
@given(
    day=st.integers(WARM_UP, 29),
    zone=st.sampled_from("ABC"),
    weight=st.sampled_from([0.01, 0.1, 0.5]),
    cost=st.sampled_from(["total", "total+own"]),
    lag=st.integers(0, 3),
)
def test_features_of_a_day_know_no_price_of_that_day_or_of_a_later_one(
    panel: Panel, day: int, zone: str, weight: float, cost: str, lag: int
) -> None:
    sampling, date = Sampling(cost, lag, weight), panel.days[day]
    prices, yesterdays = panel.prices.copy(), panel.prices.copy()
    prices[panel.dates >= date] = np.random.default_rng(day).normal(500, 300, (int((panel.dates >= date).sum()), 24))
    yesterdays[panel.dates == date - 1] *= 2
    rows = panel.rows(zone)
    changed = [with_prices(panel, each) for each in (panel.prices, prices, yesterdays)]
    costs, skipped = [each.costs(cost)[rows] for each in changed], sampling.skipped
    known, same, moved = (federation(each, sampling)[zone].x for each in changed)
    day -= skipped
    np.testing.assert_array_equal(known[: day + 1], same[: day + 1])
    assert not np.array_equal(costs[0], costs[1])
    # Yesterday's prices are known, and no feature of an earlier day depends on them.
    assert (known[day, -24:] != moved[day, -24:]).all()
    np.testing.assert_array_equal(known[:day], moved[:day])


def test_covariates_may_be_of_days_before_but_the_calendar_is_known(panel: Panel) -> None:
    lagged = federation(panel, Sampling(weather_lag=2))["A"]
    zone = zone_days(panel, "A")
    np.testing.assert_array_equal(lagged.c, zone.prices[2:])
    np.testing.assert_array_equal(lagged.x[:, :2], zone.covariates[:-2, :2])
    np.testing.assert_array_equal(lagged.x[:, 2], zone.covariates[2:, 2])


@pytest.mark.parametrize(("lag", "weight", "skipped"), [(0, None, 0), (3, None, 3), (3, 0.1, WARM_UP), (20, 0.1, 20)])
def test_the_first_days_have_no_sample_where_something_before_them_is_needed(
    panel: Panel, lag: int, weight: float | None, skipped: int
) -> None:
    sampling = Sampling(weather_lag=lag, weight=weight)
    assert sampling.skipped == skipped
    assert federation(panel, sampling).counts == [30 - skipped] * 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weather_lag": -1}, "weather_lag must be a whole number >= 0, found -1"),
        ({"weather_lag": 0.5}, "weather_lag must be a whole number >= 0, found 0.5"),
        ({"weight": 0.0}, "weight must be above 0 and at most 1, found 0.0"),
        ({"weight": 1.5}, "weight must be above 0 and at most 1, found 1.5"),
        ({"cost": "own"}, "cost must be one of total, total+own, found 'own'"),
    ],
)
def test_a_sampling_that_cannot_be_is_refused(fields: dict[str, object], message: str) -> None:
    with refused(message):
        Sampling(**fields)  # type: ignore[arg-type]


def test_too_few_days_are_refused_and_the_zone_is_named(tmp_path: Path) -> None:
    table = panel_table(("A", "O'Brien"), 30)
    path = write(table[(table["zone"] == "A") | (table["date"] < "2021-01-10")], tmp_path / "panel.csv")
    fix = 'at least 10 are needed; leave it out (--without "O\'Brien"), or split the days elsewhere (--split)'
    with refused(f"{path}: zone O'Brien has 9 days from its first to its last, {fix}"):
        federation(read_panel(path))
    fix = "at least 10 are needed; leave it out (--without 'A'), or split the days elsewhere (--split)"
    with refused(f"{path}: zone A has 9 days from its first to 2021-01-09, {fix}"):
        federation(read_panel(path), last="2021-01-09")
    with refused(f"{path}: zone A has 9 days from 2021-01-22 to its last (after {WARM_UP} to settle), {fix}"):
        federation(read_panel(path), Sampling(weight=0.1), first="2021-01-22")
    assert federation(read_panel(path, without=["O'Brien"]), first="2021-01-21").counts == [10]


@pytest.mark.parametrize(("first", "last"), [("January", None), (None, "January")])
def test_a_span_that_is_no_span_of_days_is_refused(panel: Panel, first: str | None, last: str | None) -> None:
    with refused(f"{'first' if first else 'last'} must be a day such as 2021-01-31, found 'January'"):
        federation(panel, None, first, last)
