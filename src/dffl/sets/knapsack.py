"""The fractional knapsack {w in [0, 1]^d, a . w <= B}."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dffl.sets._numerics import level
from dffl.sets.base import Bracket, Parameter, VectorSet, broadcast_batch, parameter, require
from dffl.sets.geometry import knapsack as geometry
from dffl.sets.parameters import EACH, NUMBER
from dffl.sets.ranking import ratio_order, weight_before


class FractionalKnapsack(VectorSet):
    """Shares of d items, at most 1 each, whose weights fit a budget: {w in [0, 1]^d, a . w <= B}.

    Items are taken by cost for each unit of weight, cheapest first. Items whose cost is not negative are never taken, even
    if there is budget left. ``weights`` is a (d,), ``budget`` is B.
    """

    toml_name = "fractional-knapsack"
    toml_parameters = {"weights": EACH, "budget": NUMBER}

    weights: Parameter
    budget: Parameter

    def __init__(self, weights: ArrayLike, budget: ArrayLike):
        name = "FractionalKnapsack"
        a, b = parameter(name, "weights", weights, 1), parameter(name, "budget", budget, 0)
        require(name, "weights", a, a > 0, "> 0")
        require(name, "budget", b, b >= 0, ">= 0")
        self.weights, self.budget = broadcast_batch(name, weights=(a, 1), budget=(b, 0))

    def in_words(self) -> str:
        return packed_in_words("shares of", self.weights, float(self.budget))

    @property
    def saturated(self) -> np.ndarray:
        """Whether the budget covers all items: the set is then the whole box [0, 1]^d."""
        return np.asarray(self.budget >= self.weights.sum(axis=-1))

    def _minimise(self, c: Array) -> Array:
        wanted = c < 0
        before = weight_before(ratio_order(c, self.weights), jnp.where(wanted, self.weights, 0))
        return jnp.where(wanted, jnp.clip((self.budget - before) / self.weights, 0, 1), 0)

    def _project(self, v: Array) -> Array:
        # clip(v - m a, 0, 1) with the smallest m >= 0 that fits the budget. The items that a greedy fill by v / a takes fill it
        # by themselves, and m is below the ratio of the last one: subtracted, it leaves the numbers that matter at size 1.
        free, wanted = jnp.clip(v, 0, 1), v > 0
        before = weight_before(ratio_order(-v, self.weights), jnp.where(wanted, self.weights, 0))
        taken, ratio = wanted & (before < self.budget), v / self.weights
        last = jnp.min(jnp.where(taken, ratio, jnp.inf), axis=-1, keepdims=True)
        last = jnp.where(jnp.isfinite(last), last, jnp.max(ratio, axis=-1, keepdims=True))
        w = level(jnp.minimum(v - last * self.weights, 1), self.weights, self.budget, taken)
        used = jnp.sum(self.weights * w, axis=-1, keepdims=True)
        w = w * jnp.where(used > self.budget, self.budget / jnp.where(used > 0, used, 1), 1)  # rounding alone overfills it
        return jnp.where(jnp.sum(self.weights * free, axis=-1, keepdims=True) > self.budget, w, free)

    def _largest_norm(self) -> float:
        # Of all vertices, the one that fills the lightest items first: an exchange for a heavier item leaves a smaller rest.
        weights = np.sort(self.weights)
        before = np.cumsum(weights) - weights
        return float(np.linalg.norm(np.clip((float(self.budget) - before) / weights, 0, 1)))

    def _excess(self, w: Array) -> Array:
        box = jnp.maximum(jnp.max(-w, axis=-1), jnp.max(w - 1, axis=-1))
        budget = jnp.sum(w * self.weights, axis=-1) - self.budget
        return jnp.maximum(box, budget / jnp.maximum(self.budget, jnp.min(self.weights)))

    def _diameter(self) -> Bracket:
        return self._sack().diameter()

    def _hausdorff(self, other: Self) -> Bracket:
        return geometry.hausdorff(self._sack(), other._sack())

    def _shape_distance(self, other: Self) -> Bracket:
        return geometry.shape_distance(self._sack(), other._sack())

    def _sack(self) -> geometry.Sack:
        return geometry.Sack(self.weights, float(min(self.budget, self.weights.sum())))


def packed_in_words(how: str, weights: np.ndarray, budget: float) -> str:
    """A knapsack's words for reports: its items, and the share of their weight that the budget covers."""
    total = float(weights.sum())
    covers = "all of them" if budget >= total else f"{budget / total:.0%} of their weight"
    return f"{how} {weights.shape[-1]} items, budget for {covers}"
