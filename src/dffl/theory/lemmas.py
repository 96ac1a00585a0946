"""The paper's statements about single losses and decisions, one function each, with our verdict on each.

A function gives the right side of its statement, for a client that minimises (negate all costs for one that maximises),
with one value for each leading index of its vectors. On sets inside {1 . w = const} costs are projected, P x = x - mean x,
wherever a constant added to all of them changes nothing on the left side. Every proof behind a verdict is short and stands
in the docstring; "tight" means that equality is attained.
"""

from __future__ import annotations

import math

import jax
import numpy as np
from numpy.typing import ArrayLike

from dffl.sets import FeasibleSet
from dffl.theory.bounds import ball_ceiling_of, loss_ceiling_of
from dffl.theory.geometry import Geometry, Pair, decision_shift, set_shift
from dffl.theory.risk import BoundForm
from dffl.theory.vectors import centred, direction, dot, norm, times, vectors


def support_gap(u: ArrayLike, s1: FeasibleSet, s2: FeasibleSet) -> np.ndarray:
    """Lemma support-set: |xi_1(u) - xi_2(u)| <= |u| d_H. Holds, tight."""
    return norm(vectors("support_gap", "u", u, s1)) * Pair.unmoved(s1, s2).delta


def value_gap(c: ArrayLike, s1: FeasibleSet, s2: FeasibleSet) -> np.ndarray:
    """Lemma zstar-set: |z*_1(c) - z*_2(c)| <= |c| d_H. Holds, tight."""
    return norm(vectors("value_gap", "c", c, s1)) * Pair.unmoved(s1, s2).delta


