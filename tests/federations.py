"""Small federations that tests train in seconds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import dffl

P, D = 3, 5
KINDS = ("topk", "entropy", "polytope")
"""A family of each kind of oracle: one that sorts, one that finds a root, one that a solver outside the program answers."""


def feasible_sets(d: int = D) -> dict[str, dffl.FeasibleSet]:
    """One set of every family that has sets of any dimension."""
    rows = np.random.default_rng(3).uniform(0.2, 1, (3, d))
    return {
        "knapsack": dffl.FractionalKnapsack(np.linspace(0.5, 1.5, d), 0.4 * d),
        "topk": dffl.TopK(d, 2.5),
        "entropy": dffl.EntropySimplex(d, 0.8),
        "simplex": dffl.Simplex(d, 2.0),
        "box": dffl.Box(-np.ones(d), np.arange(1.0, d + 1)),
        "ball": dffl.Ball(np.ones(d), 2.0),
        "ellipsoid": dffl.Ellipsoid(np.zeros(d), np.diag(np.arange(1.0, d + 1))),
        "polytope": dffl.Polytope(A_ub=rows, b_ub=rows.sum(axis=1) / 2, lower=np.zeros(d), upper=np.ones(d)),
        "items": dffl.ZeroOneKnapsack(np.arange(1.0, d + 1), 1.5 * d),
        "hours": dffl.ConsecutiveHours(d, 2),
    }


def client(name: str, s: dffl.FeasibleSet, n: int = 12, maximize: bool = False, seed: int = 0) -> dffl.Client:
    """Costs that depend on the features, with a little noise."""
    rng = np.random.default_rng([seed, *name.encode()])
    x = rng.normal(size=(n, P))
    loading = np.random.default_rng(seed).normal(size=(P, s.dim))
    return dffl.Client(name, x, 2 + x @ loading + 0.1 * rng.normal(size=(n, s.dim)), s, maximize)


def mixed(n: int = 12, seed: int = 0, families: Iterable[str] = KINDS) -> dffl.Federation:
    """Families side by side, both senses, sizes that differ."""
    sets = feasible_sets()
    members = [
        client(f"{family}-{k}", sets[family], n + 7 * k, maximize=k == 1, seed=seed) for family in families for k in range(2)
    ]
    return dffl.Federation(members)
