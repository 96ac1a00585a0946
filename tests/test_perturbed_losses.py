"""`fenchel-young` and `dpo`: values and gradients against decisions of linprog, closed forms and finite differences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import dffl
from dffl.losses import Loss, Rows
from dffl.losses.perturbed import DPO, FenchelYoung, PerturbedLoss
from tests.test_loss_classes import FEDERATION, SETS, SMALL, best, drawn, families, rows, vector

KEY = 3


def noise(loss: PerturbedLoss, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(jax.random.normal(jax.random.key(KEY), (loss.samples, *shape), jnp.float64))


def value(loss: Loss, c_hat: np.ndarray, of: Rows, s: dffl.FeasibleSet) -> np.ndarray:
    return np.asarray(loss(jnp.asarray(c_hat), of, s, jax.random.key(KEY)))


def gradient(loss: Loss, c_hat: np.ndarray, of: Rows, s: dffl.FeasibleSet) -> np.ndarray:
    return np.asarray(jax.grad(lambda p: loss(p, of, s, jax.random.key(KEY)).sum())(jnp.asarray(c_hat)))


def moved_decisions(loss: PerturbedLoss, c_hat: np.ndarray, family: str) -> tuple[np.ndarray, np.ndarray]:
    """The moved costs and linprog's decisions there, (samples, rows, d) each."""
    costs = c_hat + loss.scale * noise(loss, c_hat.shape)
    return costs, np.array([best(family, draw) for draw in costs])


# Against an independent solver.


@families
def test_fenchel_young_is_its_definition(family: str) -> None:
    loss, (c_hat, c) = FenchelYoung(7, 0.4), drawn(0, n=6)
    with jax.enable_x64(True):
        costs, decisions = moved_decisions(loss, c_hat, family)
        found, slope = value(loss, c_hat, rows(c, family), SETS[family]), gradient(loss, c_hat, rows(c, family), SETS[family])
        shift = np.mean(costs - c_hat, axis=0)
    chosen = best(family, c)
    least = np.mean(np.sum(costs * decisions, axis=-1), axis=0)
    # c_hat . w*(c) - F(c_hat), and a term whose expectation is 0.
    np.testing.assert_allclose(found, np.sum((c_hat + shift) * chosen, axis=-1) - least, rtol=0, atol=1e-9)
    np.testing.assert_allclose(slope, chosen - decisions.mean(axis=0), rtol=0, atol=1e-9)
    assert (found >= 0).all()
    assert np.abs(slope).max() > 0.3


@families
def test_dpo_is_its_definition(family: str) -> None:
    loss, (c_hat, c) = DPO(7, 0.4), drawn(0, n=6)
    with jax.enable_x64(True):
        _, decisions = moved_decisions(loss, c_hat, family)
        found, slope = value(loss, c_hat, rows(c, family), SETS[family]), gradient(loss, c_hat, rows(c, family), SETS[family])
        draws = noise(loss, c_hat.shape)
    chosen = best(family, c)
    np.testing.assert_allclose(found, np.sum((decisions.mean(axis=0) - chosen) ** 2, axis=-1), rtol=0, atol=1e-9)
    wanted = np.zeros_like(c_hat)
    for m in range(7):
        others = np.delete(decisions, m, axis=0).mean(axis=0)
        wanted += 2 / 7 * np.sum((others - chosen) * (decisions[m] - others), axis=-1)[:, None] * draws[m] / loss.scale
    np.testing.assert_allclose(slope, wanted, rtol=0, atol=1e-9)
    assert np.abs(slope).max() > 0.3


# Fenchel-Young: convex and piecewise linear for one key.


@families
def test_fenchel_youngs_gradient_is_that_of_finite_differences_with_the_same_draws(family: str) -> None:
    loss, s, (c_hat, c) = FenchelYoung(5, 0.3), SETS[family], drawn(1, n=8)
    with jax.enable_x64(True):
        of = rows(c, family)
        slope, numeric = gradient(loss, c_hat, of, s), np.zeros_like(c_hat)
        for j in range(4):
            step = 1e-6 * np.eye(4)[j]
            numeric[:, j] = (value(loss, c_hat + step, of, s) - value(loss, c_hat - step, of, s)) / 2e-6
    np.testing.assert_allclose(slope, numeric, rtol=0, atol=1e-7)