def diameter_lipschitz(c1: ArrayLike, c2: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """Lemma diameter-joint: xi(c - 2 c_hat) - z*(c) changes by at most D |c1 - c2|. Holds, tight."""
    g = Geometry.of(s)
    c1, c2 = vectors("diameter_lipschitz", "c1", c1, s), vectors("diameter_lipschitz", "c2", c2, s)
    return g.diameter * norm(centred(c1 - c2, g.flat))


def functional_gap(c_hat: ArrayLike, s1: FeasibleSet, s2: FeasibleSet) -> np.ndarray:
    """Lemma oracle-free: |c_hat . (w1 - w2)| <= |c_hat| (d_H + D_min) for any w1 in S1 and w2 in S2. Holds, tight."""
    pair = Pair.unmoved(s1, s2)
    return norm(vectors("functional_gap", "c_hat", c_hat, s1)) * (pair.delta + pair.diameter)


def directional_stability(c1: ArrayLike, c2: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """Lemma dir-stability: |w*(c1) - w*(c2)| <= rho |c1 / |c1| - c2 / |c2||. Holds, tight, after two small repairs.

    The proof's w*(c) = x(c / |c|) should read x(-c / |c|), which changes nothing in the end. And on sets inside
    {1 . w = const} the costs must be projected: a constant added to both turns their directions together and moves no
    decision, so that no radius would do otherwise. Each optimum y lies in the ball that touches at the other, x:
    |x - y|^2 <= 2 rho p . (x - y), p the outward unit normal at x; the sum of the two inequalities is the claim.
    """
    g = Geometry.of(s)
    c1, c2 = _directed("directional_stability", "c1", c1, s, g.flat), _directed("directional_stability", "c2", c2, s, g.flat)
    return times(norm(direction(c1) - direction(c2)), g.rho)


def cost_stability(c1: ArrayLike, c2: ArrayLike, s: FeasibleSet, least: float | None = None) -> np.ndarray:
    """|w*(c1) - w*(c2)| <= (rho / C_min) |c1 - c2|: `directional_stability` with Assumption 3's C_min = ``least``. Tight.

    For |c1|, |c2| >= C_min > 0, |c1 / |c1| - c2 / |c2|| <= |c1 - c2| / C_min, with equality where both have this norm. So
    Gamma, and H_SC with it, vanishes with c_d at a rate that no cost changes. By default C_min is the shorter of the two.
    """
    g = Geometry.of(s)
    c1, c2 = _directed("cost_stability", "c1", c1, s, g.flat), _directed("cost_stability", "c2", c2, s, g.flat)
    shorter = np.minimum(norm(c1), norm(c2))
    if least is not None and not 0 < least <= shorter.min() * (1 + 1e-12):
        raise ValueError(f"cost_stability: least must be > 0 and at most the least norm, {shorter.min():.6g}, found {least}")
    return times(norm(c1 - c2) / (shorter if least is None else least), g.rho)


def quadratic_growth(c: ArrayLike, w: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """Lemma QG, a lower bound: c . w - z*(c) >= |c| / (2 rho) |w - w*(c)|^2 for w in S. Holds, tight (any ball)."""
    g = Geometry.of(s)
    c, w = vectors("quadratic_growth", "c", c, s), vectors("quadratic_growth", "w", w, s)
    step = norm(w - _solve(s, c))
    size = norm(centred(c, g.flat))
    return np.zeros(np.broadcast_shapes(size.shape, step.shape)) if g.rho in (0, math.inf) else size * step**2 / (2 * g.rho)


def set_stability(s1: FeasibleSet, s2: FeasibleSet, form: BoundForm = "sharp") -> float:
    """Lemma set-stability: how far the optima of two sets at d_H = delta can differ at one common cost.

    ``paper``: delta + 2 sqrt(rho_min delta), which holds. ``sharp``: sqrt(delta^2 + 2 h delta), h the harmonic mean of the
    two radii. It needs one strongly convex set only (then h = 2 rho) and is never larger: the optimum x1 lies within delta
    of S2 and hence of the ball of radius rho2 that touches at x2, and the other way round; with v = x1 - x2 this reads
    |v|^2 + 2 rho2 p . v <= 2 rho2 delta + delta^2 and |v|^2 - 2 rho1 p . v <= 2 rho1 delta + delta^2. Divided by the radii
    and added, p . v cancels. (With one radius, p . v >= -delta serves instead of the second inequality.)
    """
    pair = Pair.unmoved(s1, s2)
    return set_shift(pair.delta, *pair.radii, form)


def curved_functional_gap(
    c_hat: ArrayLike, c1: ArrayLike, s1: FeasibleSet, c2: ArrayLike, s2: FeasibleSet, form: BoundForm = "sharp"
) -> np.ndarray:
    """Lemma lemma4-sc: |c_hat . (w*_1(c1) - w*_2(c2))| <= |c_hat| Gamma.

    ``paper``: Gamma = rho_min |p1 - p2| + delta + 2 sqrt(rho_min delta), p = c / |c|, which holds. ``sharp``: the smaller
    of the same with the sharp set stability, and of a / 2 + sqrt(a^2 / 4 + 2 h delta + delta^2) with a = h |p1 - p2|: the
    two inequalities of `set_stability` hold with p1 and p2 in them, and their sum is a quadratic one in |v|. Either needs
    one strongly convex set only: the costs turn on that set, and set stability asks for no more.
    """
    pair = Pair.unmoved(s1, s2)
    c1 = _directed("curved_functional_gap", "c1", c1, s1, pair.flat)
    c2 = _directed("curved_functional_gap", "c2", c2, s2, pair.flat)
    # c_hat stays as it is: the sums of two sets may differ, and then a constant in it counts.
    size = norm(vectors("curved_functional_gap", "c_hat", c_hat, s1))
    return times(size, decision_shift(norm(direction(c1) - direction(c2)), pair.delta, *pair.radii, form))


def prediction_lipschitz(c_hat1: ArrayLike, c_hat2: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """Lemma pred_lipschitz: SPO+ changes by at most 2 D |c_hat1 - c_hat2|. Holds, tight."""
    g = Geometry.of(s)
    first, second = vectors("prediction_lipschitz", "c_hat1", c_hat1, s), vectors("prediction_lipschitz", "c_hat2", c_hat2, s)
    return 2 * g.diameter * norm(centred(first - second, g.flat))


def loss_ceiling(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """SPO+ <= D dist(2 c_hat, {t c : t >= 1}). Not in the paper; as no loss is negative it also bounds every gap. Tight.

    SPO+ is the maximum of (c - 2 c_hat) . v over steps v = w - w*(c) with c . v >= 0 and |v| <= D, so
    (c - 2 c_hat) . v <= (t c - 2 c_hat) . v <= D |t c - 2 c_hat| for every t >= 1. At t = 1 and t = 2 this gives
    D |c - 2 c_hat| and 2 D |c - c_hat|; the best t makes it 0 wherever c_hat = k c with k >= 1 / 2, as the loss is.
    """
    g = Geometry.of(s)
    c_hat, c = vectors("loss_ceiling", "c_hat", c_hat, s), vectors("loss_ceiling", "c", c, s)
    return loss_ceiling_of(centred(c_hat, g.flat), centred(c, g.flat), g)


def ball_ceiling(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """SPO+ <= rho (|v| - v . c / |c|), v = 2 c_hat - c, on a strongly convex set. Not in the paper; equality on any ball.

    The ball of radius rho that touches at w*(c) contains the set, and this is its own loss. It is never more than
    `error_bound`, as |c + x| <= |c| + c . x / |c| + |x|^2 / (2 |c|).
    """
    g = Geometry.of(s)
    c_hat, c = vectors("ball_ceiling", "c_hat", c_hat, s), _directed("ball_ceiling", "c", c, s, g.flat)
    return ball_ceiling_of(centred(c_hat, g.flat), c, g)


def error_bound(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """SPO+ <= (2 rho / |c|) |c_hat - c|^2, which takes the place of Proposition calibration. Tight (any ball).

    The proposition has 2 / rho in place of 2 rho / |c|, which does not hold: strong convexity of radius rho makes the
    gradient of the support function rho-Lipschitz on the unit sphere, hence rho / |c| at length |c|, not 1 / rho. On the
    ball of radius 3, c = (1, 0) and c_hat = (.5, -.5) have the loss 3, where 2 / rho would allow .333.
    """
    g = Geometry.of(s)
    c_hat, c = vectors("error_bound", "c_hat", c_hat, s), _directed("error_bound", "c", c, s, g.flat)
    error = norm(centred(c_hat, g.flat) - c)
    return times(2 * error * (error / norm(c)), g.rho)


def angle_bound(c_hat: ArrayLike, c: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """Regret <= rho |c| (1 - cos(c, c_hat)) on a strongly convex set. Not in the paper; equality on any ball.

    The ball of radius rho that touches at w*(c_hat) contains the set, hence w*(c).
    """
    g = Geometry.of(s)
    c_hat, c = _directed("angle_bound", "c_hat", c_hat, s, g.flat), vectors("angle_bound", "c", c, s)
    c = centred(c, g.flat)
    # 1 - cos = |p - q|^2 / 2: nothing cancels at small angles.
    return times(norm(c) * norm(direction(c) - direction(c_hat)) ** 2 / 2, g.rho)


def bregman(u: ArrayLike, v: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """D_xi(u, v) = xi(u) - xi(v) - x(v) . (u - v), the Bregman divergence of the support function; x(v) = w*(-v).

    The appendix's SPO+ = D_xi(c - 2 c_hat, -c) holds, and likewise regret = D_xi(-c, -c_hat). Where xi has a kink, x(v)
    is the subgradient that the oracle's tie rule picks.
    """
    u, v = vectors("bregman", "u", u, s), vectors("bregman", "v", v, s)
    return dot(u, _solve(s, -u) - _solve(s, -v))  # xi(v) = v . x(v) cancels


def _solve(s: FeasibleSet, c: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(s.solve(c))


def _directed(owner: str, field: str, value: ArrayLike, s: FeasibleSet, flat: bool) -> np.ndarray:
    """The (projected) vectors, refused if one of them has no direction."""
    x = centred(vectors(owner, field, value, s), flat)
    if (norm(x) == 0).any():
        where = " after projection onto {1 . x = 0}" if flat else ""
        raise ValueError(f"{owner}: {field} must not be zero{where}: every decision is optimal then, and there is no direction")
    return x
