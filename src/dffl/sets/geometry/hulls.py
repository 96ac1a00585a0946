"""Distances between sets that are known from inside and outside by finitely many points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.sets.base import Bracket


class Hull(NamedTuple):
    """A set that contains the convex hull of ``inner`` and lies in that of ``outer``; rows are points."""

    inner: np.ndarray
    outer: np.ndarray


def ways_from_hull(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """For each point, the shortest vector to it from the hull of the corners."""
    scale = float(np.ptp(np.vstack([points, corners]), axis=0).max()) or 1.0
    out = np.empty_like(points)
    for i, point in enumerate(points):
        rows = (corners - point) / scale
        # Only a few corners matter. Begin at the nearest one and add what lies farthest towards the point, as Wolfe does.
        used = [int(np.argmin(np.sum(rows * rows, axis=-1)))]
        way = rows[used[0]]
        while len(used) < len(rows):
            ahead = rows @ way
            best = int(np.argmin(ahead))
            if best in used or way @ way - ahead[best] <= 1e-13 * max(float(np.abs(ahead).max()), float(way @ way)):
                break
            used.append(best)
            nearer = _shortest(rows[used])
            if nearer @ nearer >= way @ way:
                break
            way = nearer
        out[i] = -scale * way
    return out


def _shortest(rows: np.ndarray) -> np.ndarray:
    """The shortest vector in the hull of the rows.

    Lawson and Hanson: its weights are, up to their sum, the non-negative ones with weights . rows = 0 and sum = 1 in the
    least-squares sense.
    """
    from scipy.optimize import nnls

    try:
        weights = nnls(np.vstack([rows.T, np.ones(len(rows))]), np.append(np.zeros(rows.shape[1]), 1.0))[0]
    except RuntimeError:  # it cycles sometimes; the shortest row is in the hull, too
        weights = np.zeros(len(rows))
    total = float(weights.sum())
    return weights @ rows / total if total > 0 else rows[np.argmin(np.sum(rows * rows, axis=-1))]


def farthest(points: np.ndarray, corners: np.ndarray) -> tuple[Bracket, np.ndarray]:
    """How far the hull of the points reaches out of that of the corners, and the directions in which they do."""
    ways = ways_from_hull(points, corners)
    lengths = np.linalg.norm(ways, axis=-1)
    units = ways / np.where(lengths > 0, lengths, 1)[:, None]
    # Below: what a direction separates. Above: the length of a way that begins in the hull.
    separated = np.sum(units * points, axis=-1) - (units @ corners.T).max(axis=-1)
    upper = float(lengths.max())
    outside = np.flatnonzero(lengths > 0)
    worst = outside[np.argsort(-lengths[outside])][:32]
    return Bracket(min(float(separated[worst].max(initial=0.0)), upper), upper), units[worst]


def hausdorff(first: Hull, second: Hull) -> Bracket:
    """The distance is at least that from inside one to outside the other, and at most the opposite."""
    lower = max(farthest(a.inner, b.outer)[0].lower for a, b in ((first, second), (second, first)))
    upper = max(farthest(a.outer, b.inner)[0].upper for a, b in ((first, second), (second, first)))
    return Bracket(min(lower, upper), upper)


def shape_distance(first: Hull, second: Hull, rounds: int = 40, close: float = 1e-9) -> Bracket:
    """Cutting planes: the best shift for the directions seen so far, then the worst directions for that shift."""
    d = first.inner.shape[1]
    u = np.vstack([np.eye(d), -np.eye(d)])
    # The shift is sought around the one that aligns the middles; for equal sets it is the answer.
    start = (middle(first.inner) - middle(second.inner))[None]
    second = Hull(second.inner + start, second.outer + start)
    shift, lower, upper = np.zeros(d), 0.0, np.inf
    for _ in range(rounds):
        moved = Hull(second.inner + shift, second.outer + shift)
        out, back = farthest(first.outer, moved.inner), farthest(moved.outer, first.inner)
        upper = min(upper, max(out[0].upper, back[0].upper))
        if upper - lower <= close * upper:
            break
        u = np.vstack([u, out[1], back[1]])
        least = support(first.inner, u) - support(second.outer, u)
        most = support(first.outer, u) - support(second.inner, u)
        value, shift = best_shift(u, least, most)
        lower = max(lower, value)
    return Bracket(min(lower, upper), upper)


def best_shift(u: np.ndarray, least: np.ndarray, most: np.ndarray) -> tuple[float, np.ndarray]:
    """The shift v for which the largest of ``least - u . v`` and ``u . v - most`` over the rows is smallest, and that value.

    With differences of supports between ``least`` and ``most`` along unit directions u, no shift brings the sets closer. The
    rows must hold the axes, both ways.
    """
    from scipy.optimize import linprog

    d = u.shape[1]
    scale = float(max(np.abs(least).max(), np.abs(most).max())) or 1.0
    ones = np.ones((len(u), 1))
    answer = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.block([[-u, -ones], [u, -ones]]),
        b_ub=np.concatenate([-least, most]) / scale,
        bounds=[(None, None)] * d + [(0, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0 or answer.x is None or answer.fun is None:
        return 0.0, np.zeros(d)
    # What counts is the dual. An average of rows bounds the largest one; what is left of its slope in v counts against it,
    # and along the axes no entry of a shift that is better than none can exceed 2 (in units of scale).
    p, q = np.maximum(-answer.ineqlin.marginals, 0).reshape(2, -1)
    slope = float(np.abs((p - q) @ u).sum())
    value = (float(p @ least - q @ most) / scale - 2 * slope) / max(float(p.sum() + q.sum()), 1e-300)
    return max(min(value, float(answer.fun)), 0.0) * scale, scale * answer.x[:d]


def support(points: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The support function of the points' hull."""
    return (u @ points.T).max(axis=-1)


def middle(points: np.ndarray) -> np.ndarray:
    """The middle of the points' bounding box."""
    return (points.min(axis=0) + points.max(axis=0)) / 2
