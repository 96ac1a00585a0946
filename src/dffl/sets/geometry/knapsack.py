"""How large a fractional knapsack is, and how far two of them are apart: bounds with their proofs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dffl.sets.base import Bracket


class Sack(NamedTuple):
    """Weights, and a budget that is no more than their sum."""

    weights: np.ndarray
    budget: float

    def best(self, values: np.ndarray) -> np.ndarray:
        """The oracle in NumPy: the point of the set with the largest ``values . w``, for values >= 0."""
        order = np.argsort(-values / self.weights, kind="stable")
        a = self.weights[order]
        w = np.empty_like(a)
        w[order] = np.where(values[order] > 0, np.clip((self.budget - (np.cumsum(a) - a)) / a, 0, 1), 0)
        return w

    def most(self) -> float:
        """G(B): the largest number of items, fractionally. No point of the set is longer than its square root."""
        return _lightest_count(np.sort(self.weights), self.budget)

    def nearest(self, w: np.ndarray) -> np.ndarray:
        """The point of the set that is nearest to w in [0, 1]^d: (w - t a)+ for the t that meets the budget."""
        a = self.weights
        if a @ w <= self.budget:
            return w
        order = np.argsort(-w / a)
        w_sum, a_sum = np.cumsum((a * w)[order]), np.cumsum((a * a)[order])
        # With the first n entries positive, t = (w_sum - B) / a_sum; the right n is the one that makes t largest.
        return np.maximum(w - np.max((w_sum - self.budget) / a_sum) * a, 0)

    def diameter(self) -> Bracket:
        """Two points of the set that are far apart, and a bound that no two exceed."""
        a, budget = np.sort(np.asarray(self.weights)), self.budget
        total = float(a.sum())
        if total + a[-1] <= 2 * budget or budget >= total:
            return Bracket.at(math.sqrt(a.size))
        upper = math.sqrt(min(a.size, _lightest_count(a, 2 * budget)))
        return Bracket(min(_two_bin_distance(a, budget), upper), upper)


def hausdorff(first: Sack, second: Sack) -> Bracket:
    """How far a point of either set is at most from the other set."""
    upper = max(_overhang(first, second), _overhang(second, first))
    return Bracket(min(max(_ascend(first, second), _ascend(second, first)), upper), upper)


def shape_distance(first: Sack, second: Sack) -> Bracket:
    """The same after the best shift."""
    distance = hausdorff(first, second)
    upper = min(distance.upper, _centred(first, second), _centred(second, first))
    # Both sets have 0 as a corner, so along the non-negative direction of their distance both begin at the same place:
    # their widths differ by the distance, and a shift halves it at best.
    return Bracket(min(max(distance.lower / 2, _rotating(first, second)), upper), upper)


def _fit(inside: Sack, outside: Sack) -> float:
    """The largest t <= 1 for which t times the first set lies in the second."""
    heaviest = float(outside.weights @ inside.best(outside.weights))
    return 1.0 if heaviest <= outside.budget else outside.budget / heaviest


def _overhang(first: Sack, second: Sack) -> float:
    """A proven upper end of how far points of the first set are from the second: the smallest of three.

    t w is in the second set for every w of the first, and |w|^2 <= sum w <= G. The distance to a set that holds every
    smaller point grows with w, so that of (1, ..., 1) is another one, exact where the first set is the whole box.

    Third, let a and B be the second set's, s = a . w > B and q = sum a_i^2 w_i. Then w_i (1 - (s - B) a_i / q) meets the
    budget, and is at most (s - B) / sqrt q away. Of all w in the box with this s the lightest items, filled up, have the
    smallest q(s). Both q(s) - (s - B) max a, which must not be negative, and the square root's quotient are worst at the
    largest s. Where the lightest items fill the budget evenly, this is the distance itself.
    """
    heaviest = float(second.weights @ first.best(second.weights))
    over = heaviest - second.budget
    if over <= 0:
        return 0.0
    ones, a = np.ones(first.weights.size), np.sort(second.weights)
    bounds = [over / heaviest * math.sqrt(first.most()), float(np.linalg.norm(ones - second.nearest(ones)))]
    q = float(np.sum(a * a * _lightest(a, heaviest)))
    if over * float(a[-1]) <= q:
        bounds.append(over / math.sqrt(q))
    return min(bounds)


def _ascend(first: Sack, second: Sack, steps: int = 8) -> float:
    """A difference of supports, first less second: from a point of the first to the second's nearest, and on along that way."""
    best = 0.0
    if _fit(first, second) == 1:
        return best
    for start in (np.ones(first.weights.size), second.weights / first.weights, second.weights):
        w = first.best(start)
        for _ in range(steps):
            u = w - second.nearest(w)
            length = float(np.linalg.norm(u))
            if length <= 0:
                break
            w = first.best(u)
            gap = float(u @ w - u @ second.best(u)) / length
            if gap <= best * (1 + 1e-12):
                break
            best = gap
    return best


