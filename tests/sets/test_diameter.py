"""Diameters: literal values, brute force over vertices, and brackets that no pair of points leaves."""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest

from dffl.sets import Ball, Box, Ellipsoid, EntropySimplex, FeasibleSet, FractionalKnapsack, Polytope, Simplex, TopK

from .instances import knapsacks
from .test_oracles_against_linprog import random_polytope
from .test_transforms import SETS, D


def longest(points: np.ndarray) -> float:
    return float(max(np.linalg.norm(points - p, axis=-1).max() for p in points))


def knapsack_vertices(s: FractionalKnapsack) -> np.ndarray:
    """Every set of whole items that fits, alone and with a part of one more item that fills the budget."""
    found = []
    for whole in itertools.product([0.0, 1.0], repeat=s.dim):
        left = float(s.budget - np.dot(whole, s.weights))
        if left < 0:
            continue
        found.append(np.array(whole))
        for i in np.flatnonzero(np.asarray(whole) == 0):
            found.append(np.array(whole))
            found[-1][i] = min(1.0, left / s.weights[i])
    return np.array(found)


def topk_vertices(d: int, k: float) -> np.ndarray:
    whole = int(k)
    values = [1.0] * whole + [k - whole] * (whole < d) + [0.0] * (d - whole - 1)
    return np.array(sorted(set(itertools.permutations(values))))


@pytest.mark.parametrize(
    ("s", "value"),
    [
        (TopK(24, 4), 2.8284),
        (TopK(24, 12), 4.8990),
        (TopK(24, 20), 2.8284),
        (TopK(24, 0), 0),
        (TopK(24, 24), 0),
        (TopK(1, 0.5), 0),
        (Simplex(5, 3), 4.2426),
        (Simplex(1, 3), 0),
        (Box([0, 0], [3, 4]), 5),
        (Ball([9, 9], 3), 6),
        (Ellipsoid([0, 0], [[4, 0], [0, 9]]), 6),
        (FractionalKnapsack([1, 2, 3], 6), 1.7321),
        (FractionalKnapsack([1, 2, 3], 99), 1.7321),
        (FractionalKnapsack([1, 1, 1, 1], 2.5), 2),
        (FractionalKnapsack([1, 2], 0), 0),
        (EntropySimplex(4, 0), 1.4142),
        (EntropySimplex(4, math.log(4)), 0),
        (EntropySimplex(1, 0), 0),
    ],
)
def test_exact_values(s: FeasibleSet, value: float) -> None:
    assert s.diameter().exact
    assert s.diameter().upper == pytest.approx(value, abs=1e-4)


def test_the_entropy_bracket_of_the_theory() -> None:
    bracket = EntropySimplex(50, math.log(50) / 2).diameter()
    assert bracket == pytest.approx((0.93379, 0.93843), abs=5e-6)
    assert not bracket.exact


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_topk_by_brute_force(d: int) -> None:
    for k in np.linspace(0, d, 4 * d + 1):
        value = longest(topk_vertices(d, float(k)))
        assert TopK(d, k).diameter() == pytest.approx((value, value), abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_knapsack_brackets_by_brute_force(d: int) -> None:
    gaps = []
    for s in knapsacks(np.random.default_rng(d), d, 25):
        lower, upper = s.diameter()
        exact = longest(knapsack_vertices(s))
        assert lower / (1 + 1e-12) <= exact <= upper * (1 + 1e-12), (s.weights, s.budget)
        gaps.append(upper - lower)
    assert min(gaps) == 0


def test_knapsack_brackets_are_narrow_at_the_papers_size() -> None:
    rng = np.random.default_rng(0)
    for share in (0.1, 0.3, 0.5):
        a = rng.uniform(0.5, 1.5, 50)
        lower, upper = FractionalKnapsack(a, share * a.sum()).diameter()
        assert lower > 0
        assert upper / lower <= 1.02


@pytest.mark.parametrize("h", [0.3, 1.0, 1.5])
def test_entropy_lower_bound_is_attained_and_the_upper_one_never_exceeded(h: float) -> None:
    d = 6
    s = EntropySimplex(d, h)
    lower, upper = s.diameter()
    with jax.enable_x64(True):
        ends = np.asarray(s.solve(np.outer([1, -1], np.eye(d)[1] - np.eye(d)[0])))
        assert np.asarray(s.contains(ends, 1e-9)).all()
        points = np.asarray(s.solve(np.random.default_rng(0).normal(size=(1500, d))))
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(lower, rel=1e-9)
    assert longest(points) <= lower * (1 + 1e-9)  # the conjecture: the lower end is the diameter
    assert lower <= upper <= 1.2 * lower


@pytest.mark.parametrize("d", [2, 7, 50, 1399])
@pytest.mark.parametrize("share", [2e-16, 1e-12, 1e-7])
def test_close_to_log_d_the_entropy_set_is_a_small_ball(d: int, share: float) -> None:
    s = EntropySimplex(d, math.log(d) * (1 - share))
    ball = 2 * math.sqrt(2 * float(s.spare) / d)  # log d - H = d / 2 |w - 1 / d|^2 to second order
    assert s.diameter() == pytest.approx((ball, ball), rel=2e-2, abs=0)


@pytest.mark.parametrize("s", SETS.values(), ids=SETS.keys())
def test_sampled_pairs_never_exceed_the_upper_end(s: FeasibleSet) -> None:
    with jax.enable_x64(True):
        points = np.asarray(s.solve(np.random.default_rng(0).normal(size=(800, D))))
    lower, upper = s.diameter()
    assert 0 < lower <= upper
    assert longest(points) <= upper * (1 + 1e-9)
    assert longest(points) >= 0.9 * lower


def vertices(s: Polytope) -> np.ndarray:
    """Every intersection of d constraints that satisfies the others."""
    lp, d = s.constraints, s.dim
    a, b = np.concatenate([lp.A_ub, np.eye(d), -np.eye(d)]), np.concatenate([lp.b_ub, lp.upper, -lp.lower])
    a, b = a[b < np.inf], b[b < np.inf]
    found = []
    for rows in itertools.combinations(range(len(a)), d - len(lp.A_eq)):
        matrix, right = np.concatenate([lp.A_eq, a[list(rows)]]), np.concatenate([lp.b_eq, b[list(rows)]])
        if np.linalg.matrix_rank(matrix) == d:
            w = np.linalg.solve(matrix, right)
            if (a @ w <= b + 1e-9).all():
                found.append(w)
    return np.array(found)


def test_polytope_brackets_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    attained = 0
    for _ in range(15):
        s = random_polytope(rng, 3)
        exact, (lower, upper) = longest(vertices(s)), s.diameter()
        assert lower <= exact + 1e-8
        assert exact <= upper + 1e-8
        attained += lower >= exact - 1e-8
    assert attained >= 13  # power iteration finds the diameter itself nearly always
