"""`dpo`: the squared distance of the expected perturbed decision to the best one (perturbed optimisers, Berthet et al., 2020).

The expected decision E w*(c_hat + scale Z) is smooth in c_hat, though no single decision is. Its derivative needs no derivative
of the oracle: it is E w*(c_hat + scale Z) Z' / scale. An estimate of it has a variance that grows as 1 / scale^2: a small scale
needs many samples.

The gradient here is unbiased for |E w*(c_hat + scale Z) - w*(c)|^2 with any number of samples: each draw is multiplied with
the mean decision of the other draws, which are independent of it. That mean is subtracted from the draw's own decision, too;
this changes no expectation, and takes out most of the variance. The value has the variance of the mean decision in it, which is
1 / samples of that of one decision.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dffl.losses.base import Rows
from dffl.losses.perturbation import PerturbedLoss
from dffl.sets import FeasibleSet


class DPO(PerturbedLoss):
    """The squared distance between the mean decision of the draws and w*(c)."""

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
