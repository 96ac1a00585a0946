"""What the bounds need to know about one feasible set, and about two: computed once, kept, and valid for every cost.

Where only a bracket is known its upper end counts, so that every bound stays one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import jax
import numpy as np

from dffl.sets import FeasibleSet, hausdorff, shape_distance
from dffl.theory.risk import BoundForm


@dataclass(frozen=True)
class Geometry:
    """One set: its diameter D, its radius of strong convexity rho, and whether all its points have the same sum.

    On a set inside {1 . w = const} the radius is that within this hyperplane: it goes with projected costs.
    """

    diameter: float
    """Infinite where a known part of the objective has no bound."""
    rho: float
    flat: bool

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(s: FeasibleSet) -> Geometry:
        """The geometry of this set, kept for sets of equal content."""
        diameter = s.diameter().upper
        # A known part without bounds: the oracle has no answer in every direction, so no more is asked.
        return Geometry(diameter, s.curvature(), math.isfinite(diameter) and fixed_sum(s))


@dataclass(frozen=True)
class Pair:
    """Two sets: the geometry of each, and delta, their shape distance (the least Hausdorff distance over all shifts)."""

    first: Geometry
    second: Geometry
    delta: float

    @classmethod
    def of(cls, s1: FeasibleSet, s2: FeasibleSet) -> Pair:
        """The geometry of these two sets, kept for sets of equal content."""
        return _pair(s1, s2, moved=True)

    @classmethod
    def unmoved(cls, s1: FeasibleSet, s2: FeasibleSet) -> Pair:
        """The same with the Hausdorff distance as delta, for statements that a shift of one set would change."""
        return _pair(s1, s2, moved=False)

    @property
    def flat(self) -> bool:
        """Whether both sets lie inside {1 . w = const}: costs may then be projected without a change of any loss."""
        return self.first.flat and self.second.flat

    @property
    def diameter(self) -> float:
        """D_min, the smaller of the two diameters."""
        return min(self.first.diameter, self.second.diameter)

    @property
    def radii(self) -> tuple[float, float]:
        """The two radii; infinite for a set that is curved only within a hyperplane that the other does not share."""
        return _radius(self.first, self.flat), _radius(self.second, self.flat)


def fixed_sum(s: FeasibleSet) -> bool:
    """Whether all points of the set have the same sum: its width along (1, ..., 1) is zero up to rounding."""
    ones = np.ones(s.dim)
    with jax.enable_x64(True):
        # One by one: the entropy set's diameter needs a program for this shape too, and compiling it takes a second.
        ends = np.stack([np.asarray(s.solve(-ones)), np.asarray(s.solve(ones))])
    highest, lowest = ends.sum(axis=-1)
    # Against the rounding of the points themselves: to miss such a set costs sharpness, to see one that is none costs validity.
    return bool(abs(highest - lowest) <= 1e-12 * np.abs(ends).sum(axis=-1).max())


def _radius(g: Geometry, flat: bool) -> float:
    return g.rho if flat or not g.flat or g.rho == 0 else math.inf


def harmonic_mean(r1: float, r2: float) -> float:
    """2 / (1 / r1 + 1 / r2), also for radii of 0 and infinity."""
    if 0 in (r1, r2):
        return 0.0
    return 2 / (1 / r1 + 1 / r2) if math.isfinite(r1) or math.isfinite(r2) else math.inf


def set_shift(delta: float, r1: float, r2: float, form: BoundForm = "sharp") -> float:
    """How far the optima of two sets at distance delta can differ at one common cost."""
    least = min(r1, r2)
    if math.isinf(least):
        return math.inf
    if form == "paper":
        return delta + 2 * math.sqrt(least * delta)
    return math.sqrt(delta**2 + 2 * harmonic_mean(r1, r2) * delta)


def decision_shift(angle: np.ndarray, delta: float, r1: float, r2: float, form: BoundForm = "sharp") -> np.ndarray:
    """Gamma: how far the optima of two sets can differ at costs whose directions differ by ``angle`` = |p1 - p2|."""
    least, mean = min(r1, r2), harmonic_mean(r1, r2)
    if math.isinf(least):
        return np.full(np.shape(angle), math.inf)
    # One after the other: turn the cost on the rounder set, then change the set.
    path = least * angle + set_shift(delta, r1, r2, form)
    if form == "paper":
        return path
    # Both at once: each optimum lies within delta of the ball that holds the other set.
    half = mean * angle / 2
    return np.minimum(path, half + np.sqrt(half**2 + 2 * mean * delta + delta**2))


@lru_cache(maxsize=65536)
def _pair(s1: FeasibleSet, s2: FeasibleSet, moved: bool) -> Pair:
    if s1.dim != s2.dim:
        raise ValueError(f"the two sets must have the same dimension, found {s1.dim} and {s2.dim}")
    first, second = Geometry.of(s1), Geometry.of(s2)
    distance = shape_distance if moved else hausdorff
    bounded = math.isfinite(first.diameter) and math.isfinite(second.diameter)
    return Pair(first, second, distance(s1, s2).upper if bounded else math.inf)
