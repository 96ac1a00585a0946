"""Random and adversarial pairs of clients of every family, their losses, and the largest share of a bound that they reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from dffl.sets import Ball, Box, Ellipsoid, EntropySimplex, FeasibleSet, FractionalKnapsack, Polytope, Simplex, TopK

ROUNDING = 1e-9


def knapsack(rng: np.random.Generator, d: int) -> FractionalKnapsack:
    a = rng.uniform(0.1, 1, d)
    return FractionalKnapsack(a, rng.uniform(0.05, 1.1) * a.sum())


def entropy(rng: np.random.Generator, d: int) -> EntropySimplex:
    share = rng.choice([0.05, 0.3, 0.6, 0.9, 1 - 0.3 / (d * np.log(d))])  # the last one is strongly convex
    return EntropySimplex(d, share * np.log(d))


def ellipsoid(rng: np.random.Generator, d: int) -> Ellipsoid:
    root = rng.normal(size=(d, d))
    return Ellipsoid(rng.normal(size=d), root @ root.T / d + rng.choice([0.1, 1, 10]) * np.eye(d))


def polytope(rng: np.random.Generator, d: int) -> Polytope:
    rows = rng.uniform(0.2, 1, (2, d))
    if rng.random() < 0.5:
        return Polytope(A_ub=rows, b_ub=rows.sum(axis=1) / 2, lower=np.zeros(d), upper=np.ones(d))
    return Polytope(
        A_ub=rows, b_ub=rows.sum(axis=1), A_eq=np.ones((1, d)), b_eq=[rng.uniform(0.2, 0.8) * d], lower=0, upper=np.ones(d)
    )


FAMILIES: dict[str, Callable[[np.random.Generator, int], FeasibleSet]] = {
    "knapsack": knapsack,
    "topk": lambda rng, d: TopK(d, rng.choice([rng.integers(1, d), rng.uniform(0.1, d - 0.1)])),
    "entropy": entropy,
    "simplex": lambda rng, d: Simplex(d, rng.exponential()),
    "box": lambda rng, d: Box(-rng.exponential(size=d), rng.exponential(size=d)),
    "ball": lambda rng, d: Ball(rng.normal(size=d), rng.exponential()),
    "ellipsoid": ellipsoid,
    "polytope": polytope,
}
CLOSED = tuple(name for name in FAMILIES if name != "polytope")
"""The families with closed-form oracles: a polytope takes an LP a row, and thousands for its distances in many dimensions."""


def solve(s: FeasibleSet, c: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(s.solve(c))


class Clients(NamedTuple):
    """Two clients that share predictions: their costs, their optima and their SPO+ losses, a row an instance."""

    c_hat: np.ndarray
    c: tuple[np.ndarray, np.ndarray]
    s: tuple[FeasibleSet, FeasibleSet]
    w: tuple[np.ndarray, np.ndarray]
    loss: tuple[np.ndarray, np.ndarray]
    noise: np.ndarray  # what rounding may add to a loss

    @property
    def gap(self) -> np.ndarray:
        return np.abs(self.loss[0] - self.loss[1])


def costs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Costs of several kinds, one kind a row."""
    normal = rng.normal(size=(n, d)) * rng.choice([0.1, 1, 10], (n, 1))
    kinds = [normal, rng.standard_cauchy((n, d)), 1 + 1e-4 * normal, rng.integers(-2, 3, (n, d)) + 0.0, normal + 20]
    return np.choose(rng.integers(len(kinds), size=(n, 1)), kinds)


def clients(rng: np.random.Generator, s1: FeasibleSet, s2: FeasibleSet, n: int) -> Clients:
    """``n`` instances of two clients, the predictions independent of the costs, parallel to them, near them or adversarial."""
    d = s1.dim
    c1, free = costs(rng, n, d), costs(rng, n, d)
    near = c1 + rng.choice([0, 1e-3, 0.3], (n, 1)) * rng.normal(size=(n, d))
    c2 = np.where(rng.random((n, 1)) < 0.5, near, free)
    w1, w2 = solve(s1, c1), solve(s2, c2)
    size = rng.lognormal(0, 2, (n, 1))
    adversarial = size * (w1 - w2) * rng.choice([-1, 1], (n, 1))
    kinds = [costs(rng, n, d), size * c1, -size * c1, c1 + 0.1 * rng.normal(size=(n, d)), adversarial, 0 * c1]
    c_hat = np.choose(rng.integers(len(kinds), size=(n, 1)), kinds)
    return evaluate(c_hat, (c1, c2), (s1, s2), (w1, w2))


def evaluate(
    c_hat: np.ndarray, c: tuple[np.ndarray, np.ndarray], s: tuple[FeasibleSet, FeasibleSet], w: tuple[np.ndarray, np.ndarray]
) -> Clients:
    replies = [solve(s[i], 2 * c_hat - c[i]) for i in (0, 1)]
    losses = [np.sum((2 * c_hat - c[i]) * (w[i] - replies[i]), axis=-1) for i in (0, 1)]
    terms = [np.sum(np.abs(2 * c_hat - c[i]) * (np.abs(w[i]) + np.abs(replies[i])), axis=-1) for i in (0, 1)]
    return Clients(c_hat, c, s, w, (losses[0], losses[1]), ROUNDING * (terms[0] + terms[1]))


def pairs(
    rng: np.random.Generator, d: int, n: int, batches: int, families: Sequence[str] = tuple(FAMILIES), mixed: int = 0
) -> Iterator[Clients]:
    """A pair of sets within every family, and ``mixed`` across families: for each, ``batches`` times ``n`` instances."""
    names = [(name, name) for name in families]
    names += [tuple(rng.choice(families, 2, replace=False)) for _ in range(mixed)]
    for one, other in names:
        s1, s2 = FAMILIES[one](rng, d), FAMILIES[other](rng, d)
        for _ in range(batches):
            yield clients(rng, s1, s2, n)


def largest_share(left: np.ndarray, right: np.ndarray, noise: np.ndarray | float) -> float:
    """The largest left / right among instances; asserts that it is at most 1, up to rounding."""
    over = left - right * (1 + ROUNDING) - noise
    assert (over <= 0).all(), f"violated by {over.max():.3g}: {left[over.argmax()]:.6g} > {right[over.argmax()]:.6g}"
    clear = np.isfinite(right) & (right > 1e4 * noise) & (right > 0)
    return float((left[clear] / right[clear]).max(initial=0))
