"""Buying an amount k out of d unit offers: {w in [0, 1]^d, sum w = k}."""

from __future__ import annotations

import math
from typing import Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dffl.sets._numerics import level
from dffl.sets.base import Bracket, NumberSet, Parameter, dimension, parameter, require
from dffl.sets.parameters import NUMBER
from dffl.sets.ranking import weight_before


class TopK(NumberSet):
    """Choose k of d: {w in [0, 1]^d, sum w = k}.

    The best decision takes the k cheapest; a fractional k takes a part of one more.
    """

    toml_name = "top-k"
    toml_parameters = {"k": NUMBER}

    k: Parameter

    def __init__(self, dim: int, k: ArrayLike):
        self._dim = dimension("TopK", dim)
        self.k = parameter("TopK", "k", k, 0)
        require("TopK", "k", self.k, (self.k >= 0) & (self.k <= self.dim), f"in [0, {self.dim}]")

    def in_words(self) -> str:
        return f"choose {float(self.k):.6g} of {self.dim}"

    def _minimise(self, c: Array) -> Array:
        return jnp.clip(self.k - weight_before(c, jnp.ones((), c.dtype)[None]), 0, 1)

    def _project(self, v: Array) -> Array:
        # clip(v - m, 0, 1) for the m that takes k. It is between p - 1 and p, where p is the last entry that top-k takes: so
        # entries farther than 1 from p are 0 or 1, and differences to p keep their digits however large v is.
        taken = weight_before(-v, jnp.ones((), v.dtype)[None]) < self.k
        last = jnp.min(jnp.where(taken, v, jnp.inf), axis=-1, keepdims=True)
        last = jnp.where(jnp.isfinite(last), last, jnp.max(v, axis=-1, keepdims=True))
        return level(jnp.clip(v - last, -1, 1), jnp.ones_like(v), self.k, taken)

    def _largest_norm(self) -> float:
        items = math.floor(float(self.k))
        return math.sqrt(items + (float(self.k) - items) ** 2)

    def _excess(self, w: Array) -> Array:
        box = jnp.maximum(jnp.max(-w, axis=-1), jnp.max(w - 1, axis=-1))
        return jnp.maximum(box, jnp.abs(jnp.sum(w, axis=-1) - self.k) / jnp.maximum(self.k, 1))

    def _diameter(self) -> Bracket:
        m = min(float(self.k), self.dim - float(self.k))
        items = math.floor(m)
        part = m - items if 2 * math.ceil(m) <= self.dim else 0.0
        return Bracket.at(math.sqrt(2 * (items + part * part)))

    def _hausdorff(self, other: Self) -> Bracket:
        # The distance of the hyperplanes and the distance inside them are at right angles.
        planes = float(self.k - other.k) / math.sqrt(self.dim)
        return Bracket.at(math.hypot(planes, self._shape_distance(other).upper))

    def _shape_distance(self, other: Self) -> Bracket:
        """The largest difference of the supports over unit directions that sum to zero.

        The support of u is weights . sort(u), so the difference is largest along the projection of the difference in
        weights onto the sorted vectors (isotonic regression), and equals that projection's length. By symmetry the best
        shift is along the ones, which only removes the mean.
        """
        from scipy.optimize import isotonic_regression  # slow to import, and needed here alone

        places = np.arange(self.dim)
        gap = np.clip(float(self.k) - places, 0, 1) - np.clip(float(other.k) - places, 0, 1)
        sides = (isotonic_regression(gap, increasing=up).x for up in (False, True))
        return Bracket.at(max(float(np.linalg.norm(side - gap.mean())) for side in sides) if gap.any() else 0.0)
