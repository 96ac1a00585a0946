"""How much the SPO+ losses of two clients can differ at one shared prediction."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dffl.sets import EntropySimplex, FeasibleSet
from dffl.theory.dv import dv_bound
from dffl.theory.geometry import Geometry, Pair, decision_shift
from dffl.theory.risk import BoundForm, require_form
from dffl.theory.vectors import centred, direction, dot, norm, times, vectors


class LossGap(NamedTuple):
    """Upper bounds on |SPO+ of client 1 - SPO+ of client 2|, one for each leading index; infinite where one does not apply.

    ``objective_part``, ``constraint_part`` and ``decision_part`` add up to ``theorem1``.
    """

    theorem1: np.ndarray
    """H of the paper's Theorem 1."""
    strongly_convex: np.ndarray
    """H_SC of its corollary, with a sharper decision term; it needs one strongly convex set, not two. Also as printed."""
    trivial: np.ndarray
    """max_i D_i min(|c_i - 2 c_hat|, 2 |c_i - c_hat|), a ceiling on both losses: as no loss is negative, no gap is larger."""
    dv: np.ndarray
    """The same with the entropy set's own ceiling, for two entropy sets."""
    best: np.ndarray
    """The least of all these, each client with the lowest of its ceilings, sharper ones among them."""
    objective_part: np.ndarray
    """What different costs contribute to Theorem 1: D |c1 - c2|."""
    constraint_part: np.ndarray
    """What different sets contribute: all terms with the shape distance."""
    decision_part: np.ndarray
    """What the jump of the decision contributes, 2 |c_hat| D_min: not zero even for two equal clients."""


def loss_gap_bound(
    c_hat: ArrayLike,
    c1: ArrayLike,
    s1: FeasibleSet,
    c2: ArrayLike,
    s2: FeasibleSet,
    maximize: bool = False,
    form: BoundForm = "sharp",
) -> LossGap:
    """Bound the difference between two clients' SPO+ losses at the prediction ``c_hat``.

    ``c_hat``, ``c1`` and ``c2`` have shape (..., d) and are broadcast against each other; ``s1`` and ``s2`` are single
    sets. On sets inside {1 . w = const} a constant added to all costs changes no loss, so the costs are projected first.
    Diameters and shape distances enter with the upper ends of their brackets, and are computed once for equal sets.

    ``form="paper"`` gives H and H_SC as the paper prints them, ``best`` as the smaller of the two, and no other bound: costs
    are not projected, and H_SC needs two strongly convex sets and no zero cost. H is then as large or larger. H_SC is as
    large or larger too, except on sets inside {1 . w = const}, where the printed one is false (see docs/theory.md).

    Remark 2 of the paper, other distributions of features: for any coupling of P_i and P_j and any predictor g,
    |R_i(g) - R_j(g)| <= E[H_ij(g(x_j)) + 2 D_i |g(x_i) - g(x_j)|], with H_ij any of these bounds. Proof: insert
    l_i(g(x_j), c_i); Lemma 11 bounds the first difference, Theorem 1 the second. If g is L-Lipschitz, the last term is at
    most 2 D_i L |x_i - x_j|, and with |c_hat| <= tau in H the least value over all couplings is an optimal-transport cost.
    No small L is known for a trained network, and `dffl.bounds` does not use this bound.
    """
    require_form("loss_gap_bound", form)
    pair = Pair.of(s1, s2)
    sign = -1.0 if maximize else 1.0
    p, a, b = (sign * vectors("loss_gap_bound", k, v, s1) for k, v in (("c_hat", c_hat), ("c1", c1), ("c2", c2)))
    try:
        p, a, b = np.broadcast_arrays(p, a, b)
    except ValueError:
        shapes = f"{p.shape}, {a.shape} and {b.shape}"
        raise ValueError(f"loss_gap_bound: c_hat, c1 and c2 must be of equal length, found shapes {shapes}") from None

    if form == "paper":
        return printed_gap(p, a, b, pair)
    return gap_between(p, a, b, pair, Ceilings.of(p, a, s1, pair.first), Ceilings.of(p, b, s2, pair.second))


