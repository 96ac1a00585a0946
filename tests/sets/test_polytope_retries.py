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
def test_no_cost_is_left_unsolved(kind: str, seed: int) -> None:
    constraints = rows(kind, seed)
    model = Polytope(lower=np.zeros(12), upper=np.ones(12), **constraints)._loaded("model").model
    costs = np.random.default_rng(seed + 100).normal(size=(8000, 12))  # with highspy 1.15 some ten of them are stubborn
    answers = model.solve(costs)
    assert model.excess(answers).max() < 1e-9
    for part in np.split(np.arange(8000), 8):  # no answer is beaten by another cost's: a vertex left too early would be
        own = np.sum(costs[part] * answers[part], axis=1)
        assert (own <= (costs[part] @ answers.T).min(axis=1) + 1e-9).all()
    for i in range(50):
        assert costs[i] @ answers[i] == pytest.approx(linprog(costs[i], bounds=(0, 1), **constraints).fun, rel=1e-9)
    np.testing.assert_array_equal(model.solve(costs[::-1]), answers[::-1])  # whatever was solved before


@pytest.mark.parametrize("options", _highs.CAUTIOUS, ids=str)
def test_every_cautious_way_is_optimal_and_leaves_the_usual_one_as_it_was(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_highs, "CAUTIOUS", (options,))
    model = Polytope(lower=np.zeros(12), upper=np.ones(12), **rows("covering", 1))._loaded("model").model
    costs = np.random.default_rng(2).normal(size=(40, 12))
    usual = model.solve(costs)
    for cost, answer in zip(costs, usual, strict=True):
        warm = model._warm
        warm.highs.changeColsCost(12, warm._columns, cost)
        warm._retry()
        assert cost @ np.asarray(warm.highs.getSolution().col_value) == pytest.approx(cost @ answer, rel=1e-7)
    np.testing.assert_array_equal(model.solve(costs), usual)


def test_a_literal_stubborn_cost() -> None:
    constraints = rows("covering", 4)
    s = Polytope(lower=np.zeros(12), upper=np.ones(12), **constraints)
    with jax.enable_x64(True):
        w = np.asarray(s.solve(np.float64(np.float32(STUBBORN))))
    np.testing.assert_allclose(w, [1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1], atol=1e-9)
