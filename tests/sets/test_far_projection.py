"""Nearest points of polytopes where numbers are large: far points, and polytopes far from zero."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dffl.sets import Polytope


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_the_nearest_point_to_a_far_one_is_inside_and_nearest(size: float) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 8))
        s = Polytope(rng.normal(size=(4, d)), np.abs(rng.normal(size=4)) + 0.2, lower=-np.ones(d), upper=np.full(d, 2.0))
        model = s._loaded("test").model
        points = rng.normal(size=(10, d)) * size
        nearest = model.project(points)
        assert model.excess(nearest).max() <= 1e-12
        for point, answer in zip(points, nearest, strict=True):
            corner = model.solve((answer - point)[None])[0]  # no other point lies further in the direction of the far one
            assert (point - answer) @ (corner - answer) <= 1e-9 * size


def test_a_small_polytope_far_from_zero_is_left_by_no_more_than_its_numbers_are_rounded() -> None:
    rng = np.random.default_rng(0)
    d, far = 5, 1e9
    a, b = rng.normal(size=(4, d)), np.abs(rng.normal(size=4)) + 0.2
    right = b + a @ np.full(d, far)
    model = Polytope(a, right, lower=np.full(d, far - 1), upper=np.full(d, far + 2))._loaded("test").model
    for answer in model.project(far + 3 * rng.normal(size=(20, d))):
        exactly = [
            sum(Fraction(x) * Fraction(y) for x, y in zip(row, answer, strict=True)) - Fraction(end)
            for row, end in zip(a, right, strict=True)
        ]
        assert max(exactly) <= 4 * np.spacing(far)
        assert (answer >= far - 1).all()
        assert (answer <= far + 2).all()
