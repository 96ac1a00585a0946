"""Random and adversarial instances of every family, with optimal values that no oracle of ours computed.

The values come from Lagrangian duality in NumPy float64. For a knapsack the dual function
g(t) = -t B - sum (-c - t a)+ bounds the optimum from below for every t >= 0, is concave and piecewise linear, and
its largest value over the breakpoints t = -c_i / a_i and t = 0 is the optimum: no order, no tie rule, no running
sum, so nothing in common with the oracle. The same holds for top-k. For the entropy set any b >= 0 gives a lower
bound b h - b log sum exp(-c / b), so that a feasible answer which meets one is optimal, wherever b came from.

Integer sets have no such dual: their values come from plain loops in float64, and their own tests ask an integer solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from dffl.sets import (
    Ball,
    Box,
    ConsecutiveHours,
    Ellipsoid,
    EntropySimplex,
    FeasibleSet,
    FractionalKnapsack,
    Polytope,
    ShortestPath,
    Simplex,
    TopK,
    ZeroOneKnapsack,
    stack,
)
from dffl.sets.entropy import gibbs

TOLERANCE = {"float32": 1e-5, "float64": 1e-9}
COST_KINDS = ("normal", "cauchy", "integer", "equal", "zeros", "negative", "two-valued", "outlier", "small", "large")


class Family(NamedTuple):
    """Instances of one family: a stack of m sets, their optimal values and how far an answer is from feasible."""

    make: Callable[[np.random.Generator, int, int], FeasibleSet]
    value: Callable[[FeasibleSet, np.ndarray], np.ndarray]
    excess: Callable[[FeasibleSet, np.ndarray], np.ndarray]


def solve(s: FeasibleSet, c: np.ndarray, dtype: str) -> np.ndarray:
    """The oracle's answer in this precision, as float64."""
    with jax.enable_x64(dtype == "float64"):
        answer = s.solve(np.asarray(c, dtype))
        assert answer.dtype == dtype
        return np.asarray(answer, np.float64)


