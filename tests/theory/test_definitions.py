"""The support function, the risks and the norms of costs: against solvers that dffl does not use, and literal numbers."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import dffl
from dffl.predictor import ConstantPredictor
from dffl.theory import client_risk, client_risks, cost_norms, mixture_risk, support
from tests.federations import client, feasible_sets

D = 5
A, B = np.linspace(0.5, 1.5, D), 0.4 * D
ROWS = np.random.default_rng(3).uniform(0.2, 1, (3, D))
LINEAR: dict[str, dict[str, Any]] = {
    "knapsack": {"A_ub": [A], "b_ub": [B], "bounds": (0, 1)},
    "topk": {"A_eq": np.ones((1, D)), "b_eq": [2.5], "bounds": (0, 1)},
    "simplex": {"A_eq": np.ones((1, D)), "b_eq": [2.0], "bounds": (0, None)},
    "box": {"bounds": list(zip(-np.ones(D), np.arange(1.0, D + 1), strict=True))},
    "polytope": {"A_ub": ROWS, "b_ub": ROWS.sum(axis=1) / 2, "bounds": (0, 1)},
}
"""The sets of `feasible_sets` that are polytopes, as HiGHS takes them."""


def highest(name: str, u: np.ndarray) -> float:
    """The maximum of u . w over a set, by HiGHS, by CVXPY or over all its points."""
    if name in LINEAR:
        return -float(linprog(-u, **LINEAR[name]).fun)
    if name == "items":
        points = [w for w in product((0, 1), repeat=D) if np.dot(np.arange(1.0, D + 1), w) <= 1.5 * D]
        return max(float(u @ np.array(w)) for w in points)
    if name == "hours":
        return max(float(u[k : k + 2].sum()) for k in range(D - 1))
    w = cp.Variable(D)
    rules = {
        "entropy": [cp.sum(w) == 1, cp.sum(cp.entr(w)) >= 0.8],
        "ball": [cp.norm(w - 1) <= 2],
        "ellipsoid": [cp.norm(cp.multiply(1 / np.sqrt(np.arange(1.0, D + 1)), w)) <= 1],
    }[name]
    return float(cp.Problem(cp.Maximize(u @ w), rules).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("name", sorted(feasible_sets(D)))
def test_the_support_function_is_that_of_another_solver(name: str) -> None:
    u = np.random.default_rng(0).normal(size=(6, D))
    expected = [highest(name, row) for row in u]
    found = support(u, feasible_sets(D)[name])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_literal_supports() -> None:
    assert float(support([3.0, 4.0], dffl.Ball([1.0, 0.0], 2.0))) == 13.0
    np.testing.assert_array_equal(support([[1.0, 2.0, 5.0], [-1.0, -1.0, -4.0]], dffl.TopK(3, 2)), [7.0, -2.0])
    with pytest.raises(ValueError, match=r"support: u must have shape \(\.\.\., 3\), found \(2,\)"):
        support(np.ones(2), dffl.TopK(3, 2))


def test_a_known_cost_does_not_enter_the_support_function() -> None:
    # Two decisions and a helper of known cost 9: the support function is that of the decisions alone.
    s = dffl.Polytope(A_eq=[[1.0, 1, 1]], b_eq=[2.0], lower=0, upper=[1, 2, 2], helpers=1, known_cost=[9.0])
    assert float(support([3.0, 1.0], s)) == pytest.approx(4.0)


# Risks


def by_hand(name: str, c_hat: np.ndarray, c: np.ndarray) -> float:
    """Mean SPO+ of a minimiser from the paper's formula: xi(c - 2 c_hat) + 2 c_hat . w*(c) - z*(c), all by HiGHS."""
    losses = []
    for guess, cost in zip(c_hat, c, strict=True):
        best = linprog(cost, **LINEAR[name])
        losses.append(highest(name, cost - 2 * guess) + 2 * guess @ best.x - best.fun)
    return float(np.mean(losses))


@pytest.mark.parametrize("name", sorted(LINEAR))
@pytest.mark.parametrize("maximize", [False, True])
def test_the_risk_is_the_papers_formula(name: str, maximize: bool) -> None:
    one = client("a", feasible_sets(D)[name], n=9, maximize=maximize)
    matrix = np.random.default_rng(5).normal(size=(one.x.shape[1], D))
    sign = -1 if maximize else 1
    expected = by_hand(name, sign * one.x @ matrix, sign * one.c)
    assert expected > 0
    assert client_risk(lambda x: x @ matrix, one) == pytest.approx(expected, rel=1e-9)


def test_the_regret_is_a_risk_too() -> None:
    one = client("a", feasible_sets(D)["knapsack"], n=9)
    matrix = np.random.default_rng(5).normal(size=(one.x.shape[1], D))
    lost = [
        c @ linprog(guess, **LINEAR["knapsack"]).x - linprog(c, **LINEAR["knapsack"]).fun
        for guess, c in zip(one.x @ matrix, one.c, strict=True)
    ]
    assert client_risk(lambda x: x @ matrix, one, loss="regret") == pytest.approx(np.mean(lost))
    assert client_risk(lambda x: x @ matrix, one) >= np.mean(lost)


