"""A loss: squared errors, which grow only linearly beyond a threshold."""

import jax.numpy as jnp
from jax import Array

import dffl
from dffl.losses import Rows


class Huber(dffl.Loss):
    """The mean Huber loss over the costs of a row, in scaled units."""

    name = "huber"

    def __init__(self, threshold: float = 1.0):
        self.threshold = threshold

    def __call__(
        self, c_hat: Array, rows: Rows, s: dffl.FeasibleSet, key: Array | None
    ) -> Array:
        """One value for each row."""
        error = jnp.abs(c_hat - rows.c)
        near = jnp.minimum(error, self.threshold)
        return jnp.mean(near * (error - near / 2), axis=-1)
