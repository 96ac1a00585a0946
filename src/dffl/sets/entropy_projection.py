"""The Euclidean projection onto an entropy set, in float64.

Where the projection onto the simplex has too little entropy, the answer solves w + b log w = v - m in every entry, with one
m for sum w = 1 and one b > 0 for the entropy. Both searches keep a bracket; the entropy grows in b.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import entr

from dffl.sets.search import Search, advanced
from dffl.sets.simplex import onto_unit_simplex

TOLERANCE = 1e-7
"""Newton converges quadratically: once a step is this small, the point after it is exact to rounding."""
LEAST = 1e-13
"""The smallest b: below it, the projection onto the simplex is the answer up to rounding."""


class _State(NamedTuple):
    search: Search
    m: Array


def onto_entropy_set(v: Array, h: Array, spare: Array) -> Array:
    """The nearest w with entropy h at least to v of shape (..., d); ``spare`` = log d - h. All in float64."""
    d, top = v.shape[-1], math.log(v.shape[-1])
    v = v - jnp.max(v, axis=-1, keepdims=True)
    plain = onto_unit_simplex(v)
    uniform = spare <= 0
    binding = (jnp.sum(entr(plain), axis=-1) < h) & ~uniform
    spare = jnp.where(uniform, 1.0, spare)
    target = jnp.log(spare) - jnp.log(jnp.where(h > 0, h, 1.0))

    # The search is over t = -log b, in which log d - H grows. It is s^2 / 8 at most if the logs of w have a range of s.
    span = -jnp.min(v, axis=-1)
    low = -jnp.log((span + 1) / jnp.sqrt(8 * spare))
    high = jnp.maximum(jnp.full_like(low, -math.log(LEAST)), low + 1)
    start = jnp.clip(0.5 * jnp.log(2 * spare) - jnp.log(jnp.std(v, axis=-1) + LEAST), low, high)
    never = jnp.full_like(low, jnp.inf)
    search = Search(jnp.zeros((), jnp.int32), start, low, high, high - low, never, ~binding | ~jnp.isfinite(span))

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
    found = lax.while_loop(lambda q: ~jnp.all(q.search.done) & (q.search.step < 200), advance, begin)
    b = jnp.exp(-found.search.t)
    w = _weights(v, b, _shift(v, b, found.m, ~binding))
    w = w / jnp.sum(w, axis=-1, keepdims=True)
    return jnp.where(binding[..., None], w, jnp.where(uniform, 1 / d + 0 * v, plain))


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
        one = 1 + w
        double = 2 * one * (one + 2 / 3 * rest)
        w = w * (1 + rest / one * (double - rest) / (double - 2 * rest))
    return w
