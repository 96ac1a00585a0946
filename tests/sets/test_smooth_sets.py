"""Balls and ellipsoids: the optimality conditions, and costs whose squares would over- or underflow."""

from __future__ import annotations

import numpy as np
import pytest

from dffl.sets import Ball, Ellipsoid

from .instances import TOLERANCE, solve

SCALES = {"float32": [1e-30, 1e-6, 1.0, 1e6, 1e30], "float64": [1e-150, 1.0, 1e150]}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_ellipsoid_answers_satisfy_the_kkt_conditions(dtype: str) -> None:
    rng, tol = np.random.default_rng(0), TOLERANCE[dtype]
    for d in (1, 2, 9):
        root = rng.normal(size=(d, d)) + 2 * np.eye(d)
        s, c = Ellipsoid(rng.normal(size=d), root @ root.T), rng.normal(size=(40, d))
        gap = solve(s, c, dtype) - s.center
        normal = gap @ np.linalg.inv(s.shape)  # the gradient of the constraint, which must point along -c
        assert np.abs(np.sum(gap * normal, axis=-1) - 1).max() <= 100 * tol  # on the boundary
        cosine = -np.sum(normal * c, axis=-1) / np.linalg.norm(normal, axis=-1) / np.linalg.norm(c, axis=-1)
        assert (1 - cosine).max() <= 100 * tol


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_answer_does_not_depend_on_the_scale_of_the_costs(dtype: str) -> None:
    c = np.array([3.0, -4.0])
    for scale in SCALES[dtype]:
        np.testing.assert_allclose(solve(Ball([1, 1], 5), scale * c, dtype), [-2, 5], rtol=TOLERANCE[dtype])
        w = solve(Ellipsoid([0, 0], [[25, 0], [0, 25]]), scale * c, dtype)
        np.testing.assert_allclose(w, [-3, 4], rtol=TOLERANCE[dtype])


def test_a_ball_of_radius_zero_is_its_centre() -> None:
    np.testing.assert_array_equal(Ball([1, 2], 0).solve(np.array([5.0, -1.0])), [1, 2])
