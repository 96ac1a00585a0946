"""Numerics that compiled oracles share: roots, floats by their bits, blocks of instances, costs that can be added up.

Roots are found by Newton's method inside a bracket, one for each row, for functions that grow. No sort is needed for the level
at which shares fill a total, which the projections onto knapsacks, top-k sets and simplices come down to: that function is
piecewise linear, and Newton's method ends in the right piece after a few steps.

The oracles that add costs along a plan choose between sums. If a sum overflowed, two plans would look alike, or a plan that is
not allowed would look as good as one that is: see `addable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


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


STEPS = 100
"""More than bisection alone would take."""


class _LevelSearch(NamedTuple):
    step: Array
    t: Array
    low: Array
    high: Array
    width: Array
    done: Array


def level(v: Array, a: Array, total: Array, enough: Array) -> Array:
    """clip(v + t a, 0, 1) for the t at which its sum with weights a is ``total``. v (..., d), a > 0 (d,).

    ``enough`` (..., d) marks entries that fill the total by themselves: t need not go on when all of them are 1. Entries of v
    should be of size 1 near the answer: the caller subtracts what is common to all of them.
    """
    rows, eps = v.shape[:-1], float(jnp.finfo(v.dtype).eps)
    v = lax.optimization_barrier(v)  # else a compiler may round it in two ways, here and in the loop

    def advance(q: _LevelSearch) -> _LevelSearch:
        raw = v + q.t[..., None] * a
        short = total - jnp.sum(a * jnp.clip(raw, 0, 1), axis=-1)
        # The slope on the side of the answer: a share at its bound moves away from it, but not beyond.
        up = (short > 0)[..., None]
        moves = jnp.where(up, (raw >= 0) & (raw < 1), (raw > 0) & (raw <= 1))
        slope = jnp.sum(jnp.where(moves, a * a, 0), axis=-1)
        low, high = jnp.where(short > 0, q.t, q.low), jnp.where(short < 0, q.t, q.high)
        newton = q.t + short / jnp.where(slope > 0, slope, 1)
        width, check = high - low, q.step % 3 == 2
        stale = check & (width > 0.5 * q.width)
        trusted = (slope > 0) & (newton > low) & (newton < high) & ~stale
        t = jnp.where(trusted, newton, 0.5 * (low + high))
        close = ~(jnp.abs(short) > 2 * eps * total)  # also where it is not a number
        # The answer is also reached where no digits are left, of the bracket or of the step.
        close |= width <= eps * jnp.maximum(jnp.abs(low), jnp.abs(high))
        close |= (slope > 0) & (jnp.abs(newton - q.t) <= eps * jnp.abs(q.t))
        done = q.done | close
        return _LevelSearch(q.step + 1, jnp.where(done, q.t, t), low, high, jnp.where(check, width, q.width), done)

    low = -jnp.max(v / a, axis=-1)
    high = jnp.maximum(jnp.max(jnp.where(enough, (1 - v) / a, -jnp.inf), axis=-1), low)
    begin = _LevelSearch(jnp.zeros((), jnp.int32), 0.5 * (low + high), low, high, high - low, jnp.zeros(rows, bool))
    t = lax.while_loop(lambda q: ~jnp.all(q.done) & (q.step < STEPS), advance, begin).t
    return jnp.clip(v + t[..., None] * a, 0, 1)


def layout(dtype: Any) -> tuple[Any, int, int]:
    """The integer type of a float's size, its number of binary digits and the bits of 1.0."""
    digits, integer = int(jnp.finfo(dtype).nmant), np.int64 if dtype == jnp.float64 else np.int32
    return integer, digits, (int(jnp.finfo(dtype).maxexp) - 1) << digits


def to_one(size: Array) -> Array:
    """The power of two that brings each size >= 0 into [1, 2), as far as there is one."""
    integer, digits, one_bits = layout(size.dtype)
    exponent = lax.bitcast_convert_type(size, integer) >> digits
    largest = 2 * (one_bits >> digits)
    return lax.bitcast_convert_type(jnp.clip(largest - exponent, 1, largest) << digits, size.dtype)


MOST = 128
"""Instances in a block: their tables stay in a processor's cache, and a row of them fills its vector units."""
CELLS = 2**24
"""Cells of the tables of one block."""


def in_blocks(function: Callable[[Array], Array], c: Array, cells: int) -> Array:
    """``function`` of costs (d, block) with one instance a column, for costs (..., d); an instance's table has ``cells`` cells.

    Instances are the last axis inside, so that each operation is a loop over numbers that lie side by side.
    """
    rows = c.reshape(-1, c.shape[-1])
    block = max(1, min(MOST, len(rows), CELLS // cells))
    spare = -len(rows) % block
    blocks = jnp.pad(rows, ((0, spare), (0, 0))).reshape(-1, block, c.shape[-1])
    answers = lax.map(lambda columns: function(columns.T).T, blocks)
    return answers.reshape(-1, c.shape[-1])[: len(rows)].reshape(c.shape).astype(c.dtype)


def addable(c: Array, terms: int) -> Array:
    """The costs (..., d), divided by a power of two where a sum of ``terms`` of them could overflow; NaN counts as 0.

    A power of two changes no digit, so the order of the sums stays what it is.
    """
    most = float(jnp.finfo(c.dtype).max)
    share = 2.0 ** -(int(np.ceil(np.log2(terms))) + 1)
    finite = jnp.nan_to_num(c, nan=0.0, posinf=most, neginf=-most)
    large = jnp.max(jnp.abs(finite), axis=-1, keepdims=True) > most * share
    return jnp.where(large, finite * share, finite)
