"""The polyhedral oracles against scipy.optimize.linprog, an LP solver that sees only matrices."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from dffl.sets import FeasibleSet, Polytope

from .instances import TOLERANCE, as_polytope, instances, solve

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def optimum(s: Polytope, c: np.ndarray) -> float:
    lp = s.constraints
    rows = {k: v for k, v in lp._asdict().items() if k[0] in "Ab" and v.size}
    result = linprog(c, **rows, bounds=np.stack([lp.lower, lp.upper], axis=-1), method="highs", options=TIGHT)
    assert result.status == 0, result.message
    return float(result.fun)


def check(s: FeasibleSet, c: np.ndarray, w: np.ndarray, tol: float) -> None:
    """Every row of w is feasible and optimal for its row of c."""
    polytope = s if isinstance(s, Polytope) else as_polytope(s)
    with jax.enable_x64(True):
        assert np.asarray(s.contains(w, tol)).all()
        assert np.asarray(polytope.contains(w, tol)).all()
    for row, answer in zip(np.asarray(c, np.float64), w, strict=True):
        scale = np.abs(row).max() or 1.0  # linprog's own tolerances are absolute
        value, size = scale * optimum(polytope, row / scale), np.abs(row) @ np.abs(answer)
        assert abs(row @ answer - value) <= tol * max(abs(value), size) + 1e-14 * np.abs(row).sum()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["FractionalKnapsack", "TopK", "Simplex", "Box", "Polytope"])
def test_closed_forms_agree_with_an_lp_solver(name: str, dtype: str) -> None:
    for stacked, c in instances(name, 3, iter((1, 5, 30)), 4, 6):
        w = solve(stacked, c, dtype)
        for i in range(4):
            check(stacked[i], c[i], w[i], TOLERANCE[dtype])


def random_polytope(rng: np.random.Generator, d: int) -> Polytope:
    """Not empty, as it holds a known point; bounded, by a box or by rows alone; with degenerate and equal rows."""
    inside, a = rng.normal(size=d), rng.integers(-2, 3, (d + 2, d)) + 0.0
    slack = rng.exponential(size=d + 2) * rng.integers(0, 2, d + 2)
    ub = np.concatenate([a, a[:1]]), np.concatenate([a @ inside + slack, a[:1] @ inside + slack[:1]])
    eq = {"A_eq": np.ones((1, d)), "b_eq": [inside.sum()]} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        return Polytope(*ub, **eq, lower=inside - 1, upper=inside + rng.exponential(size=d))
    cross = np.concatenate([np.eye(d), -np.eye(d)])
    return Polytope(np.concatenate([ub[0], cross]), np.concatenate([ub[1], cross @ inside + 1]), **eq)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_random_polytopes_agree_with_an_lp_solver(dtype: str) -> None:
    rng = np.random.default_rng(4)
    for d in (1, 2, 4, 9):
        for _ in range(12):
            s = random_polytope(rng, d)
            c = [rng.normal(size=d), rng.integers(-2, 3, d), rng.standard_cauchy(d), 1e5 * rng.normal(size=d)]
            c = np.array(c, np.float32)
            check(s, c, solve(s, c, dtype), TOLERANCE[dtype])
