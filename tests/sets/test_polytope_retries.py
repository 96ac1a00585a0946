"""HiGHS's primal simplex gives up on a few costs of covering and equality-bound LPs; those are solved again."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from dffl.sets import Polytope, _highs

# A cost at which the usual solve stops short (status kUnknown) on the covering LP of seed 4.
STUBBORN = [-2.2065132, 0.5470084, -0.4652482, -1.2707933, 0.3594882, -1.105429]
STUBBORN += [1.0082598, 0.7170967, 2.234641, -0.7527247, 0.9545152, -0.45099074]


def rows(kind: str, seed: int) -> dict[str, np.ndarray]:
    a = np.random.default_rng(seed).uniform(0, 1, size=(4, 12))
    if kind == "covering":
        return {"A_ub": -a, "b_ub": -0.4 * a.sum(axis=1)}
    return {"A_ub": a, "b_ub": 0.5 * a.sum(axis=1), "A_eq": np.ones((1, 12)), "b_eq": np.array([4.0])}


@pytest.mark.parametrize(("kind", "seed"), [("covering", 4), ("covering", 6), ("equality", 7)])
def test_no_cost_is_left_unsolved(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    constraints = rows(kind, seed)
    s = Polytope(lower=np.zeros(12), upper=np.ones(12), **constraints)
    model = _highs.lookup(s.digest)
    retried = []
    retry = _highs.Model._retry
    monkeypatch.setattr(_highs.Model, "_retry", lambda self: (retried.append(len(retried)), retry(self))[1])
    costs = np.random.default_rng(seed + 100).normal(size=(8000, 12))
    answers, stubborn = [], []
    for cost in costs:
        before = len(retried)
        answers.append(model.solve(cost[None])[0])
        if len(retried) > before:
            stubborn.append(len(answers) - 1)
    assert stubborn, "these instances no longer exercise the retry: find others"
    assert model.excess(np.array(answers)).max() < 1e-9
    for i in [*stubborn, *range(50)]:
        best = linprog(costs[i], bounds=(0, 1), **constraints).fun
        assert costs[i] @ answers[i] == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(model.solve(costs[stubborn]), np.array(answers)[stubborn])  # whatever came before


def test_a_literal_stubborn_cost() -> None:
    constraints = rows("covering", 4)
    s = Polytope(lower=np.zeros(12), upper=np.ones(12), **constraints)
    with jax.enable_x64(True):
        w = np.asarray(s.solve(np.float64(np.float32(STUBBORN))))
    np.testing.assert_allclose(w, [1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1], atol=1e-9)