@families
def test_fenchel_young_is_convex_along_lines(family: str) -> None:
    loss, s, (c_hat, c) = FenchelYoung(5, 0.3), SETS[family], drawn(2, n=8)
    direction = np.random.default_rng(4).normal(size=c_hat.shape)
    with jax.enable_x64(True):
        of = rows(c, family)
        places = np.linspace(-2, 2, 21)
        values = np.array([value(loss, c_hat + t * direction, of, s) for t in places])
        slopes = np.array([np.sum(gradient(loss, c_hat + t * direction, of, s) * direction, axis=-1) for t in places])
    assert (values[2:] - 2 * values[1:-1] + values[:-2] >= -1e-9).all()
    assert (np.diff(slopes, axis=0) >= -1e-9).all()
    assert (np.ptp(slopes, axis=0) > 0.5).all()
    assert (values >= 0).all()


@families
def test_without_noise_fenchel_young_is_the_structured_perceptron(family: str) -> None:
    c_hat, c = drawn(3)
    perceptron = np.sum(c_hat * (best(family, c) - best(family, c_hat)), axis=1)
    with jax.enable_x64(True):
        of = rows(c, family)
        gaps = [
            np.abs(value(FenchelYoung(10, scale), c_hat, of, SETS[family]) - perceptron).max() for scale in (1e-1, 1e-3, 1e-9)
        ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-7
    assert perceptron.max() > 0.5


def test_fenchel_youngs_value_is_that_of_a_closed_form() -> None:
    """Of two items the cheaper: E min(c1 + eZ1, c2 + eZ2) by Clark's formula. The paper's loss is below by a constant."""
    n, scale, gap = 100_000, 0.5, 0.4
    with jax.enable_x64(True):
        c_hat = np.tile([0.2, 0.2 + gap], (n, 1))
        found = value(
            FenchelYoung(2, scale),
            c_hat,
            Rows(jnp.zeros((n, 1)), c_hat, jnp.tile(jnp.array([0.0, 1.0]), (n, 1))),
            dffl.Simplex(2),
        )
    spread = scale * np.sqrt(2)
    least = 0.2 * norm.cdf(gap / spread) + (0.2 + gap) * norm.cdf(-gap / spread) - spread * norm.pdf(gap / spread)
    assert found.mean() == pytest.approx(0.2 + gap - least, abs=5 * found.std() / np.sqrt(n))


# DPO: unbiased, whatever the number of draws.


@pytest.mark.parametrize("samples", [2, 3, 10])
def test_dpos_gradient_is_unbiased_for_a_closed_form(samples: int) -> None:
    """Of two items the cheaper: the expected decision is Phi of their difference."""
    n, scale = 40_000, 0.5
    c_hat = np.tile([0.2, 0.6], (n, 1))

    def error(first: float) -> float:
        share = norm.cdf((0.6 - first) / (scale * np.sqrt(2)))
        return float(2 * share**2)  # to w* = (0, 1)

    with jax.enable_x64(True):
        of = Rows(jnp.zeros((n, 1)), jnp.asarray(c_hat), jnp.tile(jnp.array([0.0, 1.0]), (n, 1)))
        found = gradient(DPO(samples, scale), c_hat, of, dffl.Simplex(2))
    wanted = (error(0.2 + 1e-5) - error(0.2 - 1e-5)) / 2e-5
    tolerance = 5 * found[:, 0].std() / np.sqrt(n)
    assert tolerance < 0.1 < abs(wanted)
    np.testing.assert_allclose(found.mean(axis=0), [wanted, -wanted], rtol=0, atol=tolerance)


def test_dpos_gradient_is_that_of_finite_differences_of_the_expected_error() -> None:
    """Many draws of one row of a knapsack; both ends of a difference see the same ones."""
    s, scale, step = SETS["knapsack"], 0.6, 0.05
    c_hat, w_star = np.array([-0.5, -0.9, -0.3, -0.6]), best("knapsack", np.array([[-1.0, -0.2, -0.8, -0.1]]))
    n = 200_000
    with jax.enable_x64(True):
        draws = scale * np.asarray(jax.random.normal(jax.random.key(8), (n, 4), jnp.float64))

        def error(at: np.ndarray) -> float:
            return float(np.sum((np.asarray(s.solve(at + draws)).mean(axis=0) - w_star[0]) ** 2))

        numeric = np.array([(error(c_hat + step * e) - error(c_hat - step * e)) / (2 * step) for e in np.eye(4)])
        of = Rows(jnp.zeros((n // 10, 1)), jnp.zeros((n // 10, 4)), jnp.tile(jnp.asarray(w_star), (n // 10, 1)))
        found = gradient(DPO(10, scale), np.tile(c_hat, (n // 10, 1)), of, s)
    tolerance = 5 * found.std(axis=0).max() / np.sqrt(n // 10) + 0.01
    assert tolerance < 0.1 * np.abs(numeric).max()
    np.testing.assert_allclose(found.mean(axis=0), numeric, rtol=0, atol=tolerance)


# As values, and in training.


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: FenchelYoung(samples=0), "fenchel-young: samples must be a whole number >= 1, found 0"),
        (lambda: FenchelYoung(samples=2.5), "fenchel-young: samples must be a whole number >= 1, found 2.5"),  # type: ignore[arg-type]
        (
            lambda: FenchelYoung(samples=10**9),
            "fenchel-young: samples must be a whole number from 1 to 10,000, found 1000000000",
        ),
        (lambda: FenchelYoung(scale=0), "fenchel-young: scale must be > 0 and finite, found 0"),
        (lambda: DPO(scale=float("nan")), "dpo: scale must be > 0 and finite, found nan"),
        (lambda: DPO(scale="wide"), "dpo: scale must be > 0 and finite, found 'wide'"),  # type: ignore[arg-type]
        (lambda: DPO(samples=1), "dpo: samples must be a whole number >= 2, found 1"),
    ],
)
def test_bad_parameters_are_one_clear_line(made: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        made()


@pytest.mark.parametrize("loss", [FenchelYoung(4, 0.5), DPO(4, 0.5)])
def test_engines_draw_the_same_numbers_and_a_fit_is_saved_with_its_loss(loss: Loss, tmp_path: Any) -> None:
    fits = [dffl.fit(FEDERATION, "fedavg", loss=loss, engine=engine, **SMALL) for engine in ("vector", "loop")]
    np.testing.assert_array_equal(vector(fits[0]), vector(fits[1]))
    assert np.abs(vector(fits[0]) - vector(dffl.fit(FEDERATION, "fedavg", loss=loss, seed=1, **SMALL))).max() > 1e-5
    fits[0].save(tmp_path / "fit.dffl")
    assert dffl.load(tmp_path / "fit.dffl").settings.loss == loss


@pytest.mark.parametrize("name", ["fenchel-young", "dpo"])
def test_training_on_it_makes_better_decisions(name: str) -> None:
    """Against the start, on the samples that train: it is the sign of the gradient that this tests."""
    settings = SMALL | {"optimiser": "adam", "learning_rate": 1e-2}
    before, after = (
        dffl.fit(FEDERATION, "fedavg", loss=name, **settings | {"rounds": rounds})
        .evaluate(FEDERATION)["relative_regret"]
        .mean()
        for rounds in (1, 40)
    )
    assert after < 0.6 * before


def test_they_judge_too() -> None:
    fit = dffl.fit(FEDERATION, "interp-spo", judge=FenchelYoung(3), **SMALL)
    again = dffl.fit(FEDERATION, "interp-spo", judge=FenchelYoung(3), engine="loop", **SMALL)
    assert [m.choices for m in fit.members.values()] == [m.choices for m in again.members.values()]
