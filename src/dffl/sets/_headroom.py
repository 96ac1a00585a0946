"""Costs that can be added up: no sum of them is infinite or not a number.

The oracles that add costs along a plan choose between sums. If a sum overflowed, two plans would look alike, or a plan that is
not allowed would look as good as one that is.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array


def addable(c: Array, terms: int) -> Array:
    """The costs (..., d), divided by a power of two where a sum of ``terms`` of them could overflow; NaN counts as 0.

    A power of two changes no digit, so the order of the sums stays what it is.
    """
    most = float(jnp.finfo(c.dtype).max)
    share = 2.0 ** -(int(np.ceil(np.log2(terms))) + 1)
    finite = jnp.nan_to_num(c, nan=0.0, posinf=most, neginf=-most)
    large = jnp.max(jnp.abs(finite), axis=-1, keepdims=True) > most * share
    return jnp.where(large, finite * share, finite)
