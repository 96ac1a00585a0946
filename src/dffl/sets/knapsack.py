"""The fractional knapsack {w in [0, 1]^d, a . w <= B}."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dffl.sets.base import Bracket, FeasibleSet, Parameter, broadcast_batch, parameter, require
from dffl.sets.ranking import weight_before


class FractionalKnapsack(FeasibleSet):
    """Shares of d items, at most 1 each, whose weights fit a budget: {w in [0, 1]^d, a . w <= B}.

    Items are taken by cost for each unit of weight, cheapest first; items that cost nothing or something are
    left out even when there is budget to spare.
    """

    weights: Parameter
    budget: Parameter

    def __init__(self, weights: ArrayLike, budget: ArrayLike):
        name = "FractionalKnapsack"
        a = parameter(name, "weights", weights, 1)
        b = parameter(name, "budget", budget, 0)
        require(name, "weights", a, a > 0, "> 0")
        require(name, "budget", b, b >= 0, ">= 0")
        self.weights, self.budget = broadcast_batch(name, {"weights": a, "budget": b}, {"weights": 1, "budget": 0})

    @property
    def dim(self) -> int:
        return int(self.weights.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.budget))

    @property
    def saturated(self) -> np.ndarray:
        """Whether the budget covers all items: the set is then the whole box [0, 1]^d."""
        return np.asarray(self.budget >= self.weights.sum(axis=-1))

    def _minimise(self, c: Array) -> Array:
        wanted = c < 0
        before = weight_before(c / self.weights, jnp.where(wanted, self.weights, 0))
        return jnp.where(wanted, jnp.clip((self.budget - before) / self.weights, 0, 1), 0)

    def _excess(self, w: Array) -> Array:
        box = jnp.maximum(jnp.max(-w, axis=-1), jnp.max(w - 1, axis=-1))
        budget = jnp.sum(w * self.weights, axis=-1) - self.budget
        return jnp.maximum(box, budget / jnp.maximum(self.budget, jnp.min(self.weights)))

    def _diameter(self) -> Bracket:
        a = np.sort(np.asarray(self.weights))
        total, budget = float(a.sum()), float(min(self.budget, a.sum()))
        if total + a[-1] <= 2 * budget or budget >= total:
            return Bracket(math.sqrt(a.size), math.sqrt(a.size))
        upper = math.sqrt(min(a.size, _lightest_count(a, 2 * budget)))
        return Bracket(min(_two_bin_distance(a, budget), upper), upper)


def _lightest_count(a: np.ndarray, weight: float) -> float:
    """G(t): how many items, fractionally, the lightest ones of total weight t are. ``a`` is sorted."""
    filled = np.clip((weight - (np.cumsum(a) - a)) / a, 0, 1)
    return float(filled.sum())


def _two_bin_distance(a: np.ndarray, budget: float) -> float:
    """A distance that is attained: the lightest items, split into two bins that each fit the budget.

    Two feasible points with disjoint supports are that far apart. The items go to the emptier bin, heaviest
    first; one more item fills what is left of each bin. ``a`` is sorted.
    """
    for count in range(a.size, 0, -1):
        light, heavy = 0.0, 0.0
        for weight in a[:count][::-1]:
            light, heavy = sorted((light + float(weight), heavy))
        if heavy <= budget:
            break
    else:
        count, light, heavy = 0, 0.0, 0.0
    rest = a[count : count + 2]
    shares = [min(1.0, (budget - used) / w) for used, w in zip((light, heavy), rest, strict=False)]
    return math.sqrt(count + sum(s * s for s in shares))
