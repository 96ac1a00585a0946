"""`fenchel-young`: the perturbed Fenchel-Young loss (Berthet et al., 2020): the best decision is to be the expected one.

With F(c) the expectation over standard normal Z of the least cost min_w (c + scale Z) . w, the value is

    c_hat . w*(c) - F(c_hat),

convex in c_hat, with the gradient w*(c) - E w*(c_hat + scale Z). The Fenchel-Young loss of the paper also has a term that
depends on w*(c) alone and has no formula. It is never positive, so the value here is an upper bound on the paper's loss; it
has the same gradient, and does not reach 0.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dffl.losses.base import Rows
from dffl.losses.perturbation import PerturbedLoss
from dffl.sets import FeasibleSet


class FenchelYoung(PerturbedLoss):
    """The mean over the draws of what w*(c) costs more than the best decision, at the moved prediction: never negative."""

    name = "fenchel-young"

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        _, costs, decisions = self.perturbed(c_hat, s, key)
        # w*(c) is priced at the moved costs, too: in expectation the same, and no draw is negative. No gradient passes through
        # the oracle, so the gradient is Danskin's: w*(c) minus the mean decision.
        return jnp.mean(jnp.sum(costs * (rows.w_star - decisions), axis=-1), axis=0)
