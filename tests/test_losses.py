"""SPO+ and regret: the definition, the subgradient, the two senses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dffl
from tests.federations import feasible_sets

FAMILIES = feasible_sets()


def draw(seed: int, n: int = 6, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), maximize=st.booleans())
def test_spo_plus_is_its_definition_and_bounds_the_regret(family: str, seed: int, maximize: bool) -> None:
    s = FAMILIES[family]
    c_hat, c = draw(seed)
    with jax.enable_x64(True):
        sign = -1.0 if maximize else 1.0
        w = s.solve(sign * c)
        textbook = s.support(sign * (c - 2 * c_hat)) + 2 * sign * np.sum(c_hat * w, -1) - sign * np.sum(c * w, -1)
        loss = dffl.spo_plus(c_hat, c, s, maximize)
        np.testing.assert_allclose(loss, textbook, rtol=1e-9, atol=1e-9)
        lost = dffl.regret(c_hat, c, s, maximize)
        assert (np.asarray(lost) >= -1e-9).all()
        assert (np.asarray(loss) >= np.asarray(lost) - 1e-9).all()
        np.testing.assert_allclose(dffl.spo_plus(c, c, s, maximize), 0, atol=1e-9)
        np.testing.assert_allclose(dffl.spo_plus(c_hat, c, s, maximize, w_star=w), loss, rtol=1e-12, atol=1e-12)
        mirrored = dffl.spo_plus(-c_hat, -c, s, not maximize)
        np.testing.assert_allclose(mirrored, loss, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_derivative_is_the_subgradient(family: str) -> None:
    s = FAMILIES[family]
    c_hat, c = draw(1)
    with jax.enable_x64(True):
        for maximize, formula in (
            (False, 2 * (s.solve(c) - s.solve(2 * c_hat - c))),
            (True, 2 * (s.solve(c - 2 * c_hat) - s.solve(-c))),
        ):
            gradient = jax.grad(lambda p, m=maximize: dffl.spo_plus(p, c, s, m).sum())(jnp.asarray(c_hat))
            np.testing.assert_allclose(gradient, formula, rtol=1e-12, atol=1e-12)
            step = 1e-7 * np.random.default_rng(2).normal(size=c_hat.shape)
            moved = dffl.spo_plus(c_hat + step, c, s, maximize).sum() - dffl.spo_plus(c_hat, c, s, maximize).sum()
            assert float(moved) >= float(np.sum(formula * step)) - 1e-12  # convex: the loss lies above its tangent
            _, forward = jax.jvp(lambda p, m=maximize: dffl.spo_plus(p, c, s, m).sum(), (jnp.asarray(c_hat),), (step,))
            np.testing.assert_allclose(forward, np.sum(formula * step), rtol=1e-9)


def test_literal_values() -> None:
    # The triangle's tie: c = (1, 1), c_hat = (3, 0). With w* = (1, 0) the loss is 6; with w* = (0, 1) it would be 0.
    s = dffl.Simplex(2)
    assert float(dffl.spo_plus([3.0, 0.0], [1.0, 1.0], s)) == 6.0
    assert float(dffl.spo_plus([3.0, 0.0], [1.0, 1.0], s, w_star=[0.0, 1.0])) == 0.0
    # Ball of radius 3: the paper's (2 / rho) MSE bound would allow .333.
    ball = dffl.Ball([0.0, 0.0], 3.0)
    assert float(dffl.spo_plus([0.5, -0.5], [1.0, 0.0], ball)) == pytest.approx(3.0)
    knapsack = dffl.FractionalKnapsack([1.0, 2.0, 1.0], 2.0)
    assert float(dffl.regret([1.0, 9.0, 1.0], [3.0, 2.0, 1.0], knapsack, maximize=True)) == pytest.approx(2.0)
    assert float(dffl.mse([1.0, 2.0], [3.0, 2.0])) == 2.0


def test_relative_regret_is_a_ratio_of_sums_and_the_other_is_named() -> None:
    s = dffl.Simplex(2)
    c = np.array([[1.0, 2.0], [10.0, 30.0]])
    c_hat = c[:, ::-1]
    assert float(dffl.relative_regret(c_hat, c, s)) == pytest.approx((1 + 20) / (1 + 10))
    assert float(dffl.mean_of_regret_ratios(c_hat, c, s)) == pytest.approx((1 / 1 + 20 / 10) / 2)
    nothing = dffl.FractionalKnapsack([1.0, 1.0], 0.0)
    assert float(dffl.relative_regret(c_hat, c, nothing, maximize=True)) == 0.0


def test_a_stack_of_sets_takes_a_sense_a_client() -> None:
    from dffl.sets import stack

    both = stack([dffl.TopK(4, 1), dffl.TopK(4, 2)])
    rng = np.random.default_rng(0)
    c_hat, c = rng.normal(size=(2, 7, 4)), rng.normal(size=(2, 7, 4))
    together = dffl.spo_plus(c_hat, c, both, maximize=np.array([[False], [True]]))
    assert together.shape == (2, 7)
    np.testing.assert_allclose(together[0], dffl.spo_plus(c_hat[0], c[0], both[0]), rtol=1e-5)
    np.testing.assert_allclose(together[1], dffl.spo_plus(c_hat[1], c[1], both[1], maximize=True), rtol=1e-5)
    assert dffl.relative_regret(c_hat, c, both).shape == (2,)
