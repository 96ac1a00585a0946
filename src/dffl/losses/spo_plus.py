"""SPO+: a convex upper bound on the regret, with the subgradient that Danskin's theorem gives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.losses.base import Loss, Rows
from dffl.losses.mse import mse
from dffl.losses.regret import sense
from dffl.sets import FeasibleSet, completed


def spo_plus(
    c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, maximize: ArrayLike = False, w_star: ArrayLike | None = None
) -> Array:
    """The SPO+ loss, a convex upper bound on the regret.

    It is the gap between two objectives at the cost 2 c_hat - c, that of the best decision for c and that of the best
    decision for 2 c_hat - c itself, so it is never negative and is zero at c_hat = c. Its derivative in c_hat is the
    subgradient 2 (w*(c) - w*(2 c_hat - c)). ``w_star`` is w*(c) where it is known already, so that it is not solved for again.

    The known costs of a set are part of both objectives; ``w_star`` is then of ``s.lifted``.
    """
    sign = sense(maximize)
    c_hat, c, s = completed(s, jnp.asarray(c_hat)), completed(s, jnp.asarray(c)), s.lifted
    w = s.solve(sign * c) if w_star is None else jnp.asarray(w_star)
    return spo_plus_gap(sign * c_hat, sign * c, w, s)


def spo_plus_gap(c_hat: Array, c: Array, w_star: Array, s: FeasibleSet) -> Array:
    """SPO+ for a client that minimises and whose w*(c) is known: what training evaluates."""
    return _gap(c_hat, c, w_star, s.solve(2 * c_hat - c))


@jax.custom_jvp
def _gap(c_hat: Array, c: Array, w_star: Array, w_reply: Array) -> Array:
    return jnp.sum((2 * c_hat - c) * (w_star - w_reply), axis=-1)


@_gap.defjvp
def _gap_jvp(primals: Any, tangents: Any) -> Any:
    # Danskin: both decisions are held fixed, so nothing is differentiated through an oracle.
    _, _, w_star, w_reply = primals
    difference = lax.stop_gradient(w_star - w_reply)
    return _gap(*primals), jnp.sum((2 * tangents[0] - tangents[1]) * difference, axis=-1)


class SPOPlus(Loss):
    """SPO+, the default: it trains on the quality of the decision."""

    name = "spo+"

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        return spo_plus_gap(c_hat, rows.c, rows.w_star, s)


class SPOPlusMSE(Loss):
    """SPO+ plus ``weight`` times the mean squared error, in scaled units: predictions stay near the costs."""

    name = "spo+mse"

    def __init__(self, weight: float = 0.1):
        if not 0 <= weight < float("inf"):
            raise ValueError(f"spo+mse: weight must be >= 0 and finite, found {weight!r}")
        self.weight = float(weight)

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        error = mse(c_hat[..., : s.predicted], rows.c[..., : s.predicted])
        return spo_plus_gap(c_hat, rows.c, rows.w_star, s) + self.weight * error
