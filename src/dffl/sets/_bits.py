"""Floats by their bits: power of two and digits separately, which is exact and needs no logarithm."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def layout(dtype: Any) -> tuple[Any, int, int]:
    """The integer type of a float's size, its number of binary digits and the bits of 1.0."""
    digits, integer = int(jnp.finfo(dtype).nmant), np.int64 if dtype == jnp.float64 else np.int32
    return integer, digits, (int(jnp.finfo(dtype).maxexp) - 1) << digits


def to_one(size: Array) -> Array:
    """The power of two that brings each size >= 0 into [1, 2), as far as there is one."""
    integer, digits, one = layout(size.dtype)
    exponent = lax.bitcast_convert_type(size, integer) >> digits
    largest = 2 * (one >> digits)
    return lax.bitcast_convert_type(jnp.clip(largest - exponent, 1, largest) << digits, size.dtype)
