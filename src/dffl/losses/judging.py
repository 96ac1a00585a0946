"""Regret as a judge of candidates. It is flat almost everywhere, so nothing can be trained on it."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dffl.losses.base import Loss, Rows
from dffl.sets import FeasibleSet


class Regret(Loss):
    """The regret itself, for choosing among candidates."""

    name = "regret"
    trains = False

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        return jnp.sum(rows.c * (s.solve(c_hat) - rows.w_star), axis=-1)