def costs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Costs of every kind, one kind a row; all are float32 numbers, so that both precisions solve one problem."""
    normal = rng.normal(size=shape)
    integers = rng.integers(-3, 4, size=shape) + 0.0
    table = {
        "normal": normal,
        "cauchy": rng.standard_cauchy(shape),
        "integer": integers,
        "equal": np.broadcast_to(normal[..., :1], shape),
        "zeros": np.where(rng.random(shape) < 0.5, -0.0, 0.0),
        "negative": -np.abs(normal),
        "two-valued": np.where(normal > 0, 1.5, -2.5),
        "outlier": np.where(np.arange(shape[-1]) == shape[-1] // 2, -1e4, integers),
        "small": 1e-6 * normal,
        "large": 1e6 * integers,
    }
    kind = rng.integers(len(COST_KINDS), size=shape[:-1])[..., None]
    return np.select([kind == i for i in range(len(COST_KINDS))], [table[k] for k in COST_KINDS]).astype(np.float32)


def instances(name: str, seed: int, dims: Iterator[int], sets: int, rows: int) -> Iterator[tuple[FeasibleSet, np.ndarray]]:
    """For each dimension a stack of ``sets`` sets and ``rows`` costs for each."""
    for d in dims:
        rng = np.random.default_rng([seed, d])
        s = FAMILIES[name].make(rng, d, sets)
        c = costs(rng, (sets, rows, d))
        if isinstance(s, FractionalKnapsack | ZeroOneKnapsack):  # ties of the ratio c / a, not of c
            c[:, ::7] = (-s.weights * rng.integers(1, 3, (sets, d)))[:, None]
        yield s, c


def failures(name: str, s: FeasibleSet, c: np.ndarray, dtype: str) -> str:
    """What is wrong with the answers to these costs, or nothing."""
    w, tol = solve(s, c, dtype), TOLERANCE[dtype]
    c = np.asarray(c, np.float64)
    value, excess = FAMILIES[name].value(s, c), FAMILIES[name].excess(s, w)
    found = np.sum(c * w, axis=-1)
    scale = np.maximum(np.abs(value), np.sum(np.abs(c * w), axis=-1))
    noise = 1e-14 * np.sum(np.abs(c), axis=-1)  # of the certificate itself, where the optimum is 0
    gap = np.maximum(np.abs(found - value) - noise, 0) / np.where(scale > 0, scale, 1)
    bad = ~((gap <= tol) & (excess <= tol))
    if not bad.any():
        return ""
    i = tuple(np.argwhere(bad)[0])
    return f"{name} d={s.dim} {dtype}: {bad.sum()} of {bad.size} fail, the first: {gap[i]=} {excess[i]=} {c[i]=} {w[i]=}"


# Fractional knapsack


def knapsacks(rng: np.random.Generator, d: int, m: int) -> FractionalKnapsack:
    kinds = [rng.uniform(0.1, 1, (m, d)), np.ones((m, d)), rng.integers(1, 6, (m, d)) + 0.0, rng.lognormal(0, 2, (m, d))]
    a = np.select([rng.integers(4, size=(m, 1)) == i for i in range(4)], kinds, kinds[0])
    total, prefix = a.sum(axis=-1), a[:, : max(1, d // 2)].sum(axis=-1)
    options = [0 * total, 1e-6 * total, rng.random(m) * total, prefix, total, 2 * total]
    return FractionalKnapsack(a, np.choose(rng.integers(6, size=m), options))


def knapsack_value(s: FractionalKnapsack, c: np.ndarray) -> np.ndarray:
    a, budget = s.weights[..., None, :], s.budget[..., None]

    def dual(t: np.ndarray) -> np.ndarray:
        return -t * budget - np.sum(np.maximum(-c - t[..., None] * a, 0), axis=-1)

    best = dual(np.zeros(c.shape[:-1]))
    for i in range(s.dim):
        best = np.maximum(best, dual(np.maximum(-c[..., i] / a[..., i], 0)))
    return best


def knapsack_excess(s: FractionalKnapsack, w: np.ndarray) -> np.ndarray:
    budget = s.budget[..., None]
    over = np.sum(s.weights[..., None, :] * w, axis=-1) - budget
    return np.maximum(np.maximum(-w, w - 1).max(axis=-1), over / np.where(budget > 0, budget, 1))


# Top-k


def topks(rng: np.random.Generator, d: int, m: int) -> TopK:
    options = [np.zeros(m), np.full(m, float(d)), rng.integers(0, d + 1, m) + 0.0, rng.uniform(0, d, m), np.full(m, d / 2)]
    return TopK(d, np.choose(rng.integers(5, size=m), options))


def topk_value(s: TopK, c: np.ndarray) -> np.ndarray:
    k, best = s.k[..., None], np.full(c.shape[:-1], -np.inf)
    for i in range(s.dim):
        price = c[..., i]
        best = np.maximum(best, price * k - np.sum(np.maximum(price[..., None] - c, 0), axis=-1))
    return best


def topk_excess(s: TopK, w: np.ndarray) -> np.ndarray:
    k = s.k[..., None]
    return np.maximum(np.maximum(-w, w - 1).max(axis=-1), np.abs(w.sum(axis=-1) - k) / np.maximum(k, 1))


# Simplex and box


def simplices(rng: np.random.Generator, d: int, m: int) -> Simplex:
    return Simplex(d, np.choose(rng.integers(4, size=m), [0.0, 1.0, 1e-3, 1e4]) * rng.integers(1, 4, m))


def simplex_value(s: Simplex, c: np.ndarray) -> np.ndarray:
    return s.scale[..., None] * c.min(axis=-1)


def simplex_excess(s: Simplex, w: np.ndarray) -> np.ndarray:
    scale = s.scale[..., None]
    return np.maximum((-w).max(axis=-1), np.abs(w.sum(axis=-1) - scale)) / np.where(scale > 0, scale, 1)


def boxes(rng: np.random.Generator, d: int, m: int) -> Box:
    lower = rng.normal(size=(m, d)) * 10.0 ** rng.integers(-2, 3, (m, d))
    return Box(lower, lower + rng.exponential(size=(m, d)) * rng.integers(0, 3, (m, d)))


def box_value(s: Box, c: np.ndarray) -> np.ndarray:
    return np.sum(np.minimum(c * s.lower[..., None, :], c * s.upper[..., None, :]), axis=-1)


def box_excess(s: Box, w: np.ndarray) -> np.ndarray:
    low, up = s.lower[..., None, :], s.upper[..., None, :]
    return (np.maximum(low - w, w - up) / np.maximum(np.abs(low), np.abs(up))).max(axis=-1)


# Entropy


def entropies(rng: np.random.Generator, d: int, m: int) -> EntropySimplex:
    share = np.choose(rng.integers(7, size=m), [0, 1e-6, 1e-3, rng.random(m), 0.5, 1 - 1e-7, 1])
    return EntropySimplex(d, share * np.log(d))


_multipliers = jax.jit(jax.vmap(lambda c, h: gibbs(c, h).b))


def entropy_value(s: EntropySimplex, c: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        b = np.asarray(_multipliers(c, s.min_entropy))  # any b >= 0 would do
    h = s.min_entropy[..., None]
    low = c.min(axis=-1)
    safe = np.where((b > 0) & np.isfinite(b), b, 1)
    gap = (c - low[..., None]) / safe[..., None]
    dual = low + safe * (h - logsumexp(-gap, axis=-1))
    return np.where(np.isinf(b), c.mean(axis=-1), np.where(b > 0, dual, low))


def entropy(w: np.ndarray) -> np.ndarray:
    """H(w), without rounding the largest weight's part away near a vertex."""
    top = np.arange(w.shape[-1]) == w.argmax(axis=-1)[..., None]
    small = np.where(top, 0, w)
    rest = np.minimum(small.sum(axis=-1), 1 - 1 / w.shape[-1])
    return -(1 - rest) * np.log1p(-rest) - np.sum(small * np.log(np.where(small > 0, small, 1)), axis=-1)