def _centred(inside: Sack, outside: Sack) -> float:
    """A proven upper end of the shape distance where the first set lies in the second; infinite where it does not.

    If t times the outside fits inside, move the inside by (1 - t) q, q = k / d in each entry. That takes its points at most
    (1 - t)|q| away from the outside, where they were. And the outside, in t outside + (1 - t) outside, is then at most
    (1 - t) max |w - q| away. Both are at most (1 - t) sqrt(k (1 - k / d)) for k = min(G, d / 2), as |w|^2 <= sum w <= G.
    """
    if _fit(inside, outside) < 1:
        return math.inf
    d = outside.weights.size
    k = min(outside.most(), d / 2)
    return (1 - _fit(outside, inside)) * math.sqrt(k * (1 - k / d))


def _rotating(first: Sack, second: Sack) -> float:
    """A proven lower end of the shape distance, from directions that cancel.

    If y_1, ..., y_m sum to zero, no shift changes the sum of the supports' differences along them, so the distance is at
    least that sum over the sum of lengths. Here y_j = 1_T - n / d for each of the d cyclic windows T of n items, in an order
    that mixes light and heavy ones, and the support of y_j is (1 - n / d) times how many items of T fit. Equal weights and
    a whole budget up to d / 2 make this meet the upper end.
    """
    d = first.weights.size
    if d == 1:
        return 0.0
    place = np.empty(d, int)
    place[np.argsort(first.weights + second.weights)] = np.argsort(np.argsort(np.arange(d) * 0.6180339887498949 % 1))
    sizes = {round(min(max(f * s.most(), 1), d - 1)) for s in (first, second) for f in (1.0, 1.25)} | {d // 2}
    return max(abs(_fitting(first, place, n) - _fitting(second, place, n)) * math.sqrt((1 - n / d) / n) for n in sizes)


def _fitting(s: Sack, place: np.ndarray, n: int) -> float:
    """How many items of a window of n places fit the budget, on average over all windows."""
    order = np.argsort(s.weights)
    a, d = s.weights[order], place.size
    inside = (place[order] - np.arange(d)[:, None]) % d < n
    before = np.cumsum(a * inside, axis=-1) - a * inside
    return float(np.mean(np.sum(inside * np.clip((s.budget - before) / a, 0, 1), axis=-1)))


def _lightest_count(a: np.ndarray, weight: float) -> float:
    """G(t): how many items, fractionally, the lightest ones of total weight t are. ``a`` is sorted."""
    return float(_lightest(a, weight).sum())


def _lightest(a: np.ndarray, weight: float) -> np.ndarray:
    """The lightest items of this total weight. ``a`` is sorted."""
    return np.clip((weight - (np.cumsum(a) - a)) / a, 0, 1)


def _two_bin_distance(a: np.ndarray, budget: float) -> float:
    """A distance that is attained: the lightest items, split into two bins that each fit the budget.

    Two feasible points with disjoint supports are that far apart. The items go to the emptier bin, heaviest
    first; one more item fills what is left of each bin. ``a`` is sorted.
    """
    for count in range(a.size, 0, -1):
        light, heavy = 0.0, 0.0
        for weight in a[:count][::-1]:
            light, heavy = sorted((light + float(weight), heavy))
        if heavy <= budget:
            break
    else:
        count, light, heavy = 0, 0.0, 0.0
    rest = a[count : count + 2]
    shares = [min(1.0, (budget - used) / w) for used, w in zip((light, heavy), rest, strict=False)]
    return math.sqrt(count + sum(s * s for s in shares))
