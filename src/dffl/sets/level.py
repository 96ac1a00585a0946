"""The level at which shares fill a total: what the projections onto knapsacks, top-k sets and simplices come down to.

No sort: Newton's method on a piecewise linear function, inside a bracket, ends in the right piece after a few steps.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

STEPS = 100
"""More than bisection alone would take."""


class _Search(NamedTuple):
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

    def advance(q: _Search) -> _Search:
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
        return _Search(q.step + 1, jnp.where(done, q.t, t), low, high, jnp.where(check, width, q.width), done)

    low = -jnp.max(v / a, axis=-1)
    high = jnp.maximum(jnp.max(jnp.where(enough, (1 - v) / a, -jnp.inf), axis=-1), low)
    begin = _Search(jnp.zeros((), jnp.int32), 0.5 * (low + high), low, high, high - low, jnp.zeros(rows, bool))
    t = lax.while_loop(lambda q: ~jnp.all(q.done) & (q.step < STEPS), advance, begin).t
    return jnp.clip(v + t[..., None] * a, 0, 1)
