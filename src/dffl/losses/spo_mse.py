"""SPO+ with some squared error: decisions first, and predictions that stay near the costs."""

from __future__ import annotations

from jax import Array

from dffl.losses.base import Loss, Rows
from dffl.losses.mse import mse
from dffl.losses.spo_plus import spo_plus_gap
from dffl.sets import FeasibleSet


class SPOPlusMSE(Loss):
    """SPO+ plus ``weight`` times the mean squared error, both in scaled units."""

    name = "spo+mse"

    def __init__(self, weight: float = 0.1):
        if not 0 <= weight < float("inf"):
            raise ValueError(f"spo+mse: weight must be >= 0 and finite, found {weight!r}")
        self.weight = float(weight)

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        error = mse(c_hat[..., : s.predicted], rows.c[..., : s.predicted])
        return spo_plus_gap(c_hat, rows.c, rows.w_star, s) + self.weight * error
