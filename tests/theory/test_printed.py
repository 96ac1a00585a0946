"""The bounds as the paper prints them: to the letter, never tighter than ours where they hold, and false where we say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import dffl
from dffl.theory import LossGap, loss_gap_bound, risk
from dffl.theory.display import notes
from dffl.theory.heterogeneity import common_points
from dffl.theory.scaled import scaled
from dffl.training import Settings
from tests.theory.instances import CLOSED, Clients, evaluate, largest_share, pairs, solve


def paper(k: Clients) -> LossGap:
    return loss_gap_bound(k.c_hat, k.c[0], k.s[0], k.c[1], k.s[1], form="paper")


def by_the_letter(c_hat: Sequence[float], c1: Sequence[float], s1: dffl.FeasibleSet, c2: Sequence[float], s2: dffl.FeasibleSet):
    """H and H_SC of one instance, written out from the page."""
    p, a, b = (np.asarray(x, float) for x in (c_hat, c1, c2))
    n = np.linalg.norm
    delta, d1, d2 = dffl.shape_distance(s1, s2).upper, s1.diameter().upper, s2.diameter().upper
    t = min(
        d1 * n(a - b) + delta * (n(b - 2 * p) + n(b)),
        d2 * n(a - b) + delta * (n(a - 2 * p) + n(a)),
    )
    rho = min(s1.curvature(), s2.curvature())
    gamma = rho * n(a / n(a) - b / n(b)) + delta + 2 * math.sqrt(rho * delta)
    return 2 * n(p) * (delta + min(d1, d2)) + t, 2 * n(p) * gamma + t


def test_literal_numbers() -> None:
    one, two = dffl.Ball([0.0, 0.0], 1.0), dffl.Ball([0.0, 0.0], 2.0)
    found = loss_gap_bound([0.0, 1.0], [1.0, 0.0], one, [-1.0, 0.0], two, form="paper")
    # T = 2 * 2 + 1 * (sqrt 5 + 1); H adds 2 (1 + 2), H_SC 2 (1 * 2 + 1 + 2).
    assert float(found.theorem1) == pytest.approx(11 + math.sqrt(5))
    assert float(found.strongly_convex) == pytest.approx(15 + math.sqrt(5))
    assert found.best == found.theorem1
    assert found.trivial == found.dv == math.inf
    assert found.objective_part + found.constraint_part + found.decision_part == pytest.approx(float(found.theorem1))


@pytest.mark.parametrize("name", ["ball", "ellipsoid", "entropy"])
def test_it_is_the_papers_formula(name: str) -> None:
    rng = np.random.default_rng(1)
    sets = {
        "ball": (dffl.Ball(np.zeros(4), 1.5), dffl.Ball(np.ones(4), 0.7)),
        "ellipsoid": (dffl.Ellipsoid(np.zeros(4), np.diag([1.0, 2, 3, 4])), dffl.Ellipsoid(np.zeros(4), np.eye(4))),
        "entropy": (dffl.EntropySimplex(4, 1.2), dffl.EntropySimplex(4, 1.3)),
    }[name]
    p, a, b = rng.normal(size=(3, 20, 4)) + 1
    found = loss_gap_bound(p, a, sets[0], b, sets[1], form="paper")
    for row in range(20):
        h, h_sc = by_the_letter(p[row], a[row], sets[0], b[row], sets[1])
        assert float(found.theorem1[row]) == pytest.approx(h, rel=1e-12)
        assert float(found.strongly_convex[row]) == pytest.approx(h_sc, rel=1e-12)


@pytest.mark.parametrize("d", [2, 6])
def test_printed_bounds_hold_in_full_dimension_and_are_never_tighter_than_ours(d: int) -> None:
    for k in pairs(np.random.default_rng(d), d, n=64, batches=1, families=CLOSED, mixed=2):
        printed, ours = paper(k), loss_gap_bound(k.c_hat, k.c[0], k.s[0], k.c[1], k.s[1])
        largest_share(k.gap, printed.theorem1, k.noise)
        assert (printed.theorem1 >= ours.theorem1 * (1 - 1e-9)).all()
        if not any(isinstance(s, dffl.EntropySimplex) for s in k.s):
            largest_share(k.gap, printed.strongly_convex, k.noise)
            assert (printed.strongly_convex >= ours.strongly_convex * (1 - 1e-9)).all()


def test_it_needs_two_curved_sets_and_costs_above_c_min() -> None:
    ball, box = dffl.Ball([0.0, 0.0], 1.0), dffl.Box([0.0, 0.0], [1.0, 1.0])
    p, c = [1.0, 2.0], [1.0, 1.0]
    assert loss_gap_bound(p, c, ball, c, box, form="paper").strongly_convex == math.inf
    assert np.isfinite(loss_gap_bound(p, c, ball, c, box).strongly_convex)
    zero = loss_gap_bound(p, [0.0, 0.0], ball, c, ball, form="paper")
    assert zero.strongly_convex == math.inf
    assert zero.best == zero.theorem1 < math.inf
    assert loss_gap_bound(p, c, ball, c, ball, form="paper").strongly_convex == 0


def test_the_printed_h_sc_is_false_on_a_set_of_fixed_sum() -> None:
    # Strongly convex within its plane: a level on all costs turns their directions together and moves no decision.
    s = dffl.EntropySimplex(3, math.log(3) - 0.05)
    c_hat, level = np.array([[10.0, -10.0, 0.0]]), 1000.0
    c1, c2 = np.array([[1.0, 0, 0]]) + level, np.array([[0, 1.0, 0]]) + level
    k = evaluate(c_hat, (c1, c2), (s, s), (solve(s, c1), solve(s, c2)))
    printed, ours = paper(k), loss_gap_bound(c_hat, c1, s, c2, s)
    assert float(printed.strongly_convex[0]) == pytest.approx(0.5402, abs=1e-4)
    assert float(k.gap[0]) == pytest.approx(8.7816, abs=1e-3)
    assert float(k.gap[0]) > 10 * float(printed.best[0])
    assert float(k.gap[0]) <= float(ours.best[0])


def test_maximising_and_refusals() -> None:
    rng = np.random.default_rng(3)
    p, a, b = rng.normal(size=(3, 8, 3))
    s1, s2 = dffl.Ball(np.zeros(3), 1.0), dffl.Ball(np.zeros(3), 2.0)
    for one, other in zip(
        loss_gap_bound(p, a, s1, b, s2, maximize=True, form="paper"),
        loss_gap_bound(-p, -a, s1, -b, s2, form="paper"),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="loss_gap_bound: form must be 'sharp' or 'paper', found 'printed'"):
        loss_gap_bound(p, a, s1, b, s2, form="printed")


# dffl.bounds


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.synthetic.portfolio(seed=0, clients=3, dim=6, features=3, degree=2, samples=[24, 24, 48], eta_obj=1.0)


@pytest.fixture(scope="module")
def printed(federation: dffl.Federation) -> dffl.Bounds:
    return dffl.bounds(federation, search=False, form="paper", progress=False)


@pytest.fixture(scope="module")
def ours(federation: dffl.Federation) -> dffl.Bounds:
    return dffl.bounds(federation, search=False, progress=False)


def test_bounds_in_the_papers_form_are_the_printed_terms(federation: dffl.Federation, printed: dffl.Bounds) -> None:
    members = scaled(federation, Settings())
    tau, n = 20.0, np.array([24, 24, 48])
    common = common_points(members, tau)
    c_max = max(float(np.linalg.norm(one.c, axis=1).max()) for one in members)
    diameters = np.array([one.diameter for one in members])
    b = diameters * (c_max + 2 * tau)
    complexity = tau * math.sqrt(6)
    half = math.log(2 / 0.05)
    local = 4 * math.sqrt(2) * diameters * complexity + b * np.sqrt(2 * half / n)
    mixed = 4 * math.sqrt(2) * diameters.max() * complexity + b.max() * math.sqrt(2 * half / n.sum())
    # Proposition 1, j = i too, at the largest H over predictions of norm 20.
    gaps = np.zeros(3)
    for j in range(3):
        for i in range(3):
            delta = 0.0 if i == j else dffl.shape_distance(members[i].set, members[j].set).upper
            a, c = common.costs[i], common.costs[j]
            size = [np.linalg.norm(x, axis=1) for x in (a - c, a, c)]
            t = np.minimum(
                diameters[i] * size[0] + delta * (2 * size[2] + 2 * tau),
                diameters[j] * size[0] + delta * (2 * size[1] + 2 * tau),
            )
            worst = 2 * tau * (delta + min(diameters[i], diameters[j])) + t.mean() if i != j else 2 * tau * diameters[j]
            gaps[j] += n[i] / n.sum() * worst
    table = printed.clients
    np.testing.assert_allclose(table["largest_loss"], b, rtol=1e-9)
    np.testing.assert_allclose(table["epsilon"], local, rtol=1e-9)
    np.testing.assert_allclose(table["epsilon_mix"], mixed, rtol=1e-9)
    np.testing.assert_allclose(table["discrepancy_high"], gaps, rtol=1e-9)
    np.testing.assert_allclose(table["certified_gain"], local / (mixed + gaps), rtol=1e-9)
    assert table["gain_vacuous"].all()


def test_bounds_in_the_papers_form_are_never_tighter(printed: dffl.Bounds, ours: dffl.Bounds) -> None:
    for column in ("epsilon", "epsilon_mix", "discrepancy_high", "by_proposition", "largest_loss", "federated_bound"):
        assert (printed.clients[column] > ours.clients[column]).all(), column
    assert (printed.pairs["theorem1"] >= ours.pairs["theorem1"]).all()
    assert (printed.pairs["best"] > ours.pairs["best"]).all()
    np.testing.assert_array_equal(printed.pairs["gap"], ours.pairs["gap"])
    assert np.isinf(printed.pairs["trivial"]).all()
    assert (printed.form, ours.form) == ("paper", "sharp")
    assert printed.as_json()["form"] == "paper"
    assert any("printed forms" in line for line in notes(printed))
    assert not any("printed forms" in line for line in notes(ours))


def test_the_gain_of_a_report_is_that_of_its_bounds_and_says_where_it_is_vacuous(ours: dffl.Bounds) -> None:
    table = ours.clients
    np.testing.assert_allclose(table["certified_gain"], table["local_bound"] / table["federated_bound"])
    np.testing.assert_array_equal(table["gain_vacuous"], table["local_vacuous"] & table["federated_vacuous"])
    assert table["gain_vacuous"].all()
    assert any("FG_cert" in line and "3 of 3" in line for line in notes(ours))
    told = table.assign(gain_vacuous=[True, False, False])
    assert any("FG_cert" in line and "1 of 3" in line for line in notes(replace(ours, clients=told)))
    assert not any("FG_cert" in line for line in notes(replace(ours, clients=table.assign(gain_vacuous=False))))
    chance = table["largest_loss"] * np.sqrt(math.log(2 / 0.025) / (2 * table["n"]))  # the sharp form, by default
    np.testing.assert_allclose(table["epsilon"], 4 * math.sqrt(2) * table["diameter"] * table["rademacher_high"] + chance)
    assert (table["cost_norm_least"] <= table["cost_norm"]).all()
    assert (table["cost_norm_least"] > 0).all()


def test_bounds_refuse_a_form_that_is_none(federation: dffl.Federation) -> None:
    with pytest.raises(ValueError, match="bounds: form must be 'sharp' or 'paper', found 'printed'"):
        dffl.bounds(federation, form="printed")
    with pytest.raises(ValueError, match="form must be"):
        risk.require_form("x", "")
