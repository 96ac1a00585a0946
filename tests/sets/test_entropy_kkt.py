"""The entropy oracle against its optimality conditions and against a conic solver."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from dffl.sets import EntropySimplex
from dffl.sets.entropy import gibbs

from .instances import entropy, solve

compiled = jax.jit(gibbs)


def test_weights_are_a_softmax_of_the_costs_over_the_multiplier_and_meet_the_threshold() -> None:
    rng = np.random.default_rng(0)
    for d in (2, 5, 40):
        c = np.concatenate([rng.normal(size=(40, d)), rng.standard_cauchy((40, d)), 1e8 + rng.normal(size=(40, d))])
        for share in (1e-6, 0.01, 0.5, 0.9, 1 - 1e-7):
            h = share * np.log(d)
            with jax.enable_x64(True):
                w, log_w, b = (np.asarray(a) for a in compiled(c, np.float64(h)))
            assert (b > 0).all()
            assert np.isfinite(b).all()
            logits = -(c - c.min(axis=-1, keepdims=True)) / b[:, None]
            logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
            # Down to weights of e^-700: log_w does not underflow.
            np.testing.assert_allclose(log_w, logits, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(w, np.exp(logits), rtol=1e-6, atol=1e-300)
            np.testing.assert_allclose(entropy(w), h, rtol=1e-9)


def test_logarithms_of_the_weights_do_not_underflow() -> None:
    with jax.enable_x64(True):
        w, log_w, b = map(np.asarray, compiled(np.array([0.0, 1.0, 1e6]), np.float64(0.1)))
    assert w[2] == 0
    assert np.isfinite(log_w[2])
    np.testing.assert_allclose(log_w[2] - log_w[0], -1e6 / b, rtol=1e-12)


def test_no_multiplier_where_the_threshold_does_not_bind() -> None:
    with jax.enable_x64(True):
        c = np.array([0.0, 0.0, 1.0])
        tied, single_point = jax.tree.map(np.asarray, (compiled(c, np.float64(0.5)), compiled(c, np.float64(np.log(3)))))
    assert tied.b == 0
    assert np.isinf(single_point.b)
    np.testing.assert_array_equal(tied.log_w, [-np.log(2), -np.log(2), -np.inf])
    np.testing.assert_allclose(single_point.w, np.full(3, 1 / 3), rtol=1e-15)


@pytest.mark.parametrize(("d", "share"), [(3, 0.3), (5, 0.9), (20, 0.5), (20, 0.99)])
def test_agrees_with_a_conic_solver(d: int, share: float) -> None:
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    rng = np.random.default_rng(d)
    for c in (rng.normal(size=d), rng.integers(-2, 3, d) + 0.0):
        w = cp.Variable(d)
        h = share * np.log(d)
        problem = cp.Problem(cp.Minimize(c @ w), [cp.sum(w) == 1, cp.sum(cp.entr(w)) >= h])
        problem.solve(solver=cp.CLARABEL)
        found = solve(EntropySimplex(d, h), c, "float64")
        assert abs(c @ found - problem.value) <= 1e-6 * np.abs(c).max()
        if np.unique(c).size == d:
            np.testing.assert_allclose(found, w.value, atol=1e-4)
