"""Knapsacks of whole items: against a solver for integer programs, against all packings, and by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dffl
from dffl.sets import ZeroOneKnapsack, stack
from dffl.sets._numerics import MOST

from .instances import TOLERANCE, costs, solve
from .integers import Rows, check, longest


def as_rows(s: ZeroOneKnapsack) -> Rows:
    return Rows(s.weights[None], np.array([-np.inf]), np.array([float(s.budget)]))


def all_packings(weights: np.ndarray, budget: float) -> np.ndarray:
    """Every packing that fits; those with the first item first, of them those with the second, and so on."""
    every = np.array(list(product([1.0, 0.0], repeat=len(weights))))
    return every[every @ weights <= budget + 1e-9]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_literal_packings(dtype: str) -> None:
    for s, c, wanted in (
        (ZeroOneKnapsack([3, 4, 5], 7), [-3, -4, -6], [1, 1, 0]),
        (ZeroOneKnapsack([3, 4, 5], 5), [-3, -4, -6], [0, 0, 1]),
        (ZeroOneKnapsack([3, 4, 5], 2), [-3, -4, -6], [0, 0, 0]),
        (ZeroOneKnapsack([3, 4, 5], 99), [-3, 0, -6], [1, 0, 1]),  # what costs nothing stays out
        (ZeroOneKnapsack([3, 4, 5], 99), [3, -0.0, -6], [0, 0, 1]),
        (ZeroOneKnapsack([1, 1, 1, 1], 2), [-1, -1, -1, -1], [1, 1, 0, 0]),  # ties: lowest index first
        (ZeroOneKnapsack([1, 2, 3], 3), [-1, -2, -3], [1, 1, 0]),
        (ZeroOneKnapsack([3, 2, 1], 3), [-3, -2, -1], [1, 0, 0]),
        (ZeroOneKnapsack([0.1, 0.2], 0.3), [-1, -1], [1, 1]),  # 0.1 + 0.2 > 0.3 in floating point
        (ZeroOneKnapsack([0.29, 0.3], 0.29), [-1, -1], [1, 0]),
        (ZeroOneKnapsack([2.5, 2.5], 4.9), [-1, -2], [0, 1]),
        (ZeroOneKnapsack([1, 1], 0), [-1, -2], [0, 0]),
    ):
        np.testing.assert_array_equal(solve(s, np.asarray(c, float), dtype), wanted, err_msg=f"{s} {c}")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("d", "most", "scale"), [(1, 5, 1), (10, 9, 10), (50, 9, 1), (30, 40, 1000)])
def test_an_integer_solver_agrees(d: int, most: int, scale: int, dtype: str) -> None:
    rng = np.random.default_rng([d, most])
    for share in (0.2, 0.6):
        weights = rng.integers(1, most + 1, d) / scale
        s = ZeroOneKnapsack(weights, share * weights.sum())
        c = np.concatenate([costs(rng, (6, d)), -weights * rng.uniform(0.9, 1.1, (4, d))]).astype(np.float32)
        check(as_rows(s), c, solve(s, c, dtype), TOLERANCE[dtype])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.integers(0, 60),
    st.sampled_from([1, 2, 7, 0.5, 0.001]),
    st.integers(0, 10**6),
)
def test_all_packings_agree_also_on_ties(whole: list[int], budget: int, unit: float, seed: int) -> None:
    weights = np.array(whole, float)
    s = ZeroOneKnapsack(weights * unit, budget * unit)
    packings = all_packings(weights, budget)
    c = np.random.default_rng(seed).integers(-3, 2, (12, len(whole))).astype(np.float32)  # whole numbers: ties are exact
    c[::3] = -weights
    # Nothing that costs 0 is taken: of the packings that cost least, the first one without it.
    wanted = packings[np.argmin(c @ packings.T + 1e-3 * (c == 0) @ packings.T, axis=1)]
    for dtype in TOLERANCE:
        np.testing.assert_array_equal(solve(s, c, dtype), wanted)
    assert s.diameter() == pytest.approx((longest(packings), longest(packings)))
    assert s.largest_norm() == pytest.approx(np.linalg.norm(packings, axis=1).max())


def test_the_diameter_in_numbers() -> None:
    assert ZeroOneKnapsack([1, 1, 1, 1], 2).diameter() == pytest.approx((2, 2))
    assert ZeroOneKnapsack([3, 3, 3], 5).diameter() == pytest.approx((2**0.5, 2**0.5))
    assert ZeroOneKnapsack([2, 3, 4, 5], 7).diameter() == pytest.approx((2, 2))  # 2 + 5 and 3 + 4
    assert ZeroOneKnapsack([2, 3, 4, 6], 7).diameter() == pytest.approx((3**0.5, 3**0.5))
    assert ZeroOneKnapsack([5, 6], 4).diameter() == (0, 0)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_compiled_mapped_and_stacked_sets_answer_bit_for_bit(dtype: str) -> None:
    rng = np.random.default_rng(1)
    weights, budgets = rng.integers(1, 9, (3, 12)) / np.array([[1], [10], [1000]]), [20, 3, 0.03]
    sets = [ZeroOneKnapsack(a, b) for a, b in zip(weights, budgets, strict=True)]
    both = stack(sets)
    with jax.enable_x64(dtype == "float64"):
        c = rng.normal(size=(3, 2 * MOST + 9, 12)).astype(dtype)  # whole blocks, and a part of one
        few = c[:, :6]
        single = np.array([[s.solve(row) for row in rows] for s, rows in zip(sets, few, strict=True)])
        for found in (
            [s.solve(rows) for s, rows in zip(sets, few, strict=True)],
            [s.solve(rows)[:6] for s, rows in zip(sets, c, strict=True)],
            [jax.vmap(s.solve)(rows) for s, rows in zip(sets, few, strict=True)],
            both.solve(few),
            jax.jit(both.solve)(c)[:, :6],
            jax.vmap(lambda s, rows: s.solve(rows))(both, few),
            ZeroOneKnapsack(weights, budgets).solve(few),
        ):
            np.testing.assert_array_equal(np.array(found), single)
        np.testing.assert_array_equal(both.solve(c)[1], sets[1].solve(c[1]))
        assert np.asarray(both.contains(single)).all()


def test_large_tables_are_answered_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    s, c = ZeroOneKnapsack(rng.integers(1, 9, 7), 15), rng.normal(size=(30, 7)).astype(np.float32)
    wanted = np.asarray(s.solve(c))
    monkeypatch.setattr("dffl.sets._numerics.CELLS", 4 * 7 * 64)
    np.testing.assert_array_equal(jax.jit(lambda c: s._minimise(c))(c), wanted)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_costs_at_the_ends_of_the_range_change_nothing(dtype: str) -> None:
    rng = np.random.default_rng(2)
    s = ZeroOneKnapsack(rng.integers(1, 9, 15), 30)
    c = rng.normal(size=(200, 15)).astype(np.float32).astype(np.float64)
    plain = solve(s, c, dtype)
    for power in {"float32": (-90, 125), "float64": (-900, 1020)}[dtype]:
        np.testing.assert_array_equal(solve(s, c * 2.0**power, dtype), plain)
    for odd in (np.inf, -np.inf, np.nan):  # no answer is right, but each fits
        assert np.asarray(s.contains(solve(s, np.where(rng.random(c.shape) < 0.3, odd, c), dtype))).all()


def test_contains_asks_for_whole_items_that_fit() -> None:
    s = ZeroOneKnapsack([3, 4, 5], 7)
    assert np.asarray(s.contains([[1, 1, 0], [0, 0, 1], [0, 0, 0]])).all()
    assert not np.asarray(s.contains([[0, 1, 1], [0.5, 1, 0], [2, 0, 0], [-1, 0, 1], [np.nan, 0, 0]])).any()


def test_clients_with_other_budgets_share_one_size() -> None:
    sets = [ZeroOneKnapsack(np.ones(40), b) for b in (1, 20, 40, 1e30)]
    assert stack(sets).batch_shape == (4,)
    assert np.asarray(stack(sets).solve(-np.ones((4, 40)))).sum(axis=1).tolist() == [1, 20, 40, 40]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ZeroOneKnapsack([1, 0], 1), "ZeroOneKnapsack: weights must be > 0, found 0"),
        (lambda: ZeroOneKnapsack([1, 2], -1), "ZeroOneKnapsack: budget must be >= 0, found -1"),
        (lambda: ZeroOneKnapsack([1, np.nan], 1), "ZeroOneKnapsack: weights must be finite, found nan"),
        (lambda: ZeroOneKnapsack([], 1), "ZeroOneKnapsack: weights must not be empty, found shape (0,)"),
        (
            lambda: ZeroOneKnapsack(np.ones((3, 2)), [1, 2]),
            "ZeroOneKnapsack: leading client axes do not match: {'weights': (3,), 'budget': (2,)}",
        ),
    ],
)
def test_what_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


def test_heavy_items_and_large_weights_are_allowed() -> None:
    s = ZeroOneKnapsack([1e6, 1, 2], 2)  # the heavy one never fits
    assert np.asarray(s.solve([-9.0, -1, -1])).tolist() == [0, 1, 0]
    s = ZeroOneKnapsack([4e6, 8e6, 6e6], 1e7)  # a common divisor of two million
    assert np.asarray(s.solve([-1.0, -1, -1])).tolist() == [1, 0, 1]
    assert s._size == 64


@pytest.mark.parametrize(("weights", "budget"), [([1.23456, 2.34567, 0.98765, 3.1], 4.3), ([1e7 + 1, 1e7, 7, 3], 1e7 + 9)])
def test_other_weights_and_large_tables_are_left_to_highs(weights: list[float], budget: float) -> None:
    s = ZeroOneKnapsack(weights, budget)
    assert s.on_host
    packings = all_packings(np.array(weights), budget)
    c = costs(np.random.default_rng(0), (30, 4))
    c[0] = 0
    w = solve(s, c, "float64")
    np.testing.assert_allclose(np.sum(c * w, axis=1), (c @ packings.T).min(axis=1), atol=1e-12)
    assert not w[c >= 0].any()
    both = stack([s, ZeroOneKnapsack(weights, budget / 2)])
    np.testing.assert_array_equal(jax.jit(both.solve)(np.stack([c, c]))[0], np.asarray(s.solve(c)))
    assert s.calls is not None
    assert s.calls.asked > 0
    lengths = [np.linalg.norm(a - b) for a in packings for b in packings]
    assert s.diameter().lower <= max(lengths) + 1e-9 <= s.diameter().upper + 2e-9
    again = type(s)(**s.spec())
    np.testing.assert_array_equal(again.solve(c), s.solve(c))


def test_the_relaxation_is_the_fractional_knapsack() -> None:
    for weights in ([3, 4, 5], [3.00001, 4, 5]):
        s = ZeroOneKnapsack(weights, 7)
        assert isinstance(s.relaxed, dffl.FractionalKnapsack)
        np.testing.assert_allclose(s.relaxed.solve(np.array([-3.0, -4.4, -6])), [0, 0.5, 1], atol=1e-5)
