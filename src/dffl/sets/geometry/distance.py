"""How far apart two feasible sets are, and how far after the best translation, as certified brackets.

A family that has formulas keeps them in its own file. Any two other sets of one dimension are compared by their
oracles alone: directions give a lower bound on their distance, and a proof gives an upper bound.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from dffl.sets.base import Bracket, FeasibleSet
from dffl.sets.geometry import hulls

DIRECTIONS = 64
"""Directions are asked in blocks of this many, so that a family's oracle is compiled once."""
ROUNDS = 6
LEADERS = 16
SLACK = 1e-9
"""What an oracle's answer may be off, relative to the size of the sets."""


def hausdorff(s1: FeasibleSet, s2: FeasibleSet) -> Bracket:
    """The Hausdorff distance: how far a point of one set can be from the other set, as a certified bracket.

    Exact for balls, boxes, simplices, top-k sets and small polytopes; a bracket from formulas for knapsacks, entropy sets and
    ellipsoids; and for any other pair a bracket from the two oracles, which is tight in two dimensions and wide in many.
    """
    s1, s2, same = _comparable("hausdorff", s1, s2)
    if same:
        return Bracket.at(0.0)
    return _tidy((s1._hausdorff(s2) if type(s1) is type(s2) else None) or _hausdorff(s1, s2))


def shape_distance(s1: FeasibleSet, s2: FeasibleSet) -> Bracket:
    """The smallest Hausdorff distance between the first set and a translate of the second, as a certified bracket.

    SPO+ does not change when a set is moved, so this is the distance that matters to it. See ``hausdorff`` for how tight it is.
    """
    s1, s2, same = _comparable("shape_distance", s1, s2)
    if same:
        return Bracket.at(0.0)
    bracket = s1._shape_distance(s2) if type(s1) is type(s2) else None
    if bracket is None:
        bracket = _shape_distance(s1, s2)
        bracket = Bracket(bracket.lower, min(bracket.upper, hausdorff(s1, s2).upper))
    return _tidy(bracket)


def _comparable(what: str, *sets: Any) -> tuple[FeasibleSet, FeasibleSet, bool]:
    """The two sets in an order that does not depend on the caller's, so that no distance does; and whether they are one."""
    for s in sets:
        if not isinstance(s, FeasibleSet):
            raise ValueError(f"{what}: it is of two feasible sets, found {s!r:.80}")
        s._single(what)
    sets = tuple(s.shadow for s in sets)
    d1, d2 = (s.dim for s in sets)
    if d1 != d2:
        raise ValueError(f"{what}: the sets must have the same dimension, found {d1} and {d2}")
    (key1, s1), (key2, s2) = sorted(((_content(s), s) for s in sets), key=lambda pair: pair[0])
    return s1, s2, type(s1) is type(s2) and key1 == key2


def _content(s: FeasibleSet) -> tuple[str, ...]:
    leaves, treedef = jax.tree.flatten(s)
    return (type(s).__qualname__, repr(treedef), *(np.asarray(a).tobytes().hex() for a in leaves))


def _tidy(bracket: Bracket) -> Bracket:
    lower, upper = float(bracket.lower), float(bracket.upper)
    return Bracket(max(min(lower, upper), 0.0), upper)


# Any two sets, by their oracles.


