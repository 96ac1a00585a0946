"""Squared error: what ordinary forecasting trains on. It ignores decisions."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dffl.losses.base import Loss, Rows
from dffl.sets import FeasibleSet


def mse(c_hat: ArrayLike, c: ArrayLike) -> Array:
    """The mean squared error over the d costs. It ignores decisions, so it needs no set and no sense."""
    return jnp.mean((jnp.asarray(c_hat) - jnp.asarray(c)) ** 2, axis=-1)


class MSE(Loss):
    """The mean squared error over the d scaled costs."""

    name = "mse"

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        return mse(c_hat[..., : s.predicted], rows.c[..., : s.predicted])
