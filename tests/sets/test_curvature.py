"""curvature(): the radius of a ball that contains the set and touches it, at any of its boundary points."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from dffl.sets import Ball, Box, Ellipsoid, EntropySimplex, FeasibleSet, FractionalKnapsack, Polytope, Simplex, TopK
from dffl.sets.geometry.entropy import offset


def needed_radius(s: FeasibleSet, flat: bool) -> float:
    """The smallest radius for which sampled points lie in the balls that touch at sampled boundary points.

    The ball of radius r that touches at x with the outward normal n contains y if r >= |y - x|^2 / (2 n . (x - y)).
    ``flat``: the set lies in {1 . w = const}, so normals are taken within it.
    """
    rng = np.random.default_rng(0)
    u = rng.normal(size=(60, s.dim))
    u = np.concatenate([u, np.eye(s.dim), -np.eye(s.dim)])
    u = u - u.mean(axis=-1, keepdims=True) if flat else u
    n = u / np.linalg.norm(u, axis=-1, keepdims=True)
    with jax.enable_x64(True):
        x = np.asarray(s.solve(-n))
        near = [np.asarray(s.solve(-(n + e * rng.normal(size=n.shape)))) for e in (1e-2, 0.1, 1.0)]
    y = np.concatenate([x, *near])
    gap = x[:, None] - y[None]
    square, depth = np.sum(gap**2, axis=-1), np.sum(n[:, None] * gap, axis=-1)
    distinct = square > 1e-6 * square.max()  # nearer pairs are rounding
    assert (depth[distinct] > 0).all()
    return float((square[distinct] / (2 * depth[distinct])).max())


FLAT = [FractionalKnapsack([1, 1], 1), TopK(3, 1), Simplex(3), Box([0], [1]), Polytope(lower=[0], upper=[1])]


@pytest.mark.parametrize("s", FLAT)
def test_polyhedra_have_none(s: FeasibleSet) -> None:
    assert s.curvature() == math.inf


def test_a_balls_is_its_radius() -> None:
    s = Ball([1, 2, 3], 2.5)
    assert s.curvature() == 2.5
    assert needed_radius(s, flat=False) == pytest.approx(2.5, rel=1e-6)


def test_an_ellipsoids_is_that_of_its_flattest_point() -> None:
    s = Ellipsoid([1, 2, 3], np.diag([1.0, 4.0, 9.0]))
    assert s.curvature() == pytest.approx(9.0, rel=1e-12)  # a_max^2 / a_min = 9 / 1
    needed = needed_radius(s, flat=False)
    assert 0.9 * s.curvature() <= needed <= s.curvature() * (1 + 1e-6)


@pytest.mark.parametrize("d", [3, 10, 50])
def test_the_entropy_sets_is_infinite_while_it_touches_the_faces(d: int) -> None:
    for h in (0, 0.5 * math.log(d), math.log(d - 1)):
        assert EntropySimplex(d, h).curvature() == math.inf
    assert math.isfinite(EntropySimplex(d, 0.5 * (math.log(d - 1) + math.log(d))).curvature())
    assert EntropySimplex(d, math.log(d)).curvature() == 0


@pytest.mark.parametrize("d", [2, 3, 5, 20])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_the_entropy_set_lies_in_balls_of_that_radius(d: int, share: float) -> None:
    s = EntropySimplex(d, (1 - share) * math.log(d - 1) + share * math.log(d))
    needed = needed_radius(s, flat=True)
    assert needed <= s.curvature() * (1 + 1e-6)
    assert needed >= s.curvature() / (2 * d)  # the bound is not idle: much smaller radii are refused


def test_thresholds_an_ulp_from_the_ends_are_not_a_failure() -> None:
    for d in (2, 3, 7, 50, 1399, 1411, 2561):
        for h in (np.nextafter(math.log(d), 0), np.nextafter(math.log(d - 1), 9)):
            assert EntropySimplex(d, h).curvature() >= 0
            assert 0 <= offset(d, h, 1 - 1 / d) <= 1 - 1 / d
