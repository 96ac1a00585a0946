"""The entropy-bound portfolio {w >= 0, sum w = 1, H(w) >= h}."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import entr
from jax.typing import ArrayLike

from dffl.sets._numerics import Search, advanced, to_one
from dffl.sets.base import Bracket, NumberSet, Parameter, dimension, frozen, parameter, require
from dffl.sets.entropy_projection import onto_entropy_set
from dffl.sets.geometry import entropy as geometry
from dffl.sets.parameters import NUMBER
from dffl.sets.simplex import onto_unit_simplex

NARROW = 1e-4
"""Thresholds closer than this to 0 or log d are solved in float64 even in a float32 program."""


class EntropySimplex(NumberSet):
    """Portfolios that are spread out enough: {w >= 0, sum w = 1, -sum w log w >= min_entropy}.

    The answer is softmax(-c / b) for the b that meets the threshold. If the uniform
    distribution over the cheapest entries already has enough entropy, it is the answer; so a constant cost gives the
    uniform point.
    """

    toml_name = "entropy-simplex"
    toml_parameters = {"min_entropy": NUMBER}

    min_entropy: Parameter
    spare: Parameter  # log d - min_entropy: near log d the difference does not survive in float32
    double: bool = eqx.field(static=True)

    def __init__(self, dim: int, min_entropy: ArrayLike):
        self._dim = dimension("EntropySimplex", dim)
        h = parameter("EntropySimplex", "min_entropy", min_entropy, 0)
        top = math.log(self.dim)
        # log d as a user computes it may be an ulp above ours: allow that, and no more.
        allowed = f"in [0, log {self.dim} = {top:.6g}]"
        require("EntropySimplex", "min_entropy", h, (h >= 0) & (h <= top * (1 + 1e-15)), allowed)
        self.min_entropy = frozen(np.asarray(np.minimum(h, top)))
        self.spare = frozen(np.asarray(top - self.min_entropy))
        self.double = bool(np.any((h < NARROW) | (self.spare < NARROW)))

    def in_words(self) -> str:
        return f"portfolio of {self.dim}, entropy at least {float(self.min_entropy):.6g}"

    def _minimise(self, c: Array) -> Array:
        if self.double and c.dtype != jnp.float64:
            with jax.enable_x64(True):
                s = self.astype(jnp.float64)
                return gibbs(c.astype(jnp.float64), s.min_entropy, s.spare).w.astype(c.dtype)
        return gibbs(c, self.min_entropy, self.spare).w

    def _project(self, v: Array) -> Array:
        # The answer may be near a corner, where float32 has too few digits.
        with jax.enable_x64(True):
            s, fine = self.astype(jnp.float64), v.astype(jnp.float64)
            plain = onto_unit_simplex(fine)
            # The answer w is the best decision at the costs w - v; half of `plain` is a good guess at that w.
            near = gibbs(0.5 * plain - fine, s.min_entropy, s.spare)
            return onto_entropy_set(fine, plain, (near.log_w, near.b), s.min_entropy, s.spare).astype(v.dtype)

    def _largest_norm(self) -> float:
        # As far from the uniform point as one large weight and equal others: no point with this entropy is farther.
        d = self.dim
        p = 1 / d + geometry.offset(d, float(self.min_entropy), 1 - 1 / d) if d > 1 else 1.0
        return math.hypot(p, (1 - p) / math.sqrt(max(d - 1, 1)))

    def _excess(self, w: Array) -> Array:
        short = self.min_entropy - jnp.sum(entr(jnp.maximum(w, 0)), axis=-1)
        return jnp.maximum(jnp.maximum(jnp.max(-w, axis=-1), jnp.abs(jnp.sum(w, axis=-1) - 1)), short)

    def _diameter(self) -> Bracket:
        d, h = self.dim, float(self.min_entropy)
        if d == 1 or h >= math.log(d):
            return Bracket.at(0.0)
        x = geometry.offset(d, h, 1 - 1 / d)
        p = 1 / d + x
        within_sphere = math.sqrt(2 * (p**2 + (1 - p) ** 2 / (d - 1)))
        twice_radius = 2 * x * math.sqrt(d / (d - 1))
        upper = min(within_sphere, twice_radius)
        # Attained by the maximiser of w_1 - w_2 and its mirror image (conjectured to be the diameter).
        with jax.enable_x64(True):
            w = np.asarray(self.solve(np.eye(d)[1] - np.eye(d)[0]))
        return Bracket(min(math.sqrt(2) * float(w[0] - w[1]), upper), upper)

    def _hausdorff(self, other: Self) -> Bracket:
        d, spare = self.dim, sorted((float(self.spare), float(other.spare)))
        if d == 1 or spare[0] == spare[1]:
            return Bracket.at(0.0)
        inner, outer = (geometry.offset(d, math.log(d) - s, 1 - 1 / d) * math.sqrt(d / (d - 1)) for s in spare)
        # Below: along e_1, in which both sets reach farthest from the uniform point (conjectured to be the distance).
        lower = outer - inner
        upper = lower if d == 2 else geometry.pull_to_uniform(d, spare[0], spare[1], outer)
        return Bracket(min(lower, upper), upper)

    def _shape_distance(self, other: Self) -> Bracket:
        # A shift does not help: by symmetry the best one is along the ones, at right angles to both sets.
        return self._hausdorff(other)

    def _curvature(self) -> float:
        # Below log(d - 1) the set touches the simplex's faces and has flat parts there.
        d, h = self.dim, float(self.min_entropy)
        if d == 1 or h >= math.log(d):
            return 0.0
        if h <= math.log(d - 1):
            return math.inf
        up, down = geometry.offset(d, h, 1 - 1 / d), geometry.offset(d, h, -1 / d)
        if down <= -1 / d:
            return math.inf
        return min(0.5, 1 / d + up) * math.sqrt(d) / 2 * (math.log1p(d * up) - math.log1p(d * down))


class Gibbs(NamedTuple):
    """The oracle's solution: weights, their logarithms (which do not underflow) and the multiplier b."""

    w: Array
    log_w: Array
    b: Array


