"""Balls and ellipsoids: the smooth sets with a closed-form oracle."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dffl.sets.base import Bracket, Parameter, VectorSet, broadcast_batch, frozen, parameter, require
from dffl.sets.geometry import ellipsoid as geometry


class Ball(VectorSet):
    """All points within ``radius`` of ``center``. A zero cost gives the centre."""

    center: Parameter
    radius: Parameter

    def __init__(self, center: ArrayLike, radius: ArrayLike):
        m, r = parameter("Ball", "center", center, 1), parameter("Ball", "radius", radius, 0)
        require("Ball", "radius", r, r >= 0, ">= 0")
        self.center, self.radius = broadcast_batch("Ball", center=(m, 1), radius=(r, 0))

    def _minimise(self, c: Array) -> Array:
        return self.center - self.radius * unit(c)

    def _excess(self, w: Array) -> Array:
        size = jnp.maximum(self.radius, jnp.max(jnp.abs(self.center)))
        excess = jnp.linalg.norm(w - self.center, axis=-1) - self.radius
        return excess / jnp.where(size > 0, size, 1)

    def _diameter(self) -> Bracket:
        return Bracket.at(2 * float(self.radius))

    def _curvature(self) -> float:
        return float(self.radius)

    def _hausdorff(self, other: Self) -> Bracket:
        return Bracket.at(float(np.linalg.norm(self.center - other.center)) + abs(float(self.radius - other.radius)))

    def _shape_distance(self, other: Self) -> Bracket:
        return Bracket.at(abs(float(self.radius - other.radius)))


class Ellipsoid(VectorSet):
    """{w : (w - center)' Q^-1 (w - center) <= 1} for a positive definite ``shape`` Q. A zero cost gives the centre."""

    center: Parameter
    shape: Parameter
    root: Parameter  # Q = root root', so Q u / sqrt(u' Q u) = root unit(root' u)

    def __init__(self, center: ArrayLike, shape: ArrayLike):
        m, q = parameter("Ellipsoid", "center", center, 1), parameter("Ellipsoid", "shape", shape, 2)
        d = m.shape[-1]
        if q.shape[-2:] != (d, d):
            raise ValueError(f"Ellipsoid: shape must be ({d}, {d}) as center has {d} entries, found {q.shape[-2:]}")
        skew = q - np.swapaxes(q, -1, -2)
        level = np.abs(q).max(axis=(-1, -2), keepdims=True)
        require("Ellipsoid", "shape minus its transpose", skew, np.abs(skew) <= 1e-9 * level, "0 (symmetric)")
        values = np.linalg.eigvalsh(q)
        lowest, highest = values[..., 0], values[..., -1]
        require("Ellipsoid", "shape's lowest eigenvalue", lowest, lowest > 1e-13 * np.abs(highest), "> 0 (positive definite)")
        self.center, self.shape = broadcast_batch("Ellipsoid", center=(m, 1), shape=(q, 2))
        self.root = frozen(np.linalg.cholesky(self.shape))

    def _minimise(self, c: Array) -> Array:
        return self.center - unit(unit(c) @ self.root) @ self.root.T

    def _excess(self, w: Array) -> Array:
        y = jnp.linalg.solve(self.root, (w - self.center)[..., None])[..., 0]
        return jnp.linalg.norm(y, axis=-1) - 1

    def _axes(self) -> np.ndarray:
        return np.sqrt(np.linalg.eigvalsh(self.shape))

    def _diameter(self) -> Bracket:
        return Bracket.at(2 * float(self._axes()[-1]))

    def _curvature(self) -> float:
        axes = self._axes()
        return float(axes[-1] ** 2 / axes[0])

    def _hausdorff(self, other: Self) -> Bracket:
        gap = self.center - other.center
        if not gap.any():
            return geometry.stretch(self.shape, other.shape)[0]
        sides = [geometry.reach_out(a.shape, b.shape, gap) for a, b in ((self, other), (other, self))]
        return Bracket(max(s.lower for s in sides), max(s.upper for s in sides))

    def _shape_distance(self, other: Self) -> Bracket:
        # Both are symmetric about their centres, so the best shift aligns these.
        return geometry.stretch(self.shape, other.shape)[0]


def unit(x: Array) -> Array:
    """x / |x|, or zero; scaled first, so that neither tiny nor huge entries overflow when squared."""
    scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True)
    x = x / jnp.where(scale > 0, scale, 1)
    norm = jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))
    return x / jnp.where(norm > 0, norm, 1)
