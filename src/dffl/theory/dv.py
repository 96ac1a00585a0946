"""Bounds of the entropy set {w >= 0, sum w = 1, H(w) >= h}, which is not strongly convex unless h > log(d - 1).

Let w* = w*(c) and b = b(c) be the optimum and the multiplier of the entropy constraint, both from the oracle. Where the
constraint is active, w* = softmax(-c / b), and for every w of the set

    c . (w - w*) = b (KL(w || w*) + H(w) - H(w*)) >= b KL(w || w*) >= b |w - w*|^2.              (growth)

The last step is Pinsker's inequality with |v|_1^2 >= 2 |v|^2 for vectors of sum 0. Everything here follows from it.
"""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import ArrayLike

from dffl.sets import EntropySimplex
from dffl.sets.entropy import gibbs
from dffl.theory.vectors import centred, dot, norm, vectors

_gibbs = jax.jit(gibbs)


def dv_bound(c_hat: ArrayLike, c: ArrayLike, s: EntropySimplex) -> np.ndarray:
    """An upper bound on the SPO+ loss of an entropy set: b log sum_i w*_i exp(2 e_i / b) - 2 e . w*, e = c - c_hat.

    SPO+ is the maximum of 2 e . (w - w*) - c . (w - w*) over the set. By (growth) the last product is at least
    b KL(w || w*), and the maximum of 2 e . w - b KL(w || w*) over all distributions is the logarithm above (Donsker and
    Varadhan). Seen from duality it is the Lagrange dual of that maximum at the multiplier b, and any multiplier gives a
    bound; at 0, which is the multiplier where the constraint is slack, it is max_i (2 e_i - c_i) - (2 e - c) . w*, the
    loss of the whole simplex with the same w*. Where the set is the single uniform point the loss is 0.

    Not in the paper; it explains what strong convexity was to explain there. Attained where softmax((2 e - c) / b) has
    the entropy h.
    """
    c_hat, c = vectors("dv_bound", "c_hat", c_hat, s), vectors("dv_bound", "c", c, s)
    e = c - c_hat
    w, log_w, b = optimum(c, s)
    e = e - dot(e, w)[..., None]
    active = (b > 0) & np.isfinite(b)
    safe = np.where(active, b, 1.0)[..., None]
    slack = np.max(2 * e - c, axis=-1) + dot(c, w)  # e . w* is 0 now
    bound = np.where(active, _log_mean_exp(2 * e, log_w, safe), np.where(b > 0, 0.0, slack))
    return np.maximum(bound, 0.0)


def dv_range_bound(c_hat: ArrayLike, c: ArrayLike, s: EntropySimplex) -> np.ndarray:
    """The same in a word: SPO+ <= range(e)^2 / (2 b), by Hoeffding's lemma; infinite where the constraint is slack.

    An entropy set with a large multiplier b forgives errors, and an error that is common to all costs costs nothing.
    """
    c_hat, c = vectors("dv_range_bound", "c_hat", c_hat, s), vectors("dv_range_bound", "c", c, s)
    e = c - c_hat
    span = e.max(axis=-1) - e.min(axis=-1)
    b = optimum(c, s)[2]
    slack = b == 0
    bound = span * (span / np.where(slack, 1, 2 * b))
    return np.where(slack & (span > 0), np.inf, bound)


def directional_radius(c: ArrayLike, s: EntropySimplex) -> np.ndarray:
    """rho(c) = |P c| / (2 b(c)): within {1 . w = 1} the set lies in the ball of this radius that touches it at w*(c).

    That is (growth), divided by |P c|. Infinite where the entropy constraint is slack, 0 where the set is one point. It
    takes the place of the radius rho, which the set has not got, at this one cost.
    """
    c = vectors("directional_radius", "c", c, s)
    b = optimum(c, s)[2]
    return np.where(b > 0, norm(centred(c)) / np.where(b > 0, 2 * b, 1), np.inf)


def entropy_stability(c1: ArrayLike, c2: ArrayLike, s: EntropySimplex) -> np.ndarray:
    """An upper bound on |w*(c1) - w*(c2)|: the distance of 0 from the segment between g1 and -g2, g = P c / b(c).

    By (growth) the step v = w*(c2) - w*(c1) has g1 . v >= |v|^2 and -g2 . v >= |v|^2, so (t g1 - (1 - t) g2) . v >= |v|^2
    and |v| <= |t g1 - (1 - t) g2| for every t in [0, 1]. Weights in proportion to 1 / rho(c) give the harmonic mean of
    rho(c1) and rho(c2) times |p1 - p2|, p = P c / |P c|; the best t is never worse. Where the constraint is slack at one
    of the two costs the other's ball still bounds the step by its diameter |g|; slack at both there is no bound (inf).
    """
    c1, c2 = vectors("entropy_stability", "c1", c1, s), vectors("entropy_stability", "c2", c2, s)
    c1, c2 = np.broadcast_arrays(c1, c2)
    g1, known1 = _pull(c1, s)
    g2, known2 = _pull(c2, s)
    ends = np.minimum(np.where(known1, norm(g1), np.inf), np.where(known2, norm(g2), np.inf))
    both = known1 & known2
    # The nearest point of the segment; scaled, so that steep pulls do not overflow when squared.
    size = np.maximum(norm(g1), norm(g2))[..., None]
    a, o = g1 / np.where(size > 0, size, 1), -g2 / np.where(size > 0, size, 1)
    length = dot(o - a, o - a)
    t = np.clip(dot(o - a, o) / np.where(length > 0, length, 1), 0, 1)[..., None]
    inside = norm(t * a + (1 - t) * o) * size[..., 0]
    return np.where(both, np.minimum(inside, ends), ends)


def optimum(c: np.ndarray, s: EntropySimplex) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w*(c), its logarithm and the multiplier b(c) in float64: b is 0 where the constraint is slack, inf for one point."""
    with jax.enable_x64(True):
        w, log_w, b = _gibbs(c, s.min_entropy, s.spare)
        return np.asarray(w), np.asarray(log_w), np.asarray(b)


def _pull(c: np.ndarray, s: EntropySimplex) -> tuple[np.ndarray, np.ndarray]:
    """g = P c / b, and whether it is known: not where the constraint is slack."""
    b = optimum(c, s)[2]
    return centred(c) / np.where(b > 0, b, 1)[..., None], b > 0


def _log_mean_exp(x: np.ndarray, log_w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """b log sum_i w_i exp(x_i / b) for x of mean 0 under w, exact for steps far below b as well as far above."""
    y = x / b
    small = np.max(np.abs(y), axis=-1) <= 1
    # sum w exp(y) = 1 + sum w (exp(y) - 1 - y), as sum w y = 0: nothing cancels.
    near = np.where(small[..., None], y, 0)
    series = near**2 / 2 * (1 + near / 3 * (1 + near / 4 * (1 + near / 5)))
    rest = np.where(np.abs(near) < 1e-3, series, np.expm1(near) - near)
    level = b * log_w + x
    top = level.max(axis=-1, keepdims=True)
    far = top + b * np.log(np.sum(np.exp((level - top) / b), axis=-1, keepdims=True))
    return np.where(small, b[..., 0] * np.log1p(np.sum(np.exp(log_w) * rest, axis=-1)), far[..., 0])