class _Probe:
    """A set, seen through its oracle; it remembers the directions (unit rows), supports and points that it has seen."""

    def __init__(self, s: FeasibleSet):
        self.s, d = s, s.dim
        self.u, self.points = np.zeros((0, d)), np.zeros((0, d))
        self.see(np.vstack([np.eye(d), -np.eye(d)]))
        self.high, self.low = np.diag(self.points[:d]).copy(), np.diag(self.points[d:]).copy()
        self.slack = SLACK * float(np.abs(self.points).max(initial=1e-300))

    @property
    def h(self) -> np.ndarray:
        return np.sum(self.u * self.points, axis=-1)

    @property
    def centre(self) -> np.ndarray:
        """A point of the set: the mean of those that reach farthest along the axes."""
        return self.points[: 2 * self.s.dim].mean(axis=0)

    @cached_property
    def diameter(self) -> float:
        return self.s.diameter().upper if self.s.has_diameter else math.inf

    def answer(self, u: np.ndarray) -> np.ndarray:
        """The farthest point of the set along each direction."""
        rows = -len(u) % DIRECTIONS
        blocks = np.vstack([u, np.zeros((rows, u.shape[1]))]).reshape(-1, DIRECTIONS, u.shape[1])
        with jax.enable_x64(True):
            return np.concatenate([np.asarray(self.s.solve(-block), np.float64) for block in blocks])[: len(u)]

    def see(self, u: np.ndarray) -> np.ndarray:
        points = self.answer(u)
        self.u, self.points = np.vstack([self.u, u]), np.vstack([self.points, points])
        return points

    def toward(self, y: np.ndarray, steps: int = 20) -> np.ndarray:
        """Points of the set near the rows of y, by Frank and Wolfe's method: wherever it stops, they are in the set."""
        x = np.broadcast_to(self.centre, y.shape)
        for _ in range(steps):
            way = self.answer(y - x) - x
            gain, square = np.sum((y - x) * way, axis=-1, keepdims=True), np.sum(way * way, axis=-1, keepdims=True)
            if (gain <= 1e-6 * np.sum((y - x) ** 2, axis=-1, keepdims=True)).all():
                break
            x = x + np.clip(gain / np.where(square > 0, square, 1), 0, 1) * way
        return x

    def reach(self, y: np.ndarray) -> float:
        """A proven upper end of the distance from y to a point of the set.

        The square of w_i - y_i is convex, so at most its chord over the set's bounds; the sum of the chords is linear in w,
        and the oracle finds where it is largest. Otherwise: with x the mean of points a_k of the set,
        |w - x|^2 = mean |w - a_k|^2 - mean |a_k - x|^2, and no |w - a_k| exceeds the diameter.
        """
        low, high = self.low - self.slack - y, self.high + self.slack - y
        slope = low + high
        farthest = self.answer(slope[None] / (np.abs(slope).max() or 1.0))[0]
        top = float(slope @ (farthest - y)) + self.slack * float(np.abs(slope).sum())
        chords = math.sqrt(max(top - float(low @ high), 0.0))
        ends = self.points[: 2 * self.s.dim]
        spread = float(np.mean(np.sum((ends - self.centre) ** 2, axis=-1)))
        return min(chords, math.sqrt(max(self.diameter**2 - spread, 0.0)) + float(np.linalg.norm(self.centre - y)))


class _Pair(NamedTuple):
    """Two sets that have seen the same directions."""

    first: _Probe
    second: _Probe

    @property
    def gap(self) -> np.ndarray:
        return self.first.h - self.second.h

    @property
    def slack(self) -> float:
        return self.first.slack + self.second.slack

    def climb(self, u: np.ndarray, shift: np.ndarray, damped: bool) -> np.ndarray:
        """Ask for these directions; the directions in which the difference of supports grows from each of them."""
        ways = self.first.see(u) - self.second.see(u) - shift
        ways *= np.where(np.sum(ways * u, axis=-1) < 0, -1.0, 1.0)[:, None]
        return _units(u + _units(ways, u) if damped else ways, u)

    def lead(self, shift: np.ndarray) -> np.ndarray:
        """New directions, from the best ones so far: from the point that each reaches in one set to the other."""
        gap = self.gap - self.first.u @ shift
        best = np.argsort(-np.abs(gap))[:LEADERS]
        ways = np.empty((LEADERS, self.first.s.dim))
        for side, probe, other, move in (
            (gap[best] > 0, self.first, self.second, shift),
            (gap[best] <= 0, self.second, self.first, -shift),
        ):
            if side.any():
                ways[side] = hulls.ways_from_hull(probe.points[best[side]] - move, _distinct(other.points)[:2000])
        return _units(ways, self.first.u[best])


