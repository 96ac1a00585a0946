"""Balls and ellipsoids: the smooth sets with a closed-form oracle."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.sets.base import Bracket, Parameter, VectorSet, broadcast_batch, frozen, parameter, require
from dffl.sets.geometry import ellipsoid as geometry
from dffl.sets.parameters import EACH, MATRIX, NUMBER


class Ball(VectorSet):
    """All points within ``radius`` of ``center``. A zero cost gives the centre."""

    toml_name = "ball"
    toml_parameters = {"center": EACH, "radius": NUMBER}

    center: Parameter
    radius: Parameter

    def __init__(self, center: ArrayLike, radius: ArrayLike):
        m, r = parameter("Ball", "center", center, 1), parameter("Ball", "radius", radius, 0)
        require("Ball", "radius", r, r >= 0, ">= 0")
        self.center, self.radius = broadcast_batch("Ball", center=(m, 1), radius=(r, 0))

    def in_words(self) -> str:
        return f"a point of a ball, {self.dim} decisions"

    def _minimise(self, c: Array) -> Array:
        return self.center - self.radius * unit(c)

    def _project(self, v: Array) -> Array:
        gap = v - self.center
        inside = jnp.linalg.norm(gap, axis=-1, keepdims=True) <= self.radius
        return jnp.where(inside, v, self.center + self.radius * unit(gap))

    def _largest_norm(self) -> float:
        return float(np.linalg.norm(self.center)) + float(self.radius)

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

    toml_name = "ellipsoid"
    toml_parameters = {"center": EACH, "shape": MATRIX}

    center: Parameter
    shape: Parameter
    root: Parameter  # Q = root root', so Q u / sqrt(u' Q u) = root unit(root' u)
    axes: Parameter  # the axes' directions, as columns
    lengths: Parameter  # half of the axes' lengths

    def __init__(self, center: ArrayLike, shape: ArrayLike):
        m, q = parameter("Ellipsoid", "center", center, 1), parameter("Ellipsoid", "shape", shape, 2)
        d = m.shape[-1]
        if q.shape[-2:] != (d, d):
            raise ValueError(f"Ellipsoid: shape must be ({d}, {d}) as center has {d} entries, found {q.shape[-2:]}")
        skew = q - np.swapaxes(q, -1, -2)
        level = np.abs(q).max(axis=(-1, -2), keepdims=True)
        require("Ellipsoid", "shape minus its transpose", skew, np.abs(skew) <= 1e-9 * level, "0 (symmetric)")
        values, directions = np.linalg.eigh(q)
        lowest, highest = values[..., 0], values[..., -1]
        require("Ellipsoid", "shape's lowest eigenvalue", lowest, lowest > 1e-13 * np.abs(highest), "> 0 (positive definite)")
        self.center, self.shape = broadcast_batch("Ellipsoid", center=(m, 1), shape=(q, 2))
        self.root = frozen(np.linalg.cholesky(self.shape))
        batch = self.center.shape[:-1]
        self.axes = frozen(np.broadcast_to(directions, (*batch, d, d)).copy())
        self.lengths = frozen(np.broadcast_to(np.sqrt(values), (*batch, d)).copy())

    def in_words(self) -> str:
        return f"a point of an ellipsoid, {self.dim} decisions"

    def _minimise(self, c: Array) -> Array:
        return self.center - unit(unit(c) @ self.root) @ self.root.T

    def _project(self, v: Array) -> Array:
        y = unit_projection((v - self.center) @ self.axes / self.lengths, self.lengths)
        inside = jnp.linalg.norm((v - self.center) @ self.axes / self.lengths, axis=-1, keepdims=True) <= 1
        return jnp.where(inside, v, self.center + (self.lengths * y) @ self.axes.T)

    def _largest_norm(self) -> float:
        return float(np.linalg.norm(self.center) + self.lengths.max())

    def _excess(self, w: Array) -> Array:
        y = jnp.linalg.solve(self.root, (w - self.center)[..., None])[..., 0]
        return jnp.linalg.norm(y, axis=-1) - 1

    def _diameter(self) -> Bracket:
        return Bracket.at(2 * float(self.lengths[-1]))

    def _curvature(self) -> float:
        return float(self.lengths[-1] ** 2 / self.lengths[0])

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


def unit_projection(e: Array, lengths: Array, steps: int = 60) -> Array:
    """The nearest point of an ellipsoid in coordinates of the unit ball: e and the answer are divided by the half axes.

    It is e / (1 + m r) with r = (longest / length)^2 and the m >= 0 at which its norm is 1. One over the norm is close to
    linear in m and concave, so Newton's method, from a lower bound of m on, comes closer from below and stops at rounding.
    """
    stretch = (jnp.max(lengths) / lengths) ** 2
    eps = float(jnp.finfo(e.dtype).eps)

    def norm_and_fall(m: Array) -> tuple[Array, Array]:
        shrink = 1 + m[..., None] * stretch
        y = e / shrink
        return jnp.linalg.norm(y, axis=-1), jnp.sum(y * y * stretch / shrink, axis=-1)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        step, m, done = state
        norm, fall = norm_and_fall(m)
        further = norm * norm * (norm - 1) / jnp.where(fall > 0, fall, 1)
        close = ~(further > 2 * eps * m)  # also where it is not a number
        return step + 1, jnp.where(done | close, m, m + further), done | close

    least = jnp.max((jnp.abs(e) - 1) / stretch, axis=-1)
    begin = (jnp.zeros((), jnp.int32), jnp.maximum(least, 0), jnp.zeros(e.shape[:-1], bool))
    m = lax.while_loop(lambda q: ~jnp.all(q[2]) & (q[0] < steps), advance, begin)[1]
    y = e / (1 + m[..., None] * stretch)
    return y / jnp.maximum(jnp.linalg.norm(y, axis=-1, keepdims=True), 1)
