"""One root for each row by Newton's method inside a bracket, for functions that grow."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Search(NamedTuple):
    """Where the search is: the point t, its bracket, and what the bracket and the error were some steps ago."""

    step: Array
    t: Array
    low: Array
    high: Array
    width: Array
    error: Array
    done: Array


def advanced(state: Search, value: Array, slope: Array, tolerance: float) -> Search:
    """One step of the search, given the residual and its slope at the current point."""
    eps = float(jnp.finfo(value.dtype).eps)
    low = jnp.where(value < 0, state.t, state.low)
    high = jnp.where(value > 0, state.t, state.high)
    newton = state.t - value / slope
    width = high - low
    error = jnp.abs(value)
    check = state.step % 3 == 2
    stale = check & (width > 0.5 * state.width) & (error > 0.1 * state.error)
    inside = (newton > low) & (newton < high)
    t = jnp.where(inside & ~stale, newton, 0.5 * (low + high))
    small = jnp.maximum(error, jnp.abs(newton - state.t)) <= tolerance
    t = jnp.where(small, jnp.where(inside, newton, state.t), t)
    close = small | (width <= 2 * eps * jnp.maximum(1, jnp.abs(t)))
    return Search(
        step=state.step + 1,
        t=jnp.where(state.done, state.t, t),
        low=low,
        high=high,
        width=jnp.where(check, width, state.width),
        error=jnp.where(check, error, state.error),
        done=state.done | close,
    )