def test_literal_risks_and_their_mixture() -> None:
    # On [-1/2, 1/2] SPO+ is max(0, 1 - 2g) at c = 1 and max(0, 1 + 2g) at c = -1; the prediction is .25 everywhere.
    interval = dffl.Box([-0.5], [0.5])
    first = dffl.Client("first", np.zeros((4, 1)), [[1.0], [1], [1], [-1]], interval)
    second = dffl.Client("second", np.zeros((1, 1)), [[-1.0]], interval)
    model = ConstantPredictor(np.array([0.25]))
    np.testing.assert_allclose(client_risks(model, [first, second]), [0.75, 1.5])
    assert mixture_risk(model, dffl.Federation([first, second])) == pytest.approx(0.8 * 0.75 + 0.2 * 1.5)
    assert mixture_risk(model, [first, second], weights=[0.5, 0.5]) == pytest.approx(1.125)
    # w = -1/2 at a positive prediction: right for three of four, and 1 lost at c = -1.
    np.testing.assert_allclose(client_risks(model, [first, second], loss="regret"), [0.25, 1.0])


@pytest.mark.parametrize("method", ["mean-cost", "fedavg"])
def test_a_fit_has_risks_and_its_regrets_are_those_of_evaluate(method: str) -> None:
    s = feasible_sets(D)["topk"]
    members = [client("a", s), client("b", s, maximize=True, n=20)]
    fed = dffl.Federation(members)
    fit = dffl.fit(fed, method, rounds=1, progress=False)
    np.testing.assert_allclose(client_risks(fit, fed, loss="regret"), fit.evaluate(fed)["regret"], rtol=1e-6)
    expected = []
    for one in members:
        guess = one.sense * fit.predict(one.name, one.x)
        expected.append(by_hand("topk", guess, one.sense * one.c))
    np.testing.assert_allclose(client_risks(fit, fed), expected, rtol=1e-9)
    assert mixture_risk(fit, fed) == pytest.approx((12 * expected[0] + 20 * expected[1]) / 32)
    newcomer = client("d", s)
    if fit.shared is None:
        with pytest.raises(ValueError, match="has no shared model"):
            client_risk(fit, newcomer)
    else:
        alone = by_hand("topk", fit.predict(newcomer, newcomer.x), newcomer.c)
        assert client_risk(fit, newcomer) == pytest.approx(alone)


def test_known_costs_are_part_of_a_risk() -> None:
    s = dffl.Polytope(A_eq=[[1.0, 1, 1]], b_eq=[2.0], lower=0, upper=[1, 1, 2], helpers=1, known_cost=[2.0])
    one = dffl.Client("a", np.zeros((1, 1)), [[1.0, 3.0]], s)
    # At (1, 3): the first good and one unit of the helper, 1 + 2; by (4, 1) the second good and the helper: 3 + 2.
    assert client_risk(ConstantPredictor(np.array([4.0, 1.0])), one, loss="regret") == pytest.approx(2.0)


def test_refused_models_and_clients() -> None:
    one = client("a", feasible_sets(D)["topk"])
    with pytest.raises(ValueError, match=r"client 'a': the model must predict finite costs of shape \(12, 5\), found shape"):
        client_risk(lambda x: x, one)
    with pytest.raises(ValueError, match="found a number that is not finite"):
        client_risk(lambda x: np.full((12, 5), np.nan), one)
    with pytest.raises(ValueError, match=r"a model is a dffl\.Fit, a predictor or a function of features, found str"):
        client_risk("local", one)
    with pytest.raises(ValueError, match=r"loss must be 'spo\+' or 'regret', found 'mse'"):
        client_risk(lambda x: x, one, loss="mse")
    with pytest.raises(ValueError, match="weights must be 1 numbers >= 0, one per client, found"):
        mixture_risk(lambda x: np.zeros((12, 5)), [one], weights=[0.5, 0.5])
    with pytest.raises(ValueError, match="at least one client"):
        mixture_risk(lambda x: x, [])


# C_min and C_max


def test_norms_of_costs_are_projected_where_the_sum_is_fixed() -> None:
    c = np.array([[3.0, 4.0], [6.0, 8.0], [100.0, 101.0]])
    assert cost_norms(c[:2], dffl.Ball([0.0, 0.0], 1.0)) == (5.0, 10.0)
    found = cost_norms(c, dffl.Simplex(2))
    assert found.least == pytest.approx(math.sqrt(0.5))
    assert found.largest == pytest.approx(math.sqrt(2))
    with pytest.raises(ValueError, match="at least one cost vector"):
        cost_norms(np.empty((0, 2)), dffl.Simplex(2))
