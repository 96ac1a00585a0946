"""Losses of decisions at predictions with Gaussian noise: `dpo` and `fenchel-young` (Berthet et al., 2020)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dffl.checks import require_number, require_whole
from dffl.losses.base import Loss, Rows
from dffl.sets import FeasibleSet

SCALE = 0.3
"""The default size of the noise, in scaled units.

Costs have a mean absolute value of 1 there. So this is a typical error of a prediction: large enough that near-ties change
sides, and small enough that the order of clearly different costs stays.
"""
MOST_SAMPLES = 10**4


class Perturbed(NamedTuple):
    """Some draws of the noise, and for each the moved costs and the best decisions there: (samples, rows, d) each."""

    noise: Array
    costs: Array
    decisions: Array


class PerturbedLoss(Loss):
    """A loss that looks at ``samples`` decisions, each at the prediction plus ``scale`` times standard normal noise."""

    random = True
    LEAST = 1
    """The least number of samples that the loss can do with."""

    def __init__(self, samples: int = 10, scale: float = SCALE):
        require_whole(f"{self.name}: samples", samples, least=self.LEAST, most=MOST_SAMPLES)
        require_number(f"{self.name}: scale", scale, 0.0, float("inf"), "> 0 and finite")
        self.samples, self.scale = int(samples), float(scale)

    def perturbed(self, c_hat: Array, s: FeasibleSet, key: Array | None) -> Perturbed:
        """The draws of one step, independent from row to row."""
        assert key is not None, "a random loss is given a key"
        noise = jax.random.normal(key, (self.samples, *c_hat.shape), c_hat.dtype)
        if s.predicted < s.dim:  # known costs have no noise
            noise = noise.at[..., s.predicted :].set(0)
        costs = c_hat + self.scale * noise
        return Perturbed(noise, costs, s.solve(costs))


class DPO(PerturbedLoss):
    """The squared distance between the mean decision of the draws and w*(c).

    The expected decision E w*(c_hat + scale Z) is smooth in c_hat, though no single decision is. Its derivative needs no
    derivative of the oracle: it is E w*(c_hat + scale Z) Z' / scale. An estimate of it has a variance that grows as
    1 / scale^2: a small scale needs many samples.

    The gradient is unbiased for |E w*(c_hat + scale Z) - w*(c)|^2 with any number of samples: each draw is multiplied with the
    mean decision of the other draws, which are independent of it. That mean is subtracted from the draw's own decision, too;
    this changes no expectation, and takes out most of the variance. The value has the variance of the mean decision in it,
    which is 1 / samples of that of one decision.
    """

    name = "dpo"
    LEAST = 2  # each draw is compared with the others

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        noise, _, decisions = self.perturbed(c_hat, s, key)
        d = s.predicted  # the decisions alone: the known part of the objective is none
        return _error(c_hat, noise / self.scale, decisions[..., :d], rows.w_star[..., :d])


@jax.custom_jvp
def _error(c_hat: Array, score: Array, decisions: Array, w_star: Array) -> Array:
    return jnp.sum((jnp.mean(decisions, axis=0) - w_star) ** 2, axis=-1)


@_error.defjvp
def _error_jvp(primals: Any, tangents: Any) -> Any:
    _, score, decisions, w_star = primals
    count = len(decisions)
    others = (jnp.sum(decisions, axis=0) - decisions) / (count - 1)
    towards = jnp.sum((others - w_star) * (decisions - others), axis=-1, keepdims=True)
    slope = 2 * jnp.mean(towards * score, axis=0)
    return _error(*primals), jnp.sum(slope * tangents[0], axis=-1)


class FenchelYoung(PerturbedLoss):
    """The mean over the draws of what w*(c) costs more than the best decision, at the moved prediction: never negative.

    With F(c) the expectation over standard normal Z of the least cost min_w (c + scale Z) . w, its expectation is
    c_hat . w*(c) - F(c_hat), convex in c_hat, with the gradient w*(c) - E w*(c_hat + scale Z). The Fenchel-Young loss of the
    paper also has a term that depends on w*(c) alone and has no formula. It is never positive, so the value here is an upper
    bound on the paper's loss; it has the same gradient, and does not reach 0.
    """

    name = "fenchel-young"

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        _, costs, decisions = self.perturbed(c_hat, s, key)
        # w*(c) is priced at the moved costs, too: in expectation the same, and no draw is negative. No gradient passes through
        # the oracle, so the gradient is Danskin's: w*(c) minus the mean decision.
        return jnp.mean(jnp.sum(costs * (rows.w_star - decisions), axis=-1), axis=0)
