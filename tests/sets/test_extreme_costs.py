"""Costs near the ends of a precision's range: the answer is that of the same costs at a size of 1, to the last bit."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from dffl.sets import EntropySimplex, FractionalKnapsack

RNG = np.random.default_rng(0)
COSTS = RNG.normal(size=(200, 12)).astype(np.float32)
WEIGHTS = RNG.uniform(0.5, 1.5, 12).astype(np.float32).astype(np.float64)  # the same in both precisions
ENDS = {"float32": (-100, 124), "float64": (-1000, 1020)}  # powers of two of costs
HEAVY = {"float32": ((-100, 60), (90, -60)), "float64": ((-900, 300), (900, -300))}  # of costs and of weights


def solve(s, c: np.ndarray, dtype: str) -> np.ndarray:
    with jax.enable_x64(dtype == "float64"):
        return np.asarray(s.solve(np.asarray(c, dtype)))


@pytest.mark.parametrize("d", [12, 1200])  # pair by pair, and sorted
@pytest.mark.parametrize("dtype", ENDS)
def test_a_knapsack_keeps_its_order_where_cost_over_weight_vanishes_or_overflows(dtype: str, d: int) -> None:
    costs, weights = np.tile(COSTS, d // 12).astype(np.float64), np.tile(WEIGHTS, d // 12)
    plain = solve(FractionalKnapsack(weights, d / 3), costs, dtype)
    for power, weight in HEAVY[dtype]:
        scaled = FractionalKnapsack(weights * 2.0**weight, d / 3 * 2.0**weight)
        np.testing.assert_array_equal(solve(scaled, costs * 2.0**power, dtype), plain)


def test_a_knapsack_in_numbers_where_the_ratio_vanishes_in_float32() -> None:
    # Ratios of -1e-40 and -3e-40: both are 0 in float32, and the first item would be taken.
    s = FractionalKnapsack([1000.0, 1000.0], 1000.0)
    np.testing.assert_array_equal(solve(s, np.array([-1e-37, -3e-37]), "float32"), [0, 1])


@pytest.mark.parametrize("h", [0.0, 0.5, 1.7, 2.4])
@pytest.mark.parametrize("dtype", ENDS)
def test_an_entropy_set_answers_the_largest_and_the_smallest_costs(dtype: str, h: float) -> None:
    s = EntropySimplex(12, h)
    plain = solve(s, COSTS, dtype)
    for power in ENDS[dtype]:
        np.testing.assert_array_equal(solve(s, COSTS.astype(np.float64) * 2.0**power, dtype), plain)


def test_the_entropy_sets_multiplier_keeps_its_scale() -> None:
    from dffl.sets.entropy import gibbs

    with jax.enable_x64(True):
        c = COSTS[:5].astype(np.float64)
        b, far = (np.asarray(gibbs(scale * c, np.asarray(1.0)).b) for scale in (1.0, 2.0**900))
    np.testing.assert_array_equal(far, b * 2.0**900)
