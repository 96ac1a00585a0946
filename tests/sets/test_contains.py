"""Membership is relative to the size of the constraints, and a point's answer is its own."""

from __future__ import annotations

import numpy as np
import pytest

from dffl.sets import Ball, Box, FractionalKnapsack, Polytope, Simplex


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_the_unit_of_measurement_does_not_matter(scale: float) -> None:
    corner = scale * np.array([1.0, 1.0])
    sets = [
        Box([0, 0], corner),
        Polytope(lower=[0, 0], upper=corner),
        Polytope(A_ub=[[1, 0], [0, 1], [-1, 0], [0, -1]], b_ub=[scale, scale, 0, 0]),
        Ball([0, 0], scale * np.sqrt(2)),
    ]
    for s in sets:
        assert bool(s.contains(corner)), s
        assert bool(s.contains(corner * (1 + 1e-7))), s
        assert not bool(s.contains(corner * (1 + 1e-5))), s


def test_a_far_point_in_the_batch_does_not_excuse_a_near_one() -> None:
    for s in (Polytope(lower=[0, 0], upper=[1, 1]), Box([0, 0], [1, 1])):
        assert np.asarray(s.contains(np.array([[1.1, 0.5], [1e9, 0.0], [0.5, 0.5]]))).tolist() == [False, False, True]


def test_tolerance_is_the_users() -> None:
    s = Simplex(2)
    assert not bool(s.contains([0.6, 0.5]))
    assert bool(s.contains([0.6, 0.5], tol=0.2))


def test_a_tiny_budget_is_not_overspent() -> None:
    s = FractionalKnapsack([1e-3, 1e-3], 1e-5)
    assert bool(s.contains([0.005, 0.005]))
    assert not bool(s.contains([0.5, 0.5]))
