"""Regret: what a decision by predicted costs loses against the best decision in hindsight.

Every function takes predictions and costs of shape (..., d) and gives one value for each leading index. A client that
maximises is one that minimises the negated costs. The known costs of a set are part of every objective.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dffl.losses.base import Loss, Rows
from dffl.sets import FeasibleSet, completed


def regret(
    c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, maximize: ArrayLike = False, w_star: ArrayLike | None = None
) -> Array:
    """What deciding by c_hat costs more than deciding by c, at the cost c."""
    sign = sense(maximize)
    c_hat, c, s = completed(s, jnp.asarray(c_hat)), completed(s, jnp.asarray(c)), s.lifted
    w = s.solve(sign * c) if w_star is None else jnp.asarray(w_star)
    return jnp.sum(sign * c * (s.solve(sign * c_hat) - w), axis=-1)


def optimal_value(c: ArrayLike, s: FeasibleSet, maximize: ArrayLike = False) -> Array:
    """z*(c), the best objective that any decision reaches."""
    c, s = completed(s, jnp.asarray(c)), s.lifted
    return jnp.sum(c * s.solve(sense(maximize) * c), axis=-1)


def relative_regret(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, maximize: ArrayLike = False) -> Array:
    """The sum of the regrets over the sum of |z*|: one number, or one per client for a stack of sets."""
    lost, best = _regret_and_value(c_hat, c, s, maximize)
    axes = tuple(range(len(s.batch_shape), lost.ndim))
    return ratio(jnp.sum(lost, axis=axes), jnp.sum(jnp.abs(best), axis=axes))


def mean_of_regret_ratios(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, maximize: ArrayLike = False) -> Array:
    """The mean over samples of regret / |z*|. Samples with a small |z*| dominate it: prefer `relative_regret`."""
    lost, best = _regret_and_value(c_hat, c, s, maximize)
    return jnp.mean(ratio(lost, jnp.abs(best)), axis=tuple(range(len(s.batch_shape), lost.ndim)))


def _regret_and_value(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet, maximize: ArrayLike) -> tuple[Array, Array]:
    c_hat, c, s = completed(s, jnp.asarray(c_hat)), completed(s, jnp.asarray(c)), s.lifted
    w_star = s.solve(sense(maximize) * c)
    return regret(c_hat, c, s, maximize, w_star), jnp.sum(c * w_star, axis=-1)


def ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, with 0 / 0 = 0."""
    return jnp.where(bottom > 0, top / jnp.where(bottom > 0, bottom, 1), jnp.where(top > 0, jnp.inf, 0))


def sense(maximize: ArrayLike) -> Array:
    """-1 where a client maximises, 1 where it minimises. An array gives one sense per leading index."""
    flag = jnp.asarray(maximize)
    sign = jnp.where(flag, -1, 1)
    return sign[..., None] if flag.ndim else sign


class Regret(Loss):
    """The regret itself, for choosing among candidates. It is flat almost everywhere, so nothing can be trained on it."""

    name = "regret"
    trains = False

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        return jnp.sum(rows.c * (s.solve(c_hat) - rows.w_star), axis=-1)