def entropy_excess(s: EntropySimplex, w: np.ndarray) -> np.ndarray:
    h = s.min_entropy[..., None]
    short = (h - entropy(w)) / np.where(h > 0, h, 1)
    return np.maximum(np.maximum((-w).max(axis=-1), np.abs(w.sum(axis=-1) - 1)), short)


# Ball and ellipsoid: the support function in closed form


def balls(rng: np.random.Generator, d: int, m: int) -> Ball:
    return Ball(rng.normal(size=(m, d)), rng.integers(0, 3, m) * rng.exponential(size=m))


def ball_value(s: Ball, c: np.ndarray) -> np.ndarray:
    return np.sum(s.center[..., None, :] * c, axis=-1) - s.radius[..., None] * np.linalg.norm(c, axis=-1)


def ball_excess(s: Ball, w: np.ndarray) -> np.ndarray:
    center, radius = s.center[..., None, :], s.radius[..., None]
    over = np.linalg.norm(w - center, axis=-1) - radius
    return over / np.maximum(radius, np.abs(center).max(axis=-1))


def ellipsoids(rng: np.random.Generator, d: int, m: int) -> Ellipsoid:
    root = rng.normal(size=(m, d, d))
    return Ellipsoid(rng.normal(size=(m, d)), root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(d))


def ellipsoid_value(s: Ellipsoid, c: np.ndarray) -> np.ndarray:
    spread = np.sqrt(np.einsum("mni,mij,mnj->mn", c, s.shape, c))
    return np.sum(s.center[..., None, :] * c, axis=-1) - spread


def ellipsoid_excess(s: Ellipsoid, w: np.ndarray) -> np.ndarray:
    gap = w - s.center[..., None, :]
    return np.sqrt(np.einsum("mni,mij,mnj->mn", gap, np.linalg.inv(s.shape), gap)) - 1


