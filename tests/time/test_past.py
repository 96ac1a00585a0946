"""Features of the past, bases and units: literal numbers, and no row ever sees itself or a later one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dffl
from dffl.time.bases import MEANS, USUAL_WEIGHT, WEIGHTS, SteadyAverage, plain_mean, steady
from dffl.time.past import Past, average_before, calendar, fading_sums, features, lagged, mean_before
from dffl.time.units import Units, constant_sum, cut, deviations, for_training, recent

COUNT = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
MONDAY = 18631.0  # 2021-01-04


def column(values: np.ndarray) -> list[float]:
    return [round(float(value), 9) for value in values[:, 0]]


def test_literal_numbers() -> None:
    assert column(lagged(COUNT, 2)) == [0, 0, 1, 2, 3]
    assert column(lagged(COUNT, 1, known_after=2)) == [0, 0, 0, 1, 2]
    assert column(lagged(COUNT, 9)) == [0, 0, 0, 0, 0]
    assert column(mean_before(COUNT, 2)) == [0, 1, 1.5, 2.5, 3.5]
    assert column(mean_before(COUNT, 2, known_after=1)) == [0, 0, 1, 1.5, 2.5]
    assert column(average_before(COUNT, 0.5)) == [0, 1, 1.5, 2.25, 3.125]
    assert column(fading_sums(COUNT, 0.5)) == [0, 1, 2.5, 4.25, 6.125]
    assert column(plain_mean("mean-7", COUNT)) == [0, 1, 1.5, 2, 2.5]


def test_lags_that_are_not_known_yet_become_the_newest_that_is() -> None:
    assert Past(lags=(1, 2, 7), known_after=2).known_lags == (3, 7)
    assert Past(lags=(1, 2, 7), means=(28,), known_after=2).longest == 30


def test_weekday_and_season() -> None:
    found = calendar(np.array([MONDAY, MONDAY + 5.5]), 2)
    assert found[0, :7].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert found[1, :7].tolist() == [0, 0, 0, 0, 0, 1, 0]
    np.testing.assert_allclose((found[:, 7:] ** 2).sum(axis=1), 1)
    assert calendar(None, 3).shape == (3, 0)


def test_a_steady_average_of_equal_rows_is_that_row() -> None:
    row = np.array([1.0, 4.0, 2.0, 3.0])
    found = steady(np.tile(row, (30, 1)), 0.1, MONDAY + np.arange(30.0))
    np.testing.assert_allclose(found[1:], np.tile(row, (29, 1)), atol=1e-9)
    assert not found[0].any()


def test_a_steady_average_expects_a_weekend_like_the_last_weekend() -> None:
    days = MONDAY + np.arange(70.0)
    weekend = (np.arange(70) % 7 >= 5)[:, None]
    costs = np.where(weekend, [[3.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]])
    with_days, without = steady(costs, 0.05, days), steady(costs, 0.05)
    assert with_days[68, 0] > without[68, 0]
    assert with_days[64, 0] < without[64, 0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 39), st.integers(0, 3), st.integers(0, 2**32 - 1), st.booleans())
def test_nothing_known_of_a_row_changes_with_later_rows(row: int, known_after: int, seed: int, dates: bool) -> None:
    """Rows from t - known_after on are replaced: all that is known of row t, and of the rows before, stays."""
    rng = np.random.default_rng(seed)
    costs, own, items = rng.normal(20, 8, (40, 5)), rng.normal(size=(40, 2)), rng.normal(3, 2, (40, 5, 2))
    days, past = (MONDAY + np.arange(40.0) if dates else None), Past(known_after=known_after)
    other, other_own, other_items = costs.copy(), own.copy(), items.copy()
    first = max(row - known_after, 0)
    other[first:] = rng.normal(-300, 900, other[first:].shape)
    other_own[row + 1 :] = other_items[row + 1 :] = 1e6  # features of the row itself are known before its decision

    def known(c: np.ndarray, x: np.ndarray, brought: np.ndarray) -> list[np.ndarray]:
        units, base = recent(c, known_after), steady(c, 0.1, days, known_after)
        means = [plain_mean(rule, c, known_after) for rule in MEANS]
        return [*features(c, base, units, past, days, x, brought), *units, base, *means]

    for mine, changed in zip(known(costs, own, items), known(other, other_own, other_items), strict=True):
        assert np.isfinite(mine).all()
        np.testing.assert_array_equal(mine[: row + 1], changed[: row + 1])


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 1e4), st.integers(0, 2**32 - 1))
def test_features_are_the_same_in_another_currency(rate: float, seed: int) -> None:
    costs = np.random.default_rng(seed).normal(30, 5, (40, 6))
    made = [features(c, steady(c, 0.1), recent(c), Past()).items for c in (costs, rate * costs)]
    np.testing.assert_allclose(made[0][2:], made[1][2:], atol=1e-5)


def test_units_follow_level_and_spread() -> None:
    costs = np.tile([8.0, 10.0, 12.0], (50, 1))
    units = recent(costs)
    assert column(units.level)[:3] == [0, 10, 10]
    np.testing.assert_allclose(units.spread[1:], deviations(costs)[:-1])
    np.testing.assert_allclose(units.raw(units.scaled(costs)), costs)
    assert cut(np.array([[100.0, 10.0]]), np.array([[9.0, 9.0]]), Units(np.zeros((1, 1)), np.ones((1, 1)))).tolist() == [
        [13, 10]
    ]


def test_a_row_is_measured_from_its_median_only_where_decisions_have_one_sum() -> None:
    costs = np.random.default_rng(0).normal(50, 5, (30, 4))
    base, units = costs + 3, recent(costs)  # near: nothing is cut
    made, start, predicted = for_training(costs, base, units, dffl.TopK(4, 2))
    np.testing.assert_allclose(np.median(made[3:], axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(predicted.raw(start), base)
    packed, begun, plain = for_training(costs, base, units, dffl.FractionalKnapsack(np.array([1.0, 2.0, 3.0, 4.0]), 5.0))
    assert not plain.level.any()
    np.testing.assert_allclose(plain.raw(packed), cut(costs, base, units))
    np.testing.assert_allclose(plain.raw(begun), base)
    assert constant_sum(dffl.TopK(4, 2))
    assert not constant_sum(dffl.Box(np.zeros(4), np.ones(4)))


def test_the_weight_of_a_steady_average_is_chosen_on_known_rows_alone() -> None:
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(0, 1, (120, 4)), axis=0)  # the newest row says most
    noise = np.array([1.0, 2.0, 3.0, 4.0]) + rng.normal(0, 2, (120, 4))  # all rows say the same
    weights = []
    for costs in (walk, noise):
        client = dffl.Client("a", np.zeros((120, 1)), costs, dffl.TopK(4, 2))
        average = SteadyAverage([client], [None])
        assert average.weight([1]) == USUAL_WEIGHT
        weights.append(average.weight([120]))
        changed = costs.copy()
        changed[60:] = 0
        other = SteadyAverage([dffl.Client("a", np.zeros((120, 1)), changed, dffl.TopK(4, 2))], [None])
        assert other.weight([60]) == average.weight([60])
    assert weights[0] >= 0.3 > 0.1 >= weights[1]
    assert set(weights) <= set(WEIGHTS)


def test_bad_input_is_one_line() -> None:
    with pytest.raises(ValueError, match="known_after must be a whole number"):
        Past(known_after=-1)
    with pytest.raises(ValueError, match=r"weights must be in \(0, 1\], found 2"):
        Past(weights=(2,))
    with pytest.raises(ValueError, match="unknown rule 'mean-9'"):
        plain_mean("mean-9", COUNT)


def test_features_of_items_are_measured_among_all_items() -> None:
    rng = np.random.default_rng(0)
    costs, items = rng.normal(20, 8, (40, 5)), rng.normal(3, 2, (40, 5, 2))
    items[..., 1] = [1.0, 2.0, 3.0, 4.0, 5.0]  # known ones: the same in every row
    units, base, past = recent(costs), steady(costs, 0.1), Past()
    made, without = (features(costs, base, units, past, None, None, one).items for one in (items, None))
    np.testing.assert_array_equal(made[..., :-2], without)
    last = items[12:40, :, 0]  # the last 28 rows, row 39 among them
    np.testing.assert_allclose(made[39, :, -2], (items[39, :, 0] - last.mean()) / last.std(), rtol=1e-9)
    np.testing.assert_allclose(made[39, :, -1], np.array([-2, -1, 0, 1, 2]) / np.sqrt(2), rtol=1e-9)
    other = items.copy()
    other[20] += rng.normal(0, 3, (5, 2))
    changed = features(costs, base, units, past, None, None, other).items
    assert (changed[:20] == made[:20]).all()
    assert (changed[20, :, -2] != made[20, :, -2]).all(), "those of a row are known before its decision"
    constant = features(costs, base, units, past, None, None, np.full((40, 5, 1), 1e9)).items
    assert not constant[..., -1].any()
