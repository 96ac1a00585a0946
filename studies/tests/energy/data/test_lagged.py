"""Moving averages know the days before a day, and nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl_studies.energy.data.lagged import WEIGHTS, Memory, is_weekend, moving_average, steady_average, yesterday

Average = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
AVERAGES: dict[str, Average] = {
    "yesterday": lambda prices, dates, weight: yesterday(prices),
    "moving": lambda prices, dates, weight: moving_average(prices, weight),
    "steady": steady_average,
}
MONDAY, FRIDAY = np.datetime64("2021-01-04"), np.datetime64("2021-01-01")


def some_days(seed: int, days: int) -> np.ndarray:
    """Days of a market in which now and then an hour costs a hundred times the others."""
    rng = np.random.default_rng(seed)
    return rng.normal(40, 15, (days, 24)) * np.where(rng.random((days, 24)) < 0.02, 100, 1)


def some_dates(seed: int, days: int) -> np.ndarray:
    """Days in order, a few of which lack."""
    return FRIDAY + np.cumsum(np.random.default_rng(seed).choice([1, 1, 1, 1, 2, 5], days))


@pytest.mark.parametrize("average", AVERAGES.values(), ids=AVERAGES)
@settings(max_examples=50, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6), days=st.integers(2, 40), weight=st.sampled_from((*WEIGHTS, 1.0)))
def test_no_forecast_knows_its_own_day_or_a_later_one(
    average: Average, data: st.DataObject, seed: int, days: int, weight: float
) -> None:
    prices, dates = some_days(seed, days), some_dates(seed, days)
    day = data.draw(st.integers(1, days))
    other = prices.copy()
    other[day:] = some_days(seed + 1, days)[day:]
    before, after = average(prices, dates, weight), average(other, dates, weight)
    assert before.shape == (days + 1, 24)
    np.testing.assert_array_equal(before[: day + 1], after[: day + 1])
    other = prices.copy()
    other[day - 1] += 1000
    changed = average(other, dates, weight)
    np.testing.assert_array_equal(before[:day], changed[:day])
    assert (changed[day] > before[day]).all()


def test_of_the_first_day_nothing_is_known() -> None:
    prices = some_days(0, 5)
    for average in AVERAGES.values():
        np.testing.assert_array_equal(average(prices, MONDAY + np.arange(5), 0.1)[0], np.zeros(24))


def test_yesterday_is_the_day_before() -> None:
    np.testing.assert_array_equal(yesterday(np.array([[1.0, 2.0], [3.0, 4.0]])), [[0, 0], [1, 2], [3, 4]])


def test_weekends_are_saturdays_and_sundays() -> None:
    assert is_weekend(MONDAY + np.arange(8)).tolist() == [False] * 5 + [True] * 2 + [False]


def test_a_moving_average_in_numbers() -> None:
    found = moving_average(np.array([[8.0, -4.0], [16.0, 0.0], [0.0, 4.0]]), 0.25)
    np.testing.assert_allclose(found, np.array([[0, 0], [8, -4], [10, -3], [7.5, -1.25]]), rtol=1e-14)


@pytest.mark.parametrize("weight", [*WEIGHTS, 1.0])
def test_a_moving_average_is_that_of_a_plain_loop(weight: float) -> None:
    prices = some_days(1, 50)
    mean, found = prices[0], moving_average(prices, weight)
    for day, after in zip(prices, found[1:], strict=True):
        mean = mean + weight * (day - mean)
        np.testing.assert_allclose(after, mean, rtol=1e-11)


@pytest.mark.parametrize(
    ("first", "share"),
    [
        (MONDAY, 0.5 / 1.5),  # of two working days for a third, the older counts half
        (FRIDAY, 0.5 / 3.5),  # of a Friday and a Saturday for a Sunday, the Saturday counts three times
        (FRIDAY - 1, 0.5 / (0.5 + 1)),  # of two working days for a Saturday, both are of the other kind
        (FRIDAY + 1, 0.5 / (0.5 + 1)),  # of a Saturday and a Sunday for a Monday
        (FRIDAY + 2, 1 * 0.5 / (0.5 + 3)),  # of a Sunday and a Monday for a Tuesday
    ],
)
def test_a_steady_average_in_numbers(first: np.datetime64, share: float) -> None:
    # Medians 2 and 8; spreads 1 + sqrt(2/3) and 1 + 0; shapes (-1, 0, 1) / the spread, and none.
    prices, spread = np.array([[1.0, 2.0, 3.0], [8.0, 8.0, 8.0]]), 1 + np.sqrt(2 / 3)
    found = steady_average(prices, first + np.arange(2), 0.5)
    np.testing.assert_allclose(found[:2], np.array([[0, 0, 0], [1, 2, 3]]), rtol=1e-14)
    step = share / spread * np.sqrt(spread)  # part of the shape, times the geometric mean of the two spreads
    np.testing.assert_allclose(found[2], np.array([5 - step, 5, 5 + step]), rtol=1e-14)


def test_a_steady_average_is_that_of_a_plain_loop() -> None:
    days, weight = 30, 0.2
    prices, dates = some_days(4, days), some_dates(4, days)
    spread = prices.std(axis=1) + 1
    shape = np.clip((prices - np.median(prices, axis=1)[:, None]) / spread[:, None], -3, 3)
    found = steady_average(prices, dates, weight)
    for day in range(1, days):
        counts = [
            (1 - weight) ** (day - past) * (3 if is_weekend(dates[past]) == is_weekend(dates[day]) else 1)
            for past in range(day)
        ]
        level = moving_average(np.median(prices, axis=1)[:, None], weight)[day]
        expected = level + np.average(shape[:day], axis=0, weights=counts) * np.exp(np.log(spread[:day]).mean())
        np.testing.assert_allclose(found[day], expected, rtol=1e-9)  # fmt: skip


def test_a_steady_average_goes_with_the_level_of_prices() -> None:
    prices, dates = some_days(2, 30), some_dates(2, 30)
    moved = steady_average(prices + 70, dates, 0.1)
    np.testing.assert_allclose(moved[1:], steady_average(prices, dates, 0.1)[1:] + 70, atol=1e-9)


def test_a_steady_average_goes_with_the_scale_of_prices_but_for_the_dollar_that_keeps_flat_days_still() -> None:
    prices, dates = some_days(3, 30) * 1e6, some_dates(3, 30)
    np.testing.assert_allclose(steady_average(3 * prices, dates, 0.1), 3 * steady_average(prices, dates, 0.1), rtol=1e-5)
    flat = np.full((5, 24), 42.0)
    np.testing.assert_allclose(steady_average(flat, dates[:5], 0.3)[1:], flat)


def test_a_wild_hour_counts_no_more_than_three_spreads() -> None:
    calm, dates = np.tile(np.linspace(30, 50, 24), (20, 1)), MONDAY + 7 * np.arange(20)  # all Mondays, then a Tuesday
    wild, wilder = calm.copy(), calm.copy()
    wild[-1, 12], wilder[-1, 12] = 1e5, 1e7
    assert moving_average(wild, 0.1)[-1][12] > 9000
    size = (19 * np.log(calm[0].std() + 1) + np.log(wild[-1].std() + 1)) / 20
    fading = 0.9 ** np.arange(20)
    ordinary = (calm[0, 12] - 40) / (calm[0].std() + 1)
    shape = (3 + ordinary * fading[1:].sum()) / fading.sum()
    level = 40 + 0.1 * (np.median(wild[-1]) - 40)
    found = steady_average(wild, dates, 0.1)[-1][12]
    np.testing.assert_allclose(found, level + shape * np.exp(size), rtol=1e-12)
    assert found < 50
    # A hundred times the price, and only the spread of an ordinary day has moved.
    assert steady_average(wilder, dates, 0.1)[-1][12] < 1.1 * found


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), days=st.integers(1, 60), weight=st.sampled_from(WEIGHTS))
def test_a_memory_goes_on_as_the_steady_average_does(seed: int, days: int, weight: float) -> None:
    prices, dates = some_days(seed, days + 3), some_dates(seed, days + 3)
    memory = Memory.of(prices[:days], dates[:days], weight)
    assert memory.days == days
    kept = Memory(**json.loads(json.dumps(memory.as_json())))
    expected = steady_average(prices, dates, weight)
    for day in range(days, days + 3):
        np.testing.assert_allclose(kept.forecast(dates[day]), expected[day], rtol=1e-9, atol=1e-9)
        kept.add(prices[day], dates[day])
    np.testing.assert_allclose(kept.forecast(dates[-1] + 1), expected[-1], rtol=1e-9, atol=1e-9)


def test_a_memory_needs_a_day() -> None:
    with pytest.raises(ValueError, match=r"^a moving average needs at least one day, found none$"):
        Memory.of(np.zeros((0, 24)), np.zeros(0, "datetime64[D]"), 0.1)
