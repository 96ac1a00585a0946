"""The Euclidean projection onto an entropy set, in float64.

Where the projection onto the simplex has too little entropy, the answer solves w + b log w = v - m in every entry, with one
m for sum w = 1 and one b > 0 for the entropy. Newton's method on all of these at once takes a few steps from a near point;
the rows in which it does not converge are searched for b and, within that, for m, each in a bracket: the entropy grows in b.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import entr

from dffl.sets._numerics import Search, advanced

TOLERANCE = 1e-7
"""Newton converges quadratically: once a step is this small, the point after it is exact to rounding."""
LEAST = 1e-13
"""The smallest b: below it, the projection onto the simplex is the answer up to rounding."""


class _State(NamedTuple):
    search: Search
    m: Array


def onto_entropy_set(v: Array, plain: Array, begin: tuple[Array, Array], h: Array, spare: Array) -> Array:
    """The nearest w with entropy h at least to v of shape (..., d); ``spare`` = log d - h. All in float64.

    ``plain`` is the projection onto the simplex; ``begin`` holds logarithms of weights near the answer, and a b.
    """
    v = v - jnp.max(v, axis=-1, keepdims=True)
    uniform = spare <= 0
    binding = (jnp.sum(entr(plain), axis=-1) < h) & ~uniform
    quick, converged = _together(v, *begin, h, ~binding)
    idle = ~binding | converged
    w = jnp.where(converged[..., None], quick, _searched(v, h, jnp.where(uniform, 1.0, spare), idle))
    return jnp.where(binding[..., None], w, jnp.where(uniform, jnp.full_like(v, 1 / v.shape[-1]), plain))


class _Point(NamedTuple):
    step: Array
    log_w: Array
    m: Array
    b: Array
    done: Array


def _together(v: Array, log_w: Array, b: Array, h: Array, idle: Array, steps: int = 30) -> tuple[Array, Array]:
    """Newton's method in log w, m and b at once, and where it has converged.

    The system is diagonal but for m and b, which two equations give: no factorisation, one exponential for each weight.
    """
    log_w = jnp.clip(log_w, -700.0, 0.0)
    b = jnp.where((b > LEAST) & jnp.isfinite(b), b, 1.0)
    w = jnp.exp(log_w)
    m = jnp.sum(w * (v - w - b[..., None] * log_w), axis=-1)

    def advance(q: _Point) -> _Point:
        w, y, b = jnp.exp(q.log_w), q.log_w, q.b[..., None]
        rest, share = v - q.m[..., None] - w - b * y, w / (w + b)
        ones, tilt, bend = jnp.sum(share, axis=-1), jnp.sum(share * y, axis=-1), jnp.sum(share * y * y, axis=-1)
        first = jnp.sum(share * rest + w, axis=-1) - 1
        second = jnp.sum(share * y * rest + w * (y + 1), axis=-1) - 1 + h
        size = ones * bend - tilt * tilt
        db, dm = (ones * second - tilt * first) / size, (bend * first - tilt * second) / size
        dy = (rest - dm[..., None] - y * db[..., None]) / (w + b)
        rising = (dy > 0.1) & (y + dy > -40.0)  # a weight that is small now, and will not be
        small = ~jnp.any((w * jnp.abs(dy) > TOLERANCE) | rising, axis=-1) & (jnp.abs(db) <= TOLERANCE * q.b)

        def moved(new: Array, old: Array) -> Array:
            return jnp.where(q.done.reshape(q.done.shape + (1,) * (new.ndim - q.done.ndim)), old, new)

        later = jnp.minimum(y + jnp.minimum(dy, 5.0), 0.0)
        inside = jnp.clip(q.b + db, q.b / 4, 4 * q.b)
        return _Point(q.step + 1, moved(later, y), moved(q.m + dm, q.m), moved(inside, q.b), q.done | small)

    begin = _Point(jnp.zeros((), jnp.int32), log_w, m, b, idle)
    final = lax.while_loop(lambda q: ~jnp.all(q.done) & (q.step < steps), advance, begin)
    w = jnp.exp(final.log_w)
    return w / jnp.sum(w, axis=-1, keepdims=True), final.done & ~idle


def _searched(v: Array, h: Array, spare: Array, idle: Array) -> Array:
    """The answer by a search for b and, within it, for m."""
    d, top = v.shape[-1], math.log(v.shape[-1])
    target = jnp.log(spare) - jnp.log(jnp.where(h > 0, h, 1.0))

    # The search is over t = -log b, in which log d - H grows. It is s^2 / 8 at most if the logs of w have a range of s.
    span = -jnp.min(v, axis=-1)
    low = -jnp.log((span + 1) / jnp.sqrt(8 * spare))
    high = jnp.maximum(jnp.full_like(low, -math.log(LEAST)), low + 1)
    start = jnp.clip(0.5 * jnp.log(2 * spare) - jnp.log(jnp.std(v, axis=-1) + LEAST), low, high)
    never = jnp.full_like(low, jnp.inf)
    search = Search(jnp.zeros((), jnp.int32), start, low, high, high - low, never, idle | ~jnp.isfinite(span))

    def advance(state: _State) -> _State:
        b = jnp.exp(-state.search.t)
        m = _shift(v, b, state.m, state.search.done)
        w = _weights(v, b, m)
        log_w, share = jnp.log(jnp.maximum(w, 1e-300)), w / (w + b[..., None])
        mean = jnp.sum(share * log_w, axis=-1) / jnp.sum(share, axis=-1)
        grows = b * jnp.sum(share * (log_w - mean[..., None]) ** 2, axis=-1)
        entropy = jnp.clip(-jnp.sum(w * log_w, axis=-1), 1e-300, top)
        lack = jnp.maximum(jnp.sum(w * (log_w + top), axis=-1), 1e-300)
        value = jnp.log(lack) - jnp.log(entropy) - target
        following = advanced(state.search, value, grows * top / (entropy * lack), TOLERANCE)
        # What keeps the sum at 1, to first order: where the next search for m begins.
        return _State(following, m - mean * (jnp.exp(-following.t) - b))

    begin = _State(search, jnp.exp(-start) * top - 1 / d)
    final = lax.while_loop(lambda q: ~jnp.all(q.search.done) & (q.search.step < 200), advance, begin)
    b = jnp.exp(-final.search.t)
    w = _weights(v, b, _shift(v, b, final.m, idle))
    return w / jnp.sum(w, axis=-1, keepdims=True)


def _weights(v: Array, b: Array, m: Array) -> Array:
    """The w with w + b log w = v - m."""
    b = b[..., None]
    return b * wright_omega((v - m[..., None]) / b - jnp.log(b))


def _shift(v: Array, b: Array, m: Array, idle: Array) -> Array:
    """The m at which the weights sum to 1, by Newton's method on the sum's logarithm, from the given m on.

    The largest entry of v is 0: its weight is between 1 / d and 1, which brackets m.
    """
    d, eps = v.shape[-1], float(jnp.finfo(v.dtype).eps)
    low, high = jnp.full_like(b, -1.0), b * math.log(d) - 1 / d

    def advance(state: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        step, m, low, high, done = state
        w = _weights(v, b, m)
        total = jnp.sum(w, axis=-1)
        falls = jnp.sum(w / (w + b[..., None]), axis=-1) / total
        low, high = jnp.where(total > 1, m, low), jnp.where(total < 1, m, high)
        newton = m + jnp.log(total) / falls
        better = jnp.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        size = jnp.maximum(jnp.abs(low), jnp.abs(high))
        close = ~(jnp.abs(total - 1) > 4 * eps) | ~(jnp.abs(newton - m) > eps * size) | ~(high - low > eps * size)
        return step + 1, jnp.where(done | close, m, better), low, high, done | close

    begin = (jnp.zeros((), jnp.int32), jnp.clip(m, low, high), low, high, idle)
    return lax.while_loop(lambda q: ~jnp.all(q[4]) & (q[0] < 100), advance, begin)[1]


def wright_omega(z: Array) -> Array:
    """The w with w + log w = z, to float64's last digits; z below -700 counts as -700, where w is as good as 0.

    Three steps of Fritsch, Shafer and Crowley, each of fourth order, from a rough start.
    """
    z = jnp.maximum(z, -700.0)
    far = jnp.log(jnp.maximum(z, 2.0))
    w = jnp.where(z < -1.5, jnp.exp(jnp.minimum(z, 0.0)), jnp.where(z < 3.0, 0.56 + 0.4 * z + 0.05 * z * z, z - far))
    for _ in range(3):
        rest = z - w - jnp.log(w)
        above = 1 + w
        double = 2 * above * (above + 2 / 3 * rest)
        w = w * (1 + rest / above * (double - rest) / (double - 2 * rest))
    return w
