"""The box {l <= w <= u}."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dffl.sets.base import Bracket, Parameter, VectorSet, broadcast_batch, parameter, require
from dffl.sets.parameters import EACH


class Box(VectorSet):
    """Independent bounds: {lower <= w <= upper}. A cost of zero takes the lower bound."""

    toml_name = "box"
    toml_parameters = {"lower": EACH, "upper": EACH}

    lower: Parameter
    upper: Parameter

    def __init__(self, lower: ArrayLike, upper: ArrayLike):
        low, up = parameter("Box", "lower", lower, 1), parameter("Box", "upper", upper, 1)
        if low.shape[-1] != up.shape[-1]:
            raise ValueError(f"Box: lower and upper must be equally long, found {low.shape[-1]} and {up.shape[-1]}")
        self.lower, self.upper = broadcast_batch("Box", lower=(low, 1), upper=(up, 1))
        require("Box", "upper - lower", self.upper - self.lower, self.upper >= self.lower, ">= 0 (not reversed)")

    def in_words(self) -> str:
        return f"{self.dim} amounts, each within its limits"

    def _minimise(self, c: Array) -> Array:
        return jnp.where(c < 0, self.upper, self.lower)

    def _project(self, v: Array) -> Array:
        return jnp.clip(v, self.lower, self.upper)

    def _largest_norm(self) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    def _excess(self, w: Array) -> Array:
        size = jnp.maximum(jnp.abs(self.lower), jnp.abs(self.upper))
        excess = jnp.maximum(self.lower - w, w - self.upper)
        return jnp.max(excess / jnp.where(size > 0, size, 1), axis=-1)

    def _diameter(self) -> Bracket:
        return Bracket.at(float(np.linalg.norm(self.upper - self.lower)))

    def _hausdorff(self, other: Self) -> Bracket:
        return _farther_side(self.upper - other.upper, other.lower - self.lower)

    def _shape_distance(self, other: Self) -> Bracket:
        # The two overhangs of a coordinate sum to the difference in width, so the best shift makes them equal.
        wider = ((self.upper - self.lower) - (other.upper - other.lower)) / 2
        return _farther_side(wider, wider)


def _farther_side(above: np.ndarray, below: np.ndarray) -> Bracket:
    """The distance of boxes, of which one stands out by ``above`` and ``below`` and the other by what these are negated."""
    first, second = np.maximum(np.maximum(above, below), 0), np.maximum(-np.minimum(above, below), 0)
    return Bracket.at(max(float(np.linalg.norm(first)), float(np.linalg.norm(second))))
