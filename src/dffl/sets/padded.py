"""A set in one more coordinate, which is always zero: to be compared with sets that have a known part."""

from __future__ import annotations

from typing import ClassVar, Self

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dffl.sets.base import Bracket, FeasibleSet


class Padded(FeasibleSet):
    """All (w, 0) for w in a set whose objective has no known part."""

    internal: ClassVar[bool] = True

    base: FeasibleSet

    def __init__(self, base: FeasibleSet):
        self.base = base

    @property
    def dim(self) -> int:
        return self.base.dim + 1

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.base.batch_shape

    @property
    def predicted(self) -> int:
        return self.base.dim

    @property
    def on_host(self) -> bool:  # type: ignore[override]
        return self.base.on_host

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.base.convex

    def solve(self, c: ArrayLike) -> Array:
        # Through the base's own solve: a set on the host has one of its own.
        costs = self._checked(c, "costs")
        return _with_zero(self.base.solve(costs[..., :-1]))

    def _minimise(self, c: Array) -> Array:
        return _with_zero(self.base._minimise(c[..., :-1]))

    def _excess(self, w: Array) -> Array:
        return jnp.maximum(self.base._excess(w[..., :-1]), jnp.abs(w[..., -1]))

    @property
    def has_diameter(self) -> bool:
        return self.base.has_diameter

    def _diameter(self) -> Bracket:
        return self.base.diameter()

    def _largest_norm(self) -> float:
        return self.base.largest_norm()

    def _hausdorff(self, other: Self) -> Bracket | None:
        return self.base._hausdorff(other.base) if type(self.base) is type(other.base) else None

    def _shape_distance(self, other: Self) -> Bracket | None:
        return self.base._shape_distance(other.base) if type(self.base) is type(other.base) else None


def _with_zero(w: Array) -> Array:
    return jnp.concatenate([w, jnp.zeros((*w.shape[:-1], 1), w.dtype)], axis=-1)