def gap_between(p: np.ndarray, a: np.ndarray, b: np.ndarray, pair: Pair, first: Ceilings, second: Ceilings) -> LossGap:
    """`loss_gap_bound` for a prediction p and costs a and b of one shape, where each client's ceilings are known."""
    p, a, b = (centred(x, pair.flat) for x in (p, a, b))
    size, delta = norm(p), pair.delta
    objective, constraint = _mismatch(p, a, b, pair)
    constraint_part, decision_part = constraint + 2 * size * delta, 2 * size * pair.diameter
    theorem1 = objective + constraint_part + decision_part

    shift = decision_shift(norm(direction(a) - direction(b)), delta, *pair.radii)
    # A zero cost has no direction: every decision is optimal for it, and only the diameter bounds the jump.
    shift = np.where((norm(a) > 0) & (norm(b) > 0) | np.isinf(shift), shift, delta + pair.diameter)
    strongly_convex = objective + constraint + times(2 * size, shift)

    ceiling = np.maximum(first.least, second.least)
    return LossGap(
        theorem1=theorem1,
        strongly_convex=strongly_convex,
        trivial=np.maximum(first.trivial, second.trivial),
        dv=np.maximum(first.dv, second.dv),
        best=np.minimum(np.minimum(theorem1, strongly_convex), ceiling),
        objective_part=objective,
        constraint_part=constraint_part,
        decision_part=decision_part,
    )


def printed_gap(p: np.ndarray, a: np.ndarray, b: np.ndarray, pair: Pair) -> LossGap:
    """Theorem 1 and its corollary to the letter, for a prediction p and costs a and b of one shape."""
    size = norm(p)
    objective, constraint = _mismatch(p, a, b, pair)
    constraint_part, decision_part = constraint + times(2 * size, pair.delta), times(2 * size, pair.diameter)
    theorem1 = objective + constraint_part + decision_part
    none = np.full(size.shape, math.inf)
    radii = pair.first.rho, pair.second.rho
    strongly_convex = none
    if all(map(math.isfinite, radii)):
        shift = decision_shift(norm(direction(a) - direction(b)), pair.delta, *radii, form="paper")
        # The corollary divides by |c|, which Assumption 3 keeps above C_min > 0.
        strongly_convex = np.where((norm(a) > 0) & (norm(b) > 0), objective + constraint + 2 * size * shift, math.inf)
    best = np.minimum(theorem1, strongly_convex)
    return LossGap(theorem1, strongly_convex, none, none, best, objective, constraint_part, decision_part)


def _mismatch(p: np.ndarray, a: np.ndarray, b: np.ndarray, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The two parts of T, the bound on the support and value terms, in whichever order of the two steps is shorter.

    Either the costs change on the first set and then the set changes at the second costs, or the other way round.
    """
    gap = norm(a - b)
    first = times(gap, pair.first.diameter), times(norm(b - 2 * p) + norm(b), pair.delta)
    second = times(gap, pair.second.diameter), times(norm(a - 2 * p) + norm(a), pair.delta)
    shorter = sum(first) <= sum(second)
    return np.where(shorter, first[0], second[0]), np.where(shorter, first[1], second[1])


class Ceilings(NamedTuple):
    """Upper bounds on the loss of one client."""

    trivial: np.ndarray
    dv: np.ndarray
    least: np.ndarray

    @classmethod
    def of(cls, p: np.ndarray, c: np.ndarray, s: FeasibleSet, g: Geometry) -> Ceilings:
        dv = dv_bound(p, c, s) if isinstance(s, EntropySimplex) else np.full(p.shape[:-1], math.inf)
        # A constant on all costs changes no loss of a set of fixed sum, whatever the other client's set.
        p, c = centred(p, g.flat), centred(c, g.flat)
        trivial = times(np.minimum(norm(c - 2 * p), 2 * norm(c - p)), g.diameter)
        # The ray's ceiling is never above the trivial one, except for rounding where both are almost zero.
        least = np.min([trivial, dv, loss_ceiling_of(p, c, g), ball_ceiling_of(p, c, g)], axis=0)
        return cls(trivial, dv, least)


def loss_ceiling_of(p: np.ndarray, c: np.ndarray, g: Geometry) -> np.ndarray:
    """D times the distance of 2 c_hat from the ray {s c : s >= 1}: the loss of a set of which only the diameter is known."""
    unit = direction(c)
    along = np.maximum(dot(2 * p, unit), norm(c))
    return times(norm(2 * p - along[..., None] * unit), g.diameter)


def ball_ceiling_of(p: np.ndarray, c: np.ndarray, g: Geometry) -> np.ndarray:
    """rho (|v| - v . c / |c|), v = 2 c_hat - c: the loss of the ball that touches the set at w*(c) and contains it."""
    v = 2 * p - c
    if math.isinf(g.rho):
        return np.full(v.shape[:-1], math.inf)
    unit = direction(c)
    along = dot(v, unit)
    across = norm(v - along[..., None] * unit)
    # |v| - along without cancellation, where v nearly points along c.
    total = norm(v)
    lost = np.where(along > 0, across * (across / np.where(total + along > 0, total + along, 1)), total - along)
    return np.where(norm(c) > 0, g.rho * lost, g.diameter * total)
