"""The scaled simplex {w >= 0, sum w = s}."""

from __future__ import annotations

import math
from typing import Self

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dffl.sets._numerics import level
from dffl.sets.base import Bracket, NumberSet, Parameter, dimension, parameter, require
from dffl.sets.parameters import NUMBER


class Simplex(NumberSet):
    """Shares of a total ``scale``: {w >= 0, sum w = scale}. The best decision gives the whole total to the cheapest entry."""

    toml_name = "simplex"
    toml_parameters = {"scale": NUMBER}

    scale: Parameter

    def __init__(self, dim: int, scale: ArrayLike = 1.0):
        self._dim = dimension("Simplex", dim)
        self.scale = parameter("Simplex", "scale", scale, 0)
        require("Simplex", "scale", self.scale, self.scale >= 0, ">= 0")

    def in_words(self) -> str:
        return f"divide {float(self.scale):.6g} among {self.dim}"

    def _minimise(self, c: Array) -> Array:
        return self.scale * jax.nn.one_hot(jnp.argmin(c, axis=-1), self.dim, dtype=c.dtype)

    def _project(self, v: Array) -> Array:
        return self.scale * onto_unit_simplex(v, jnp.where(self.scale > 0, self.scale, 1))

    def _largest_norm(self) -> float:
        return float(self.scale)

    def _excess(self, w: Array) -> Array:
        size = jnp.where(self.scale > 0, self.scale, 1)
        off = jnp.abs(jnp.sum(w, axis=-1) - self.scale)
        return jnp.maximum(jnp.max(-w, axis=-1), off) / size

    def _diameter(self) -> Bracket:
        return Bracket.at(float(self.scale) * math.sqrt(2) if self.dim > 1 else 0.0)

    def _hausdorff(self, other: Self) -> Bracket:
        return Bracket.at(abs(float(self.scale - other.scale)))

    def _shape_distance(self, other: Self) -> Bracket:
        # The best shift aligns the centres: what is left is the largest entry of a unit vector that sums to zero.
        return Bracket.at(abs(float(self.scale - other.scale)) * math.sqrt(1 - 1 / self.dim))


def onto_unit_simplex(v: Array, unit: ArrayLike = 1) -> Array:
    """The projection of v / unit, (..., d), onto {w >= 0, sum w = 1}: max(v / unit - m, 0), m within 1 below the largest."""
    below = (v - jnp.max(v, axis=-1, keepdims=True)) / unit
    ones = jnp.ones_like(v)
    return level(jnp.maximum(below, -1), ones, ones[..., 0], below == 0)
