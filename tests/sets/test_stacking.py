"""A stack of sets, one per client, gives the answers of its sets one by one."""

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
    stack,
)

M, D = 3, 4
RNG = np.random.default_rng(0)
WEIGHTS, LOW, CENTER = RNG.uniform(0.5, 2, (M, D)), RNG.normal(size=(M, D)), RNG.normal(size=(M, D))
SHAPES = np.eye(D) + 0.1 * np.arange(1, M + 1)[:, None, None]
COSTS = RNG.normal(size=(M, 5, D)).astype(np.float32)
UNITS = RNG.integers(1, 9, (M, D)) / np.array([[1], [10], [1]])
CLOSED = np.array([[False] * 4, [True, False, False, False], [False, True, False, False]])
STACKS: dict[str, tuple[FeasibleSet, list[FeasibleSet]]] = {
    "FractionalKnapsack": (
        FractionalKnapsack(WEIGHTS, [1, 2, 3]),
        [FractionalKnapsack(a, b) for a, b in zip(WEIGHTS, (1, 2, 3), strict=True)],
    ),
    "FractionalKnapsack, shared weights": (
        FractionalKnapsack(WEIGHTS[0], [1, 2, 3]),
        [FractionalKnapsack(WEIGHTS[0], b) for b in (1, 2, 3)],
    ),
    "TopK": (TopK(D, [0, 1.5, 4]), [TopK(D, k) for k in (0, 1.5, 4)]),
    "Simplex": (Simplex(D, [0, 1, 2]), [Simplex(D, k) for k in (0, 1, 2)]),
    "Box": (Box(LOW, LOW + 1), [Box(low, low + 1) for low in LOW]),
    "Box, shared upper": (Box(LOW, np.full(D, 9.0)), [Box(low, np.full(D, 9.0)) for low in LOW]),
    "EntropySimplex": (EntropySimplex(D, [0.1, 0.5, 1]), [EntropySimplex(D, h) for h in (0.1, 0.5, 1)]),
    "Ball": (Ball(CENTER, [0, 1, 2]), [Ball(c, r) for c, r in zip(CENTER, (0, 1, 2), strict=True)]),
    "Ellipsoid": (Ellipsoid(CENTER, SHAPES), [Ellipsoid(c, q) for c, q in zip(CENTER, SHAPES, strict=True)]),
    "ShortestPath": (ShortestPath(2, 2, CLOSED), [ShortestPath(2, 2, closed) for closed in CLOSED]),
    "ZeroOneKnapsack": (
        ZeroOneKnapsack(UNITS, [9, 2, 3]),
        [ZeroOneKnapsack(a, b) for a, b in zip(UNITS, (9, 2, 3), strict=True)],
    ),
    "ConsecutiveHours": (
        ConsecutiveHours(D, 2, 1, [0, 1, 0], [4, 4, 3]),
        [ConsecutiveHours(D, 2, 1, *window) for window in ((0, 4), (1, 4), (0, 3))],
    ),
}
every_stack = pytest.mark.parametrize(("built", "singles"), STACKS.values(), ids=STACKS.keys())


@every_stack
def test_a_stack_answers_like_its_sets(built: FeasibleSet, singles: list[FeasibleSet]) -> None:
    expected = np.array([s.solve(c) for s, c in zip(singles, COSTS, strict=True)])
    inside = np.array([s.contains(w, 1e-5) for s, w in zip(singles, expected, strict=True)])
    for s in (built, stack(singles)):
        assert s.batch_shape == (M,)
        assert s.dim == D
        np.testing.assert_allclose(s.solve(COSTS), expected, atol=2e-6)
        np.testing.assert_allclose(jax.jit(s.solve)(COSTS[:, 0]), expected[:, 0], atol=2e-6)
        np.testing.assert_allclose(jax.vmap(lambda s, c: s.solve(c))(s, COSTS), expected, atol=2e-6)
        np.testing.assert_allclose(s.support(-COSTS), -np.sum(COSTS * expected, axis=-1), atol=1e-4)
        np.testing.assert_array_equal(s.contains(expected, 1e-5), inside)
    assert inside.all()


@every_stack
def test_indexing_takes_a_stack_apart_again(built: FeasibleSet, singles: list[FeasibleSet]) -> None:
    parts = list(built)
    assert len(parts) == M
    assert all(p.batch_shape == () for p in parts)
    np.testing.assert_allclose(parts[1].solve(COSTS[1]), singles[1].solve(COSTS[1]), atol=2e-6)
    assert built[1:].batch_shape == (2,)
    assert built[-1].diameter() == pytest.approx(singles[-1].diameter())
    assert built[-1].curvature() == pytest.approx(singles[-1].curvature())


def test_two_client_axes() -> None:
    s = FractionalKnapsack(np.ones((2, 3, D)), np.arange(6.0).reshape(2, 3))
    w = np.asarray(s.solve(-np.ones((2, 3, 7, D))))
    np.testing.assert_array_equal(w.sum(axis=-1)[..., 0], np.minimum(np.arange(6.0).reshape(2, 3), D))
    assert s[1].batch_shape == (3,)


def test_polytopes_with_different_numbers_of_rows_stack() -> None:
    parts = [
        Polytope(lower=np.zeros(D), upper=np.ones(D)),
        Polytope(A_ub=WEIGHTS, b_ub=[1, 2, 3], lower=0, upper=1),
        Polytope(A_eq=np.ones((1, D)), b_eq=[1.0], lower=0),
    ]
    both = stack(parts)
    expected = np.array([s.solve(c) for s, c in zip(parts, COSTS, strict=True)])
    np.testing.assert_array_equal(both.solve(COSTS), expected)
    np.testing.assert_array_equal(jax.jit(both.solve)(COSTS), expected)
    np.testing.assert_array_equal(jax.vmap(lambda s, c: s.solve(c))(both, COSTS), expected)
    assert np.asarray(both.contains(expected, 1e-5)).all()


def test_a_stack_has_no_one_diameter_or_curvature() -> None:
    for what in ("diameter", "curvature"):
        with pytest.raises(ValueError, match=rf"{what}\(\) is of one set; this is a stack of shape \(3,\): index it first"):
            getattr(TopK(D, [1, 2, 3]), what)()
    with pytest.raises(TypeError, match="TopK is a single set, not a stack"):
        TopK(D, 1)[0]


@pytest.mark.parametrize("sets", [[TopK(3, 1), TopK(4, 1)], [TopK(3, 1), Simplex(3)], []])
def test_what_does_not_fit_is_not_stacked(sets: list[FeasibleSet]) -> None:
    with pytest.raises(ValueError, match=r"stack\(\) takes sets of one family and shape; group the others first"):
        stack(sets)
