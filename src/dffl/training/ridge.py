"""Ridge regression of many outputs, with its leave-one-out errors in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PENALTIES = 10.0 ** np.arange(-4, 5)
"""The candidates: factors of the sum of squared coefficients, which is added to the sum of squared errors."""
LEAST = 1e-6
"""The smallest value of 1 - leverage: a sample that the fit passes through exactly has no information about others."""


class Penalised(NamedTuple):
    """The ridge regression with one penalty."""

    penalty: float
    coefficients: np.ndarray
    """(1 + q, d): the intercept, which is not penalised, above the slopes."""
    residuals: np.ndarray
    """(n, d): each sample's error under the ridge of all the other samples."""


def ridges(design: np.ndarray, c: np.ndarray, penalties: Sequence[float] | np.ndarray = PENALTIES) -> Iterator[Penalised]:
    """The ridge of c (n, d) on the columns of a design (n, q), for each penalty."""
    centre, middle = design.mean(axis=0), c.mean(axis=0)
    u, s, vt = np.linalg.svd(design - centre, full_matrices=False)
    shadow = u.T @ (c - middle)
    for penalty in penalties:
        shrink = s**2 / (s**2 + penalty)
        leverage = 1 / len(c) + (u**2) @ shrink
        residuals = (c - middle - u @ (shrink[:, None] * shadow)) / np.maximum(1 - leverage, LEAST)[:, None]
        slopes = vt.T @ ((s / (s**2 + penalty))[:, None] * shadow)
        yield Penalised(float(penalty), np.concatenate([(middle - centre @ slopes)[None], slopes]), residuals)


def expanded(z: Any, degree: int) -> Any:
    """Features (..., p) as the columns of a design: themselves and, at degree 2, their squares and products."""
    if degree == 1:
        return z
    first, second = np.triu_indices(z.shape[-1])
    join = jnp.concatenate if isinstance(z, jax.Array) else np.concatenate
    return join([z, z[..., first] * z[..., second]], axis=-1)
