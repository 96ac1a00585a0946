"""Costs of very different sizes: penalties beside prices. Every whole number listed, and the rest solved in fractions."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

import dffl
from dffl.sets import MixedInteger, Polytope, _proof
from dffl.sets._calls import CallLimits, Calls
from tests.sets import exact, wide


def solved(s: MixedInteger | Polytope, costs: np.ndarray) -> np.ndarray:
    """All columns of the answers, in the order of the program; without a compiled program around it."""
    model = s._loaded("test").model
    return model.solve(costs) if s.program is None else model.complete(costs, 1.0)


def judged(seeds: range, largest: float) -> Counter[str]:
    """How many answers are right, wrong, and without a proof."""
    count: Counter[str] = Counter()
    for seed in seeds:
        ratio = 10.0 ** np.random.default_rng(seed).uniform(6.5, np.log10(largest))
        p = wide.program(seed, ratio)
        if p is None:
            count["empty"] += 1
            continue
        v = solved(p.set, p.predicted)[0]
        best = exact.optimum(p.costs[0], **p.rows)
        assert best is not None
        over = np.concatenate([p.rows["a_ub"] @ v - p.rows["b_ub"], p.rows["lower"] - v, v - p.rows["upper"]])
        assert over.max() <= 1e-9, seed
        np.testing.assert_array_equal(v[p.rows["whole"]], np.round(v[p.rows["whole"]]))
        off = abs(float(exact.cost(p.costs[0], v) - best))
        # Prices, not penalties, say how much is much; the entries of v are rounded, which penalties above 1e9 show.
        rounding = 4 * np.finfo(float).eps * float(np.abs(p.costs[0]) @ np.abs(v))
        right = off <= 1e-6 * p.prices * max(1.0, float(np.abs(v).sum())) + rounding
        proven = p.set.calls.unproven == 0
        count["right" if right else "wrong, said so" if not proven else "WRONG IN SILENCE"] += 1
        count["unproven"] += not proven
        count[p.kind] += 1
    return count


def test_penalties_up_to_1e9_give_the_best_answer_or_are_counted() -> None:
    count = judged(range(65), 1e9)
    assert count["WRONG IN SILENCE"] == 0, count
    assert count["right"] >= 57, count
    assert count["unproven"] <= 3, count


@pytest.mark.slow
def test_2000_programs_with_penalties_up_to_1e9() -> None:
    count = judged(range(2120), 1e9)
    print(dict(count))
    assert sum(count[kind] for kind in wide.KINDS) >= 2000
    assert count["WRONG IN SILENCE"] == 0, count
    assert count["unproven"] <= 40, count


@pytest.mark.slow
def test_beyond_1e9_nothing_is_wrong_in_silence() -> None:
    count = judged(range(300), 1e12)
    assert count["WRONG IN SILENCE"] == 0, count


def test_the_penalty_of_unserved_load_does_not_hide_the_prices() -> None:
    # Five units with switches; what they do not serve costs a known penalty.
    eye, none = np.eye(5), np.zeros((5, 1))
    size = np.array([4.0, 3.0, 5.0, 2.0, 6.0])
    rows = np.vstack([np.hstack([-np.diag(size), eye, none]), np.concatenate([np.zeros(5), -np.ones(6)])[None]])
    right = np.append(np.zeros(5), -9.0)
    upper = np.concatenate([np.ones(5), size, [20.0]])
    prices = np.concatenate([np.round(np.random.default_rng(3).uniform(1, 5, (20, 5)), 2), np.ones((20, 5))], axis=1)
    answers = {}
    for penalty in (1e4, 1e6, 1e7, 1e8, 1e9):
        s = MixedInteger(rows, right, lower=0, upper=upper, integer=range(5), helpers=1, known_cost=[penalty])
        answers[penalty] = s.decide(prices)
        assert s.calls.unproven == 0
    cost = {penalty: (prices * v[:, :-1]).sum(axis=1) for penalty, v in answers.items()}
    for penalty, v in answers.items():
        np.testing.assert_allclose(v[:, -1], 0, atol=1e-12)
        np.testing.assert_allclose(cost[penalty], cost[1e4], rtol=1e-9)


def test_a_predicted_penalty_does_not_hide_known_prices() -> None:
    # Three units with switches serve a load of 6; all their prices are known, and the penalty is predicted.
    size, eye, none = np.array([4.0, 3.0, 5.0]), np.eye(3), np.zeros((3, 1))
    rows = np.vstack([np.hstack([-np.diag(size), eye, none]), [[0, 0, 0, -1, -1, -1, -1]]])
    known, upper = np.array([4.0, 2.0, 3.0, 1.5, 3.0, 1.0]), [1, 1, 1, 4, 3, 5, 100]
    s = MixedInteger(rows, [0, 0, 0, -6.0], None, None, np.zeros(7), upper, range(3), known, helpers=range(6))
    penalties = np.array([[1e3], [1e6], [1e7], [1e8], [1e9], [1e10]])
    # The second and the third unit serve 1 and 5: 2 + 3 + 3 + 5.
    np.testing.assert_allclose(s.decide(penalties), np.tile([0, 0, 1, 1, 0, 1, 5], (6, 1)), atol=1e-9)
    assert s.calls.unproven == 0
    np.testing.assert_array_equal(dffl.regret([[1e3]], [[1e9]], s), [0.0])


def test_most_predicted_costs_may_be_penalties() -> None:
    s = Polytope(A_eq=np.ones((1, 10)), b_eq=[1.0], lower=np.zeros(10), upper=np.ones(10))
    costs = np.full((90, 10), 1e12)
    pairs = np.array([(i, j) for i in range(10) for j in range(10) if i != j])
    costs[np.arange(90), pairs[:, 0]], costs[np.arange(90), pairs[:, 1]] = 1.0, 9.0
    np.testing.assert_array_equal(solved(s, costs).argmax(axis=-1), pairs[:, 0])
    assert s.calls.unproven == 0


def test_a_cost_that_is_a_rounding_error_is_not_proven_for() -> None:
    s = MixedInteger([[3.0, 5, 7, 4, 2, 6]], [9.0], lower=0, upper=np.ones(6), helpers=1, known_cost=[-2.0])
    proof = _proof.Proof(s._loaded("test").model.program, 1.0)
    assert proof._deciding(np.array([-3.0, 5e-17, -4.0, -3.0, -3.0, -2.0])) == 2.0
    assert proof._deciding(np.array([-3.0, 5e-12, -4.0, -3.0, -3.0, -2.0])) == 5e-12
    assert proof._deciding(np.array([-3e14, 1.0, 1.5, 3.0, 3.0, -2.0])) == 1.5  # most costs are no rounding errors of one


def test_a_penalty_of_less_than_a_million_prices_does_not_hide_them() -> None:
    # Five units with switches, two trades and a surplus; the costs of a solve range over 7.2e5.
    most, least = np.array([6.0, 36, 10, 45, 41]), np.array([1.0, 0, 5, 13, 0])
    eye, none = np.eye(5), np.zeros((5, 3))
    rows = np.vstack([np.hstack([eye, -np.diag(most), none]), np.hstack([-eye, np.diag(least), none])])
    balance = np.array([1.0] * 5 + [0] * 5 + [1, 1, -1])
    prices, known = [59.34, 26.29, 38.54, 47.15, 26.81], [52.0, 20, 42, 93, 95, 570241, 14372667, 708175]
    upper, whole = np.concatenate([most, np.ones(5), [11, 118, 1000]]), range(5, 10)
    s = MixedInteger(rows, np.zeros(10), balance[None], [59.0], np.zeros(13), upper, whole, known, helpers=8)
    # The second and the fifth unit serve 36 and 23, and being on costs 20 and 95.
    assert s.decide(prices) @ np.array(prices + known) == pytest.approx(26.29 * 36 + 26.81 * 23 + 20 + 95, rel=1e-9)
    assert s.calls.unproven == 0


def test_semi_continuous_variables_are_proven_as_well() -> None:
    # Each of two plants makes 0, or 2 to 5; the first is dearer, and 3 must be made. Not making 1 costs the penalty.
    text = "min\n {} short\nst\n a + b + short >= 3\nbounds\n 2 <= a <= 5\n 2 <= b <= 5\n short <= 9\nsemi\n a b\nend\n"
    for penalty in (1e2, 1e8, 1e9):
        s = dffl.ModelFile(text=text.format(penalty), format="lp", predicted=["a", "b"])
        np.testing.assert_array_equal(s.decide([[2.0, 1.0], [1.0, 2.0]]), [[0, 3, 0], [3, 0, 0]])
        assert s.calls.unproven == 0


def test_nothing_is_checked_where_costs_range_over_less(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        def __init__(self, *_: object):
            raise AssertionError

    for module in ("_solving", "polytope"):
        monkeypatch.setattr(f"dffl.sets.{module}.Proof", Never)
    sets = [
        MixedInteger([[1.0, 2, 3]], [4.0], lower=0, upper=np.ones(3), helpers=1, known_cost=[1.0]),
        Polytope([[1.0, 2, 3]], [4.0], lower=0, upper=np.ones(3), helpers=1, known_cost=[1.0]),
        Polytope([[1.0, 2]], [2.5], lower=0, upper=np.ones(2)),
    ]
    for s in sets:
        solved(s, np.array([[9.9e4, 1.0], [-1.0, 0.0], [0.0, 0.0]]))
        with pytest.raises(AssertionError):
            solved(s, np.array([[1.1e5, 1.0]]))


def test_a_cost_of_a_fixed_column_does_not_count() -> None:
    free = np.array([True, True, False])
    np.testing.assert_array_equal(_proof.ranges(np.array([[1.0, 4.0, 1e9], [0, 2, 1], [0, 0, 1]]), free), [4.0, 1.0, 1.0])


@pytest.mark.parametrize("large", [1e8, 1e11, -1e11])
def test_the_cost_of_a_fixed_column_does_not_hide_the_others(large: float) -> None:
    # Of two plants one runs. A third column is fixed at 1 and is paid in any case, such as a constant of the objective.
    rows = {"A_eq": [[1.0, 1.0, 0.0]], "b_eq": [1.0], "lower": [0.0, 0.0, 1.0], "upper": [1.0, 1.0, 1.0]}
    costs = np.array([[2.0, 1.0, large], [1.0, 2.0, large], [5e-3, 4e-3, large]])
    best = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    for s in (MixedInteger(**rows), Polytope(**rows)):
        np.testing.assert_array_equal(solved(s, costs), best)
        assert s.calls.unproven == 0
    for s in (MixedInteger(**rows, helpers=1, known_cost=[large]), Polytope(**rows, helpers=1, known_cost=[large])):
        np.testing.assert_array_equal(solved(s, costs[:, :2]), best)
        assert s.calls.unproven == 0


@pytest.mark.parametrize("penalty", [1.0, 1e8, 1e11])
def test_a_semi_continuous_variable_with_one_value_besides_0_is_not_fixed(penalty: float) -> None:
    # Each of two plants makes 0 or 5, and 3 must be made. What is not made costs the penalty.
    text = "min\n {} short\nst\n a + b + short >= 3\nbounds\n 5 <= a <= 5\n 5 <= b <= 5\n short <= 9\nsemi\n a b\nend\n"
    s = dffl.ModelFile(text=text.format(penalty), format="lp", predicted=["a", "b"])
    np.testing.assert_array_equal(s.decide([[0.2, 0.1], [0.1, 0.2]]), [[0, 5, 0], [5, 0, 0]])
    large = np.array([[penalty * 10, 0.1], [0.1, penalty * 10]])
    np.testing.assert_array_equal(s.decide(large), [[0, 5, 0], [5, 0, 0]])


def test_answers_without_a_proof_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_proof, "MOST_NODES", 0)
    p = wide.program(0, 1e8)
    assert p is not None
    client = dffl.Client("south", np.zeros((1, 2)), p.predicted, p.set)
    line = r"decisions are not proven to be the best \(client 'south': 1 of 1, largest cost"
    with pytest.warns(UserWarning, match=line) as said, CallLimits({"client 'south'": p.set.calls}, "decisions"):
        p.set.decide(p.predicted)
    assert len(said) == 1
    assert client.set.calls is not None
    assert client.set.calls.unproven == 1
    assert client.set.calls.widest > 1e7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with CallLimits({"client 'south'": Calls(unproven=3)}, "decisions"):
            pass
