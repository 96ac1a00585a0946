"""Every oracle against optimal values from Lagrangian duality or a closed form (see instances.py)."""

from __future__ import annotations

import numpy as np
import pytest

from dffl.sets import FractionalKnapsack

from .instances import FAMILIES, TOLERANCE, failures, instances, knapsack_value

CLOSED_FORM = [name for name in FAMILIES if name != "Polytope"]
# (sets a dimension, costs a set) over the dimensions 1 to 60: 100,080 instances.
SLOW = {
    "FractionalKnapsack": (25, 20),
    "TopK": (20, 20),
    "Simplex": (5, 20),
    "Box": (5, 20),
    "EntropySimplex": (20, 20),
    "Ball": (3, 10),
    "Ellipsoid": (3, 10),
    "Polytope": (6, 18),
    "ShortestPath": (3, 10),
    "ZeroOneKnapsack": (3, 10),
    "ConsecutiveHours": (3, 10),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_answers_are_feasible_and_optimal(name: str, dtype: str) -> None:
    for s, c in instances(name, 0, iter((1, 2, 7, 60)), 8, 20):
        assert failures(name, s, c, dtype) == ""


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_polytope_answers_are_feasible_and_optimal(dtype: str) -> None:
    for s, c in instances("Polytope", 0, iter((1, 2, 7, 30)), 6, 10):
        assert failures("Polytope", s, c, dtype) == ""


def test_slow_instances_are_a_hundred_thousand() -> None:
    assert sum(60 * sets * rows for sets, rows in SLOW.values()) >= 100_000


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_hundred_thousand_answers_are_feasible_and_optimal(name: str) -> None:
    sets, rows = SLOW[name]
    for s, c in instances(name, 1, iter(range(1, 61)), sets, rows):
        for dtype in TOLERANCE:
            assert failures(name, s, c, dtype) == ""


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["FractionalKnapsack", "TopK"])
def test_long_vectors_that_are_sorted(name: str, dtype: str) -> None:
    for s, c in instances(name, 2, iter((1025,)), 4, 12):
        assert failures(name, s, c, dtype) == ""


def test_the_certificate_is_not_the_oracle() -> None:
    # By hand: ratios -3, -2, -1 for weights 1, 2, 4 and a budget of 5: all of the first two, half of the third.
    s = FractionalKnapsack([[1.0, 2.0, 4.0]], [5.0])
    assert knapsack_value(s, np.array([[[-3.0, -4.0, -4.0]]])).item() == -9.0
