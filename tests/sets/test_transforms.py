"""jit, vmap, scan and grad: the oracle is one function of the costs, whose derivative is zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from dffl.sets import (
    Assignment,
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

D = 4
SETS: dict[str, FeasibleSet] = {
    "FractionalKnapsack": FractionalKnapsack([1, 2, 3, 4], 4.5),
    "TopK": TopK(D, 1.5),
    "Simplex": Simplex(D, 2.0),
    "Box": Box(-np.arange(1.0, 5), np.arange(2.0, 6)),
    "EntropySimplex": EntropySimplex(D, 0.7),
    "EntropySimplex solved in float64": EntropySimplex(D, 1e-5),
    "Ball": Ball(np.arange(D), 2.0),
    "Ellipsoid": Ellipsoid(np.arange(D), np.diag([1.0, 2, 3, 4]) + 0.5),
    "Polytope": Polytope(A_ub=[[1, 2, 3, 4], [-1, 1, 0, 0]], b_ub=[4.5, 0.5], lower=0, upper=1 + np.arange(D)),
    "ShortestPath": ShortestPath(2, 2),
    "ZeroOneKnapsack": ZeroOneKnapsack([1, 2, 3, 4], 4.5),
    "ConsecutiveHours": ConsecutiveHours(D, 2),
    "Assignment": Assignment(2),
}
COSTS = np.random.default_rng(0).normal(size=(3, 5, D)).astype(np.float32)
every_family = pytest.mark.parametrize("s", SETS.values(), ids=SETS.keys())


def test_every_family_is_here() -> None:
    # Sets of programs and functions have tests of their own; Lifted, Shadow and Padded are other forms of a set.
    elsewhere = {"MixedInteger", "ModelFile", "Battery", "Solver", "Lifted", "Shadow", "Padded"}
    assert {type(s).__name__ for s in SETS.values()} == set(FeasibleSet.families) - elsewhere


@every_family
def test_batched_answers_are_the_answers_one_by_one(s: FeasibleSet) -> None:
    one_by_one = np.array([[s.solve(c) for c in row] for row in COSTS])
    np.testing.assert_allclose(s.solve(COSTS), one_by_one, atol=2e-6)
    np.testing.assert_allclose(jax.vmap(jax.vmap(s.solve))(COSTS), one_by_one, atol=2e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(s.solve))(COSTS), one_by_one, atol=2e-6)
    _, scanned = lax.scan(lambda carry, c: (carry, s.solve(c)), 0.0, COSTS[0])
    np.testing.assert_allclose(scanned, one_by_one[0], atol=2e-6)


@every_family
def test_the_bound_method_can_be_compiled(s: FeasibleSet) -> None:
    np.testing.assert_allclose(jax.jit(s.solve)(COSTS), s.solve(COSTS), atol=2e-6)


def test_compiled_methods_of_two_sets_are_not_confused() -> None:
    c = -np.ones(3, np.float32)
    found = [np.asarray(jax.jit(FractionalKnapsack(np.ones(3), b).solve)(c)).sum() for b in (1.0, 2.0, 3.0, 1.0)]
    assert found == [1, 2, 3, 1]


@every_family
def test_the_derivative_is_zero_so_the_value_has_the_answer_as_gradient(s: FeasibleSet) -> None:
    for c in COSTS[0]:
        w = s.solve(c)
        np.testing.assert_allclose(jax.grad(lambda c: jnp.sum(s.solve(c) * c))(c), w, atol=2e-6)
        np.testing.assert_array_equal(jax.jit(jax.grad(lambda c: jnp.sum(s.solve(c))))(c), np.zeros(D))
        _, tangent = jax.jvp(s.solve, (c,), (np.ones_like(c),))
        np.testing.assert_array_equal(tangent, np.zeros(D))


@every_family
def test_support_is_the_largest_value_and_its_gradient_the_point_that_attains_it(s: FeasibleSet) -> None:
    points = np.asarray(s.solve(np.random.default_rng(1).normal(size=(200, D)).astype(np.float32)))
    for u in COSTS[0]:
        top = float(s.support(u))
        assert top == pytest.approx(float(u @ np.asarray(s.solve(-u))), abs=1e-5)
        assert (points @ u <= top + 1e-5).all()
        np.testing.assert_allclose(jax.grad(s.support)(u), s.solve(-u), atol=2e-6)
    assert s.support(COSTS).shape == COSTS.shape[:-1]


@every_family
def test_the_precision_is_that_of_the_costs_and_integers_are_costs_too(s: FeasibleSet) -> None:
    assert s.solve([3, 1, -2, 0]).dtype == jnp.float32
    np.testing.assert_allclose(s.solve([3, 1, -2, 0]), s.solve([3.0, 1.0, -2.0, 0.0]))
    with jax.enable_x64(True):
        assert s.solve(COSTS.astype(np.float64)).dtype == jnp.float64
        assert s.solve(COSTS).dtype == jnp.float32
        fine, coarse = s.solve(COSTS.astype(np.float64)), s.solve(COSTS)
    np.testing.assert_allclose(fine, coarse, atol=1e-5)
    assert s.solve(COSTS).dtype == jnp.float32  # nothing leaks out of the context


@every_family
def test_float64_evaluation_after_a_float32_loop(s: FeasibleSet) -> None:
    lax.scan(lambda carry, c: (carry, s.solve(c)), 0.0, COSTS[0])
    with jax.enable_x64(True):
        assert s.solve(COSTS.astype(np.float64)).dtype == jnp.float64


@every_family
def test_contains_accepts_answers_and_refuses_points_outside(s: FeasibleSet) -> None:
    w = np.asarray(s.solve(COSTS), np.float64)
    assert np.asarray(s.contains(w, 1e-5)).all()
    assert s.contains(w).shape == COSTS.shape[:-1]
    assert not np.asarray(s.contains(w - 0.01 * COSTS / np.linalg.norm(COSTS, axis=-1, keepdims=True), 1e-5)).any()
    assert not bool(s.contains(np.full(D, np.nan)))


@every_family
def test_no_costs_have_no_answers(s: FeasibleSet) -> None:
    assert s.solve(COSTS[:0]).shape == (0, *COSTS.shape[1:])
    assert s.contains(COSTS[0, :0]).shape == (0,)
