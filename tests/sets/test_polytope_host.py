"""Polytopes are solved on the host: the answer is a function of the costs alone, in any program and order."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dffl.sets import Polytope

D = 6
RNG = np.random.default_rng(0)
S = Polytope(A_ub=RNG.integers(1, 4, (4, D)), b_ub=[5, 6, 7, 8], A_eq=np.ones((1, D)), b_eq=[2.0], lower=0, upper=1)
# Integers and duplicates: many costs have several optimal vertices, so that history would show.
COSTS = np.concatenate([RNG.integers(-1, 2, (60, D)), RNG.integers(0, 2, (20, D)), np.zeros((3, D))]).astype(np.float32)


def test_answers_do_not_depend_on_what_was_solved_before() -> None:
    first = np.asarray(S.solve(COSTS))
    order = np.random.default_rng(1).permutation(len(COSTS))
    np.testing.assert_array_equal(np.asarray(S.solve(COSTS[order])), first[order])
    for i in order[:20]:
        np.testing.assert_array_equal(S.solve(COSTS[i]), first[i])


def test_answers_do_not_depend_on_the_scale_of_the_costs() -> None:
    for scale in (2.0**-40, 2.0**40):
        np.testing.assert_array_equal(S.solve(COSTS * scale), S.solve(COSTS))


def test_a_rebuilt_polytope_gives_the_same_vertices() -> None:
    other = Polytope(**(S.spec() | {"upper": np.ones(D)}))
    np.testing.assert_array_equal(other.solve(COSTS), S.solve(COSTS))


def test_it_runs_inside_compiled_loops_and_gradients() -> None:
    expected = np.asarray(S.solve(COSTS))

    @jax.jit
    def train(c0: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(c: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            value, gradient = jax.value_and_grad(lambda c: jnp.sum((row + 0 * c) * S.solve(row + 0 * c)))(c)
            return c - 0 * gradient, value

        return lax.scan(step, c0, COSTS)

    _, values = train(jnp.zeros(D))
    np.testing.assert_allclose(values, np.sum(COSTS * expected, axis=-1), atol=1e-5)
    np.testing.assert_array_equal(jax.jit(jax.vmap(S.solve))(COSTS), expected)
    np.testing.assert_array_equal(jax.vmap(S.solve, in_axes=1, out_axes=1)(COSTS.T), expected.T)


def test_large_batches_pass_through_the_callback() -> None:
    c = np.tile(COSTS, (30, 1))
    np.testing.assert_array_equal(jax.jit(S.solve)(c), np.tile(np.asarray(S.solve(COSTS)), (30, 1)))


def test_threads_do_not_disturb_each_other() -> None:
    expected, found = np.asarray(S.solve(COSTS)), {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: np.asarray(S.solve(COSTS))})) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for w in found.values():
        np.testing.assert_array_equal(w, expected)
    assert len(found) == 4


def test_float64_costs_reach_the_solver_in_full_precision() -> None:
    # A relative difference of 1e-12 between two costs decides, which float32 could not tell apart.
    s = Polytope(A_eq=[[1, 1]], b_eq=[1], lower=np.zeros(2))
    with jax.enable_x64(True):
        for i in (0, 1):
            c = np.ones(2)
            c[i] -= 1e-9
            assert np.asarray(jax.jit(s.solve)(c)).tolist() == np.eye(2)[i].tolist()


def test_a_cost_that_is_not_a_number_gives_no_answer_and_leaves_no_trace() -> None:
    before = np.asarray(S.solve(COSTS[0]))
    for bad in (np.nan, np.inf, -np.inf):
        rows = np.stack([COSTS[0], np.full(D, bad), COSTS[0]])
        w = np.asarray(S.solve(rows))
        assert np.isnan(w[1]).all()
        np.testing.assert_array_equal(w[[0, 2]], np.stack([before, before]))


def test_degenerate_polytopes() -> None:
    point = Polytope(lower=[1, 2], upper=[1, 2])
    assert np.asarray(point.solve([-1.0, 5.0])).tolist() == [1, 2]
    assert point.diameter() == (0, 0)
    segment = Polytope(A_eq=[[1, -1], [1, -1]], b_eq=[0, 0], lower=[0, 0], upper=1)  # the same row twice
    assert np.asarray(segment.solve([-1.0, 0.0])).tolist() == [1, 1]
