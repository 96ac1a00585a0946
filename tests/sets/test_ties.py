"""The tie rule, in numbers: lowest index first, what is worth nothing is left out, smooth sets answer symmetrically."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from dffl.sets import (
    Ball,
    Box,
    ConsecutiveHours,
    Ellipsoid,
    EntropySimplex,
    FeasibleSet,
    FractionalKnapsack,
    Polytope,
    ShortestPath,
    Simplex,
    TopK,
    ZeroOneKnapsack,
)

CASES: list[tuple[FeasibleSet, list[float], list[float]]] = [
    # Equal ratios of cost to weight: filled from the lowest index, never over budget.
    (FractionalKnapsack([1, 1, 1, 1], 2.5), [-1, -1, -1, -1], [1, 1, 0.5, 0]),
    (FractionalKnapsack([1, 2, 4], 5), [-1, -2, -4], [1, 1, 0.5]),
    (FractionalKnapsack([4, 2, 1], 5), [-4, -2, -1], [1, 0.5, 0]),
    (FractionalKnapsack([1, 1, 1], 1), [-1, -2, -2], [0, 1, 0]),
    # Items that cost nothing, or something, are left out although the budget has room.
    (FractionalKnapsack([1, 1, 1], 3), [0, -0.0, 1], [0, 0, 0]),
    (FractionalKnapsack([1, 1, 1], 3), [0, -1, 2], [0, 1, 0]),
    (FractionalKnapsack([1, 1], 0), [-1, -1], [0, 0]),
    (FractionalKnapsack([1, 1], 7), [-1, -1], [1, 1]),
    (TopK(4, 2), [1, 1, 1, 1], [1, 1, 0, 0]),
    (TopK(4, 2), [0.0, -0.0, 0.0, -0.0], [1, 1, 0, 0]),
    (TopK(4, 1.5), [3, 1, 1, 1], [0, 1, 0.5, 0]),
    (TopK(4, 2), [-1, 0, -0.0, -2], [1, 0, 0, 1]),
    (TopK(3, 0), [-1, -1, -1], [0, 0, 0]),
    (TopK(3, 3), [1, 2, 3], [1, 1, 1]),
    (Simplex(3, 2.0), [5, 5, 5], [2, 0, 0]),
    (Simplex(3), [0.0, -0.0, 0.0], [1, 0, 0]),
    (Simplex(3), [1, 0, 0], [0, 1, 0]),
    (Box([-1, -2, -3], [1, 2, 3]), [0, -0.0, -1], [-1, -2, 3]),
    (Ball([1, 2], 5), [0, 0], [1, 2]),
    (Ball([1, 2], 5), [-0.0, 0], [1, 2]),
    (Ball([0, 0], 1), [3, 4], [-0.6, -0.8]),
    (Ellipsoid([1, 2], [[4, 0], [0, 9]]), [0, 0], [1, 2]),
    (Ellipsoid([0, 0], [[4, 0], [0, 9]]), [0, -1], [0, 3]),
    (EntropySimplex(4, 0.5), [7, 7, 7, 7], [0.25, 0.25, 0.25, 0.25]),
    (EntropySimplex(4, 0.5), [0, 0, 0, -0.0], [0.25, 0.25, 0.25, 0.25]),
    (EntropySimplex(4, 0.5), [1, 0, 2, 0], [0, 0.5, 0, 0.5]),
    (EntropySimplex(4, 0.0), [1, 0, 2, 3], [0, 1, 0, 0]),
    (EntropySimplex(4, np.log(4)), [1, 0, 2, 3], [0.25, 0.25, 0.25, 0.25]),
    (EntropySimplex(1, 0), [3], [1]),
    (ZeroOneKnapsack([1, 2, 3], 3), [-1, -2, -3], [1, 1, 0]),
    (ZeroOneKnapsack([1, 1, 1], 3), [0, -0.0, 1], [0, 0, 0]),
    (ShortestPath(2, 3), [0, -0.0, 0, 0, 0, 0, -0.0], [1, 1, 0, 0, 1, 0, 0]),
    (ConsecutiveHours(4, 2), [0, -0.0, 0, 0], [1, 1, 0, 0]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_family_breaks_ties_as_documented(dtype: str) -> None:
    with jax.enable_x64(dtype == "float64"):
        for s, c, expected in CASES:
            costs = np.asarray(c, dtype)
            found = s.solve(costs)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=f"{type(s).__name__} at {c}")
            assert bool(s.contains(found))


def test_a_polytope_answers_ties_with_one_vertex() -> None:
    s = Polytope(A_eq=[[1, 1, 1]], b_eq=[1], lower=np.zeros(3))
    first = np.asarray(s.solve(np.zeros(3)))
    assert sorted(first) == [0, 0, 1]
    s.solve(np.array([1.0, -1, 0]))
    np.testing.assert_array_equal(s.solve(np.zeros(3)), first)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_tied_vectors_fill_the_budget_and_no_more(dtype: str) -> None:
    with jax.enable_x64(dtype == "float64"):
        for d in (50, 2000):
            w = np.asarray(FractionalKnapsack(np.ones(d), 30).solve(-np.ones(d, dtype)))
            np.testing.assert_array_equal(w, np.arange(d) < 30)