def gibbs(c: Array, h: Array, spare: Array | None = None) -> Gibbs:
    """Solve H(softmax(-c / b)) = h for b, row by row: c of shape (..., d), h and ``spare`` = log d - h scalars.

    With z = -(c - min c) / range the weights are softmax(s z), s = range / b, whatever the scale of the costs. The
    entropy falls in t = log s. Newton's method on log((log d - H) / H), which is close to linear at both ends, keeps
    a bracket, and a bisection is forced unless every three steps the bracket halves or the error falls tenfold.
    """
    d, dtype = c.shape[-1], c.dtype
    top = jnp.asarray(math.log(d), dtype)
    eps = float(jnp.finfo(dtype).eps)
    unit = to_one(jnp.max(jnp.abs(c), axis=-1, keepdims=True))
    c = c * unit  # at a size of 1 differences neither overflow nor vanish
    gap = c - jnp.min(c, axis=-1, keepdims=True)
    span = jnp.max(gap, axis=-1, keepdims=True)
    z = -gap / jnp.where(span > 0, span, 1)
    tiny = float(jnp.finfo(dtype).tiny)
    # Gaps far below the rounding of the costs are ties: resolving them would take an s that overflows.
    tied = -z < tiny / eps
    z = jnp.where(tied, 0, z)
    ties = jnp.sum(tied, axis=-1, dtype=dtype)
    # The threshold binds unless the ties alone are spread enough, or only the uniform point is feasible.
    spare = top - h if spare is None else spare
    uniform = spare <= 0
    binding = (jnp.log(ties) < h) & ~uniform

    # Bracket: log d - H <= s^2 / 8 as z has range 1; and the entropy is that of the ties once s * gap underflows.
    spare = jnp.maximum(spare, tiny)
    nearest = jnp.min(jnp.where(tied, 1, -z), axis=-1)
    low = jnp.broadcast_to(0.5 * jnp.log(8 * spare), nearest.shape)
    high = jnp.maximum(math.log(-math.log(tiny)) - jnp.log(nearest), low + 1)
    target = jnp.log(spare) - jnp.log(jnp.maximum(h, tiny))
    # Newton converges quadratically: once a step is this small, the point after it is exact to rounding.
    tolerance = 2e-6 if dtype == jnp.float64 else 3e-4
    centre = jnp.mean(z, axis=-1)
    spread = jnp.mean(z * z, axis=-1) - centre * centre
    start = 0.5 * (jnp.log(2 * spare) - jnp.log(jnp.maximum(spread, tiny)))

    never = jnp.full_like(low, jnp.inf)
    begin = Search(jnp.zeros((), jnp.int32), jnp.clip(start, low, high), low, high, high - low, never, ~binding)

    def advance(state: Search) -> Search:
        return advanced(state, *_residual(state.t, z, target), tolerance)

    t = lax.while_loop(lambda q: ~jnp.all(q.done) & (q.step < 200), advance, begin).t
    s = jnp.exp(t)[..., None]
    # Not binding: uniform on the ties (s = infinity) or everywhere (s = 0), without 0 * infinity.
    log_binding = jax.nn.log_softmax(s * z, axis=-1)
    log_ties = jnp.where(tied, -jnp.log(ties)[..., None], -jnp.inf)
    log_w = jnp.where(binding[..., None], log_binding, jnp.where(uniform, -top, log_ties))
    b = jnp.where(binding[..., None], span / s / unit, jnp.where(uniform, jnp.inf, 0))[..., 0]
    return Gibbs(jnp.exp(log_w), log_w, b)


def _residual(t: Array, z: Array, target: Array) -> tuple[Array, Array]:
    """log((log d - H) / H) minus its target, and its derivative in t."""
    top, tiny = jnp.asarray(math.log(z.shape[-1]), z.dtype), float(jnp.finfo(z.dtype).tiny)
    s = jnp.exp(t)
    sz = s[..., None] * z
    e = jnp.exp(sz)
    total = jnp.sum(e, axis=-1)
    mean = jnp.sum(e * sz, axis=-1) / total
    square = jnp.sum(e * sz * sz, axis=-1) / total
    # Near a vertex H is a sum of small positive terms; near the uniform point log d - H is the safe one.
    entropy = jnp.log1p(total - 1) - mean
    lack = mean - jnp.log1p(jnp.mean(jnp.expm1(sz), axis=-1))
    entropy = jnp.where(lack < 0.5 * top, top - lack, entropy)
    lack = jnp.where(entropy < 0.5 * top, top - entropy, lack)
    entropy, lack = jnp.maximum(entropy, tiny), jnp.maximum(lack, tiny)
    slope = (square - mean * mean) * top / (entropy * lack)
    return jnp.log(lack) - jnp.log(entropy) - target, slope