# Polytopes that are one of the families above, so that their value is known without an LP solver


def polytopes(rng: np.random.Generator, d: int, m: int) -> Polytope:
    """The first half are knapsacks and the others top-k sets."""
    sacks, tops = knapsacks(rng, d, m), topks(rng, d, m)
    return stack([as_polytope(sacks[i] if i < m // 2 else tops[i]) for i in range(m)])


def as_polytope(s: FeasibleSet) -> Polytope:
    if isinstance(s, FractionalKnapsack):
        return Polytope(A_ub=[s.weights], b_ub=[s.budget], lower=0, upper=1)
    if isinstance(s, TopK):
        return Polytope(A_eq=np.ones((1, s.dim)), b_eq=[s.k], lower=0, upper=1)
    if isinstance(s, Simplex):
        return Polytope(A_eq=np.ones((1, s.dim)), b_eq=[s.scale], lower=np.zeros(s.dim))
    return Polytope(lower=s.lower, upper=s.upper)


def _originals(s: Polytope) -> tuple[FractionalKnapsack, TopK]:
    m = s.batch_shape[0]
    parts = [s[i].constraints for i in range(m)]
    sacks, tops = parts[: m // 2], parts[m // 2 :]
    return FractionalKnapsack([p.A_ub[0] for p in sacks], [p.b_ub[0] for p in sacks]), TopK(s.dim, [p.b_eq[0] for p in tops])


def polytope_value(s: Polytope, c: np.ndarray) -> np.ndarray:
    sacks, tops = _originals(s)
    return np.concatenate([knapsack_value(sacks, c[: len(c) // 2]), topk_value(tops, c[len(c) // 2 :])])


def polytope_excess(s: Polytope, w: np.ndarray) -> np.ndarray:
    sacks, tops = _originals(s)
    return np.concatenate([knapsack_excess(sacks, w[: len(w) // 2]), topk_excess(tops, w[len(w) // 2 :])])


# Integer sets: plain loops in float64. An assignment's dimension is a square: see its own test


def not_whole(w: np.ndarray) -> np.ndarray:
    return np.minimum(np.abs(w), np.abs(w - 1)).max(axis=-1)


def grids(rng: np.random.Generator, d: int, m: int) -> ShortestPath:
    """The grid of d arcs that is nearest to a square, with closed arcs; half of them tall, half of them wide."""
    sizes = [(r, c) for r in range(1, d + 2) for c in range(r, d + 2) if r * (c - 1) + (r - 1) * c == d]
    size = max(sizes)[:: 1 if rng.random() < 0.5 else -1]
    found = []
    while len(found) < m:
        try:
            found.append(ShortestPath(*size, rng.random(d) < rng.choice([0.0, 0.2])))
        except ValueError:
            continue
    return stack(found)


def grid_value(s: ShortestPath, c: np.ndarray) -> np.ndarray:
    reached = np.full((*c.shape[:-1], s.rows * s.columns), np.inf)
    reached[..., 0] = 0
    for arc, (tail, head) in sorted(enumerate(s.arcs), key=lambda pair: pair[1]):
        way = np.where(s.closed[:, arc, None], np.inf, reached[..., tail] + c[..., arc])
        reached[..., head] = np.minimum(reached[..., head], way)
    return reached[..., -1]


def grid_excess(s: ShortestPath, w: np.ndarray) -> np.ndarray:
    flow = np.zeros((*w.shape[:-1], s.rows * s.columns))
    flow[..., 0], flow[..., -1] = -1, 1
    for arc, (tail, head) in enumerate(s.arcs):
        flow[..., tail] += w[..., arc]
        flow[..., head] -= w[..., arc]
    return np.maximum(np.maximum(np.abs(flow).max(axis=-1), not_whole(w)), (w * s.closed[:, None]).max(axis=-1))


def whole_knapsacks(rng: np.random.Generator, d: int, m: int) -> ZeroOneKnapsack:
    kinds = [rng.integers(1, 40, (m, d)) / 10, np.ones((m, d)), rng.integers(1, 6, (m, d)) + 0.0]
    a = np.select([rng.integers(3, size=(m, 1)) == i for i in range(3)], kinds, kinds[0])
    total, prefix = a.sum(axis=-1), a[:, : max(1, d // 2)].sum(axis=-1)
    options = [0 * total, 0.1 * total, rng.random(m) * total, prefix, total, 2 * total]
    return ZeroOneKnapsack(a, np.choose(rng.integers(6, size=m), options))


def whole_knapsack_value(s: ZeroOneKnapsack, c: np.ndarray) -> np.ndarray:
    found = np.empty(c.shape[:-1])
    for i, costs in enumerate(c):
        units = np.round(10 * s.weights[i]).astype(int)
        most = min(int(10 * s.budget[i] + 1e-6), int(units.sum()))
        exactly = np.full((len(costs), most + 1), np.inf)  # the least cost of packings of this weight
        exactly[:, 0] = 0
        for unit, cost in zip(units, costs.T, strict=True):
            if unit <= most:
                exactly[:, unit:] = np.minimum(exactly[:, unit:], exactly[:, : most + 1 - unit] + cost[:, None])
        found[i] = exactly.min(axis=1)
    return found


def whole_knapsack_excess(s: ZeroOneKnapsack, w: np.ndarray) -> np.ndarray:
    budget = s.budget[..., None]
    over = np.sum(s.weights[..., None, :] * w, axis=-1) - budget
    return np.maximum(not_whole(w), over / np.where(budget > 0, budget, 1))


def machines(rng: np.random.Generator, d: int, m: int) -> ConsecutiveHours:
    run = int(rng.integers(1, min(d, 5) + 1))
    runs = int(rng.integers(1, d // run + 1))
    first = rng.integers(0, d - run * runs + 1, m)
    return ConsecutiveHours(d, run, runs, first, rng.integers(first + run * runs, d + 1))


def machine_value(s: ConsecutiveHours, c: np.ndarray) -> np.ndarray:
    late = np.full(c.shape[:-1], np.inf)
    onward = [np.zeros_like(late) for _ in range(s.dim + 1)]  # the least cost of the later runs, from each hour on
    for _ in range(s.runs):
        mine = [late] * (s.dim + 1)
        for start in reversed(range(s.dim - s.run + 1)):
            allowed = (start >= s.first) & (start + s.run <= s.last)
            cost = c[..., start : start + s.run].sum(axis=-1) + onward[start + s.run]
            mine[start] = np.minimum(mine[start + 1], np.where(allowed[:, None], cost, np.inf))
        onward = mine
    return onward[0]


def machine_excess(s: ConsecutiveHours, w: np.ndarray) -> np.ndarray:
    excess = not_whole(w)
    for i, j in np.ndindex(excess.shape):
        text = "".join("1" if x > 0.5 else "0" for x in w[i, j])
        inside = text[s.first[i] : s.last[i]]
        whole = all(len(part) % s.run == 0 for part in text.split("0"))
        if not (whole and inside.count("1") == text.count("1") == s.runs * s.run):
            excess[i, j] = 1
    return excess


FAMILIES = {
    "FractionalKnapsack": Family(knapsacks, knapsack_value, knapsack_excess),
    "TopK": Family(topks, topk_value, topk_excess),
    "Simplex": Family(simplices, simplex_value, simplex_excess),
    "Box": Family(boxes, box_value, box_excess),
    "EntropySimplex": Family(entropies, entropy_value, entropy_excess),
    "Ball": Family(balls, ball_value, ball_excess),
    "Ellipsoid": Family(ellipsoids, ellipsoid_value, ellipsoid_excess),
    "Polytope": Family(polytopes, polytope_value, polytope_excess),
    "ShortestPath": Family(grids, grid_value, grid_excess),
    "ZeroOneKnapsack": Family(whole_knapsacks, whole_knapsack_value, whole_knapsack_excess),
    "ConsecutiveHours": Family(machines, machine_value, machine_excess),
}
