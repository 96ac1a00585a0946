"""RSPO+: SPO+ with a smoothed oracle, as in FedRSPO+ (github.com/kziliask/RSPO_Plus, 2026).

The oracle pays for large decisions: w(v) = argmin over S of v . w + (l / 2) |w|^2, which is the projection of -v / l onto S. It
is a continuous function of the costs, so the loss has a gradient everywhere; with l to 0 it becomes SPO+.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.losses.base import Loss, Rows
from dffl.losses.regret import sense
from dffl.sets import FeasibleSet


def rspo_plus(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, smoothing: ArrayLike, maximize: ArrayLike = False) -> Array:
    """The RSPO+ loss, convex in c_hat: the gap at u = 2 c_hat - c between the smoothed decisions for c and for u.

    With F(w) = u . w + (smoothing / 2) |w|^2 it is F(w(c)) - F(w(u)), so it is never negative and is zero at c_hat = c. Its
    derivative in c_hat is 2 (w(c) - w(u)); c and the smoothing are taken as data. ``smoothing`` > 0 is l: one number, or one
    for each set of a stack.
    """
    sign = sense(maximize)
    return rspo_plus_gap(sign * jnp.asarray(c_hat), sign * jnp.asarray(c), s, jnp.asarray(smoothing))


def rspo_plus_gap(c_hat: Array, c: Array, s: FeasibleSet, smoothing: Array) -> Array:
    """RSPO+ for a client that minimises: what training evaluates."""
    c_hat, c = jnp.broadcast_arrays(c_hat, c)
    clients = len(s.batch_shape)
    scale = jnp.reshape(smoothing, jnp.shape(smoothing) + (1,) * (c.ndim - jnp.ndim(smoothing)))
    # Both projections in one call: where a search is behind them, it is over when the slowest row is.
    both = jnp.stack([-c / scale, -(2 * c_hat - c) / scale], axis=clients)
    projected, reply = jnp.moveaxis(s.project(both), clients, 0)
    return _gap(c_hat, c, scale.astype(c_hat.dtype), projected, reply)


@jax.custom_jvp
def _gap(c_hat: Array, c: Array, smoothing: Array, projected: Array, reply: Array) -> Array:
    # F(held) - F(reply) as one product: the two values may be far larger than their difference.
    return jnp.sum((2 * c_hat - c + smoothing / 2 * (projected + reply)) * (projected - reply), axis=-1)


@_gap.defjvp
def _gap_jvp(primals: Any, tangents: Any) -> Any:
    # Danskin: both decisions are held fixed. In c_hat that is the whole derivative; c and the smoothing are data.
    difference = lax.stop_gradient(primals[3] - primals[4])
    return _gap(*primals), jnp.sum(2 * tangents[0] * difference, axis=-1)


class RSPOPlus(Loss):
    """RSPO+ with ``strength`` times the client's own smoothing.

    That is mean |c|_2 / R over the client's training samples in scaled units, R being the largest norm of a point of its set
    (`FeasibleSet.largest_norm`): costs and the smoothing term are then of one size.
    """

    name = "rspo+"
    smooths = True

    def __init__(self, strength: float = 1.0):
        if not 0 < strength < float("inf"):
            raise ValueError(f"rspo+: strength must be > 0 and finite, found {strength!r}")
        self.strength = float(strength)

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        if rows.smoothing is None:
            raise ValueError("rspo+: rows.smoothing is missing; outside of training use dffl.losses.rspo_plus")
        return rspo_plus_gap(c_hat, rows.c, s, self.strength * rows.smoothing)