def _pair(s1: FeasibleSet, s2: FeasibleSet) -> tuple[_Pair, np.ndarray]:
    """Both sets, having seen the axes, and more directions to begin with; they fill whole blocks."""
    pair, d = _Pair(_Probe(s1), _Probe(s2)), s1.dim
    rng = np.random.default_rng(0)
    if d == 2:
        angles = np.arange(4 * DIRECTIONS) * (2 * math.pi / (4 * DIRECTIONS)) + 0.5 * math.pi / (4 * DIRECTIONS)
        return pair, np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    ones, way = np.full((1, d), d**-0.5), pair.first.centre - pair.second.centre
    special = np.vstack([ones, -ones, _units(way[None], ones), -_units(way[None], ones)])
    ways = np.vstack([pair.first.points - pair.second.points, pair.second.points - pair.first.points])
    # Random directions, and some in which polytopes often differ: sums of a few axes.
    few = (rng.integers(0, 2, (DIRECTIONS // 2, d)), rng.integers(-1, 2, (DIRECTIONS - 4, d)))
    drawn = np.vstack([rng.normal(size=(DIRECTIONS // 2, d)), *few])
    u = np.vstack([special, _units(drawn, ones), _units(ways, ones)])
    return pair, u[: len(u) // DIRECTIONS * DIRECTIONS]


def _hausdorff(s1: FeasibleSet, s2: FeasibleSet) -> Bracket:
    pair, u = _pair(s1, s2)
    # In the plane one look all around is enough.
    for step in range(ROUNDS if s1.dim > 2 else 1):
        u = pair.climb(u, np.zeros(s1.dim), damped=step % 2 == 1)
        u[:LEADERS] = pair.lead(np.zeros(s1.dim))
    lower = max(float(np.abs(pair.gap).max()) - pair.slack, 0.0)
    upper = _upper(pair, np.zeros(s1.dim), _outer(pair.first), _outer(pair.second))
    if s1.dim == 2:
        planar = hulls.hausdorff(_polygon(pair.first), _polygon(pair.second))
        lower, upper = max(lower, planar.lower - 2 * pair.slack), min(upper, planar.upper + 2 * pair.slack)
    return Bracket(min(lower, upper), upper)


def _shape_distance(s1: FeasibleSet, s2: FeasibleSet) -> Bracket:
    pair, u = _pair(s1, s2)
    d, lower, shift = s1.dim, 0.0, pair.first.centre - pair.second.centre
    rounds = ROUNDS if d > 2 else 1
    for step in range(rounds):
        u = pair.climb(u, shift, damped=step % 2 == 1)
        u[:LEADERS] = pair.lead(shift)
        u[LEADERS : 2 * LEADERS] = -u[:LEADERS]  # a pair of opposite directions compares the widths
        if d <= 16 or step in (0, rounds // 2, rounds - 1):
            # The directions that matter at this shift; the programme grows slow with all of them.
            order = np.argsort(-np.abs(pair.gap - pair.first.u @ shift))
            rows = np.concatenate([np.arange(2 * d), order[: 6 * d + 200]])
            value, shift = hulls.best_shift(pair.first.u[rows], pair.gap[rows], pair.gap[rows])
            lower = max(lower, value - pair.slack)
    middles = [(p.high + p.low) / 2 for p in pair]
    outer = [_outer(p) for p in pair]
    upper = min(_upper(pair, v, *outer) for v in (shift, middles[0] - middles[1], pair.first.centre - pair.second.centre))
    if d == 2:
        planar = hulls.shape_distance(_polygon(pair.first), _polygon(pair.second), rounds=12, close=1e-4)
        lower, upper = max(lower, planar.lower - 2 * pair.slack), min(upper, planar.upper + 2 * pair.slack)
    return Bracket(min(max(lower, 0.0), upper), upper)


def _upper(pair: _Pair, shift: np.ndarray, outer1: list[np.ndarray], outer2: list[np.ndarray]) -> float:
    """A proven upper end of the distance from the first set to the second one moved by ``shift``: the farther side's."""
    sides = []
    for probe, other, move, outer in ((pair.first, pair.second, shift, outer1), (pair.second, pair.first, -shift, outer2)):
        # To one point of the other set, whichever is best; or from the corners of a simple set around this one, as the
        # distance to a convex set is convex, and so largest at a corner.
        aims = np.stack([(probe.high + probe.low) / 2, probe.centre])
        bounds = [probe.reach(y + move) for y in (other.centre, *other.toward(aims - move))]
        inner = _distinct(other.points)
        bounds += [hulls.farthest(corners, inner + move)[0].upper for corners in outer]
        sides.append(min(bounds) + pair.slack)
    return max(sides)


def _outer(probe: _Probe) -> list[np.ndarray]:
    """Corners of simple sets that contain this one: its bounding box, and the simplices at the box's two ends, each between the
    smallest and the largest sum, which meet where all points have one sum.
    """
    d = probe.s.dim
    if d > 16:  # far too wide by then, and slow
        return []
    low, high, ones = probe.low - probe.slack, probe.high + probe.slack, np.ones((1, d))
    most = float(probe.answer(ones).sum()) + d * probe.slack
    least = float(probe.answer(-ones).sum()) - d * probe.slack
    points = [np.vstack([end + (total - end.sum()) * np.eye(d) for total in (least, most)]) for end in (low, high)]
    if d <= 6:
        points.append(np.array(list(product(*zip(low, high, strict=True)))))
    return points


def _polygon(probe: _Probe) -> hulls.Hull:
    """A plane set between the polygon of points that it was seen to reach and that of their tangents."""
    for _ in range(2):
        # The normals of the inner polygon's edges: if the set is a polygon, these are its own.
        points = probe.points[np.argsort(np.arctan2(probe.u[:, 1], probe.u[:, 0]))]
        edges = np.roll(points, -1, axis=0) - points
        edges = edges[np.abs(edges).max(axis=-1) > 1e-7 * np.abs(points).max(initial=1e-300)]
        if not 0 < len(edges) <= DIRECTIONS:  # with many short edges it is round, and seen closely enough
            break
        normals = np.stack([edges[:, 1], -edges[:, 0]], axis=-1)
        probe.see(normals / np.linalg.norm(normals, axis=-1)[:, None])
    # Of tangents that are nearly the same one is enough: fewer of them are a larger polygon, and cross more precisely.
    angle = np.arctan2(probe.u[:, 1], probe.u[:, 0]) % (2 * math.pi)
    order = np.argsort(angle)
    order = order[np.diff(angle[order], append=angle[order[0]] + 2 * math.pi) > 1e-7]
    u, h = probe.u[order], probe.h[order]
    nxt = np.roll(np.arange(len(u)), -1)
    sine = u[:, 0] * u[nxt, 1] - u[:, 1] * u[nxt, 0]
    crossings = np.stack([h * u[nxt, 1] - h[nxt] * u[:, 1], h[nxt] * u[:, 0] - h * u[nxt, 0]], axis=-1) / sine[:, None]
    return hulls.Hull(_distinct(probe.points), _distinct(crossings))


def _distinct(points: np.ndarray) -> np.ndarray:
    """Each point once, up to rounding."""
    scale = 1e-11 * float(np.abs(points).max(initial=1e-300))
    return points[np.unique(np.round(points / scale), axis=0, return_index=True)[1]]


def _units(x: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Rows of length 1, and other ones where a row is zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.where(length > 1e-12 * np.abs(x).max(initial=1e-300), x / np.where(length > 0, length, 1), otherwise)
