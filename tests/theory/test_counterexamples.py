"""The paper's examples, and the statements that do not hold as printed: each with the numbers that show it."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import dffl
from dffl.theory import lemmas, loss_gap_bound
from dffl.theory.geometry import decision_shift
from tests.federations import feasible_sets
from tests.theory.instances import CLOSED, FAMILIES, solve

TRIANGLE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
ROOT2 = math.sqrt(2)


def loss(c_hat: np.ndarray, c: np.ndarray, w: np.ndarray, vertices: np.ndarray = TRIANGLE) -> np.ndarray:
    """SPO+ from the definition, over the vertices."""
    u = np.asarray(c) - 2 * np.asarray(c_hat)
    return (u @ vertices.T).max(axis=-1) - u @ w


def circle(n: int = 1440) -> np.ndarray:
    angle = np.arange(n) * 2 * math.pi / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def norm(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=-1)


# What holds


def test_example_1_triangle_the_bound_is_attained() -> None:
    eps, b = 0.3, 1.0
    gap = np.abs(loss(b * circle(), [1, 1 + eps], TRIANGLE[0]) - loss(b * circle(), [1 + eps, 1], TRIANGLE[1]))
    assert gap.max() == pytest.approx(eps + 2 * ROOT2 * b, rel=1e-12)
    assert gap.max() == pytest.approx(3.1284, abs=5e-5)
    # Below B = (1 + eps) / sqrt 2 it is an upper bound only.
    small = np.abs(loss(0.5 * circle(), [1, 1 + eps], TRIANGLE[0]) - loss(0.5 * circle(), [1 + eps, 1], TRIANGLE[1]))
    assert small.max() == pytest.approx(ROOT2, rel=1e-12)
    assert small.max() < eps + 2 * ROOT2 * 0.5


def test_example_1_ball_the_bound_holds() -> None:
    eps, ball = 0.3, dffl.Ball([0.0, 0.0], 1.0)
    c1, c2 = np.array([1, 1 + eps]), np.array([1 + eps, 1])
    with jax.enable_x64(True):
        losses = [np.asarray(dffl.spo_plus(circle(), np.broadcast_to(c, (1440, 2)), ball)) for c in (c1, c2)]
    gap = np.abs(losses[0] - losses[1]).max()
    allowed = ROOT2 * eps * (1 + 2 / math.sqrt(2 + 2 * eps + eps**2))
    assert (round(float(gap), 4), round(allowed, 4)) == (0.8673, 0.9416)
    assert norm(solve(ball, c1) - solve(ball, c2)) == pytest.approx(ROOT2 * eps / math.sqrt(2 + 2 * eps + eps**2))


@pytest.mark.parametrize("eps", [0.3, 0.01])
def test_example_2_the_lower_bound_holds_and_meets_theorem_1(eps: float) -> None:
    b, s = 1.0, dffl.Simplex(2)
    c_hat, c1, c2 = b / ROOT2 * np.array([1.0, -1.0]), np.array([1, 1 + eps]), np.array([1 + eps, 1])
    gap = float(abs(loss(c_hat, c1, TRIANGLE[0]) - loss(c_hat, c2, TRIANGLE[1])))
    assert 2 * ROOT2 * b - 2 * eps <= gap <= 2 * ROOT2 * b + 2 * eps
    # Theorem 1 for the triangle, whose diameter is that of its hypotenuse, the simplex.
    assert float(loss_gap_bound(c_hat, c1, s, c2, s).theorem1) == pytest.approx(2 * ROOT2 * b + 2 * eps)


def test_clients_that_share_their_costs_share_a_minimiser_whatever_their_sets() -> None:
    """Costs without noise that the model can represent: pure constraint heterogeneity has no population penalty.

    Predicting the costs is optimal for every client at once, though the bounds on the clients' differences are large.
    """
    rng = np.random.default_rng(0)
    c = rng.normal(size=(64, 6))
    sets = feasible_sets(6)
    with jax.enable_x64(True):
        for s in sets.values():
            np.testing.assert_allclose(dffl.spo_plus(c, c, s), 0, atol=1e-12)
            assert (np.asarray(dffl.spo_plus(c + 0.5 * rng.normal(size=c.shape), c, s)) >= 0).all()
    bound = loss_gap_bound(c, c, dffl.Box(np.zeros(6), np.ones(6)), c, dffl.Box(np.zeros(6), 3 * np.ones(6)))
    assert bound.theorem1.min() > 1
    assert bound.objective_part.max() == 0
    assert bound.best.max() < 1e-12  # the ceilings see it


# What does not


def test_the_value_of_spo_plus_depends_on_the_tie_rule() -> None:
    c_hat, c = np.array([3.0, 0.0]), np.array([1.0, 1.0])
    assert loss(c_hat, c, TRIANGLE[0]) == 6
    assert loss(c_hat, c, TRIANGLE[1]) == 0


def test_directions_of_raw_costs_do_not_bound_decisions_on_a_set_of_fixed_sum() -> None:
    s = dffl.EntropySimplex(3, math.log(3) - 0.05)
    rho = s.curvature()
    assert rho == pytest.approx(0.3936, abs=1e-4)
    implied = []
    for level in (0.0, 100.0, 1000.0):
        c1, c2 = np.array([1.0, 0.0, 0.0]) + level, np.array([0.0, 1.0, 0.0]) + level
        step = norm(solve(s, c1) - solve(s, c2))
        assert step == pytest.approx(0.3014, abs=1e-4)  # the decisions do not see the level
        implied.append(float(step / norm(c1 / norm(c1) - c2 / norm(c2))))
        assert step <= lemmas.directional_stability(c1, c2, s) == pytest.approx(0.6818, abs=1e-4)  # projected: fine
    assert implied == pytest.approx([0.2131, 37.038, 369.27], rel=1e-3)


def test_the_strongly_convex_bound_is_not_always_tighter_than_theorem_1() -> None:
    one, two = dffl.Ball([0.0, 0.0], 1.0), dffl.Ball([0.0, 0.0], 2.0)
    c_hat, c1, c2 = [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]
    # Gamma = rho |p1 - p2| + delta + 2 sqrt(rho delta) = 2 + 1 + 2, in place of delta + D_min = 1 + 2.
    assert lemmas.curved_functional_gap(c_hat, c1, one, c2, two, form="paper") == pytest.approx(5.0)
    assert lemmas.functional_gap(c_hat, one, two) == pytest.approx(3.0)
    bound = loss_gap_bound(c_hat, c1, one, c2, two)
    assert float(bound.theorem1) == pytest.approx(10 + math.sqrt(5) + 1)
    assert bound.theorem1 < bound.strongly_convex  # the sharper form: 3.667 in place of 3
    # How often, for balls of radius .5 to 3 and Gaussian costs.
    rng = np.random.default_rng(0)
    radii, c = rng.uniform(0.5, 3, (2, 2000)), rng.normal(size=(2, 2000, 5))
    turn = norm(c[0] / norm(c[0])[:, None] - c[1] / norm(c[1])[:, None])
    delta, least = np.abs(radii[0] - radii[1]), radii.min(axis=0)
    printed = least * turn + delta + 2 * np.sqrt(least * delta) > delta + 2 * least
    sharp = [decision_shift(t, *g) > g[0] + 2 * min(g[1:]) for t, *g in zip(turn, delta, *radii, strict=True)]
    assert 0.8 < printed.mean() < 0.95
    assert 0.3 < np.mean(sharp) < 0.5


def test_the_entropy_set_is_not_strongly_convex() -> None:
    s = dffl.EntropySimplex(3, 0.5)
    ends, middle = np.array([[0.5, 0.5, 0.0], [0.6, 0.4, 0.0]]), np.array([0.55, 0.45, 0.0])
    assert s.contains(ends, 1e-9).all()
    assert s.contains(middle, 1e-9)
    # Of radius rho, the set would contain a ball of radius |ends|^2 / (8 rho) around the middle. It contains none.
    for rho in (1.0, 1e3, 1e6):
        depth = norm(ends[0] - ends[1]) ** 2 / (8 * rho)
        assert not s.contains(middle + depth * np.array([0.5, 0.5, -1.0]) / math.sqrt(1.5), 1e-10)
    assert s.curvature() == math.inf
    # The paper's portfolios: d = 50 and h in [.956, 2.956], where h > log 49 = 3.892 is needed.
    assert all(dffl.EntropySimplex(50, h).curvature() == math.inf for h in (0.956, 2.956, 3.891))
    assert dffl.EntropySimplex(50, 3.9).curvature() < math.inf


def test_no_radius_fits_the_entropy_sets_optima_near_a_face() -> None:
    s = dffl.EntropySimplex(3, 0.5)
    implied = []
    for gap in (1.0, 0.1, 0.01):
        # The first two assets nearly tie and the third is dear: the optimum swings along the face.
        c = np.array([[0.0, gap, 10.0], [gap, 0.0, 10.0]])
        w, p = solve(s, c), c - c.mean(axis=-1, keepdims=True)
        p /= norm(p)[:, None]
        implied.append(float(norm(w[0] - w[1]) / norm(p[0] - p[1])))
    assert implied[1] > 5 * implied[0]
    assert implied[2] > 5 * implied[1]
    assert implied[2] > 100


def test_mse_over_rho_does_not_bound_the_loss() -> None:
    ball, c, c_hat = dffl.Ball([0.0, 0.0], 3.0), np.array([1.0, 0.0]), np.array([0.5, -0.5])
    found = float(lemmas.bregman(c - 2 * c_hat, -c, ball))
    assert found == pytest.approx(3.0)
    assert 2 / 3 * norm(c - c_hat) ** 2 == pytest.approx(0.3333, abs=1e-4)
    assert float(lemmas.error_bound(c_hat, c, ball)) == pytest.approx(3.0)  # 2 rho / |c| in place of 2 / rho


@pytest.mark.parametrize("s", [dffl.Box([-0.5], [0.5]), dffl.Ball([0.0], 0.5)], ids=["polyhedral", "strongly convex"])
def test_a_minimiser_of_the_spo_plus_risk_need_not_minimise_the_regret(s: dffl.FeasibleSet) -> None:
    """Calibration needs Liu and Grigas' assumptions on the distribution of the costs.

    S = [-1/2, 1/2], c = 3 or -1 with probability 1/2 each. The SPO+ risk is (|3 - 2 p| + |1 + 2 p|) / 4 + 1: it is flat at
    its minimum, 2, for all predictions p in [-1/2, 3/2]. At p = -1/4 the regret is 3/2 and at p = 1 = E[c] it is 1/2: an
    excess SPO+ risk of 0 goes with an excess regret of 1, and no calibration function vanishes at 0.
    """
    costs = np.array([[3.0], [-1.0]])

    def risks(p: float) -> tuple[float, float]:
        c_hat = np.full((2, 1), p)
        with jax.enable_x64(True):
            return float(dffl.spo_plus(c_hat, costs, s).mean()), float(dffl.regret(c_hat, costs, s).mean())

    assert risks(1.0) == pytest.approx((2.0, 0.5))
    assert risks(-0.25) == pytest.approx((2.0, 1.5))
    assert all(risks(p)[0] > 2 for p in (-0.6, 1.6, -5.0, 5.0))


def test_the_terms_of_the_loss_move_with_the_set_though_the_loss_does_not() -> None:
    # So the shape distance must be put in before the loss is split into T and B, not in each of them.
    c_hat, c1, c2 = np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    parts = []
    for shift in (np.zeros(2), np.array([3.0, 0.0])):
        v = TRIANGLE + shift
        w1, w2 = v[0], v[1]
        joint = [((c - 2 * c_hat) @ v.T).max() - (c @ v.T).min() for c in (c1, c2)]
        parts.append((joint[0], 2 * c_hat @ w1, joint[0] - joint[1], 2 * c_hat @ (w1 - w2)))
        assert loss(c_hat, c1, w1, v) == joint[0] + 2 * c_hat @ w1 == 3  # the loss stays
    assert parts[0][:2] == (1, 2)
    assert parts[1][:2] == (-5, 8)
    # Both clients moved: the differences stay. One client moved: T and B each change by 6.
    assert parts[0][2:] == parts[1][2:]
    moved = parts[1][0] - (parts[0][0] - parts[0][2]), parts[1][1] - (parts[0][1] - parts[0][3])
    assert (moved[0] - parts[0][2], moved[1] - parts[0][3]) == (-6, 6)


def test_the_bound_does_not_vanish_for_two_equal_clients() -> None:
    s, c_hat, c = dffl.Box([0.0, 0.0], [3.0, 4.0]), [0.6, 0.8], [1.0, 2.0]
    bound = loss_gap_bound(c_hat, c, s, c, s)
    assert float(bound.theorem1) == pytest.approx(10.0)  # 2 |c_hat| D, where the gap is 0
    assert float(bound.decision_part) == pytest.approx(10.0)
    assert (float(bound.objective_part), float(bound.constraint_part)) == (0, 0)


def test_the_largest_possible_loss_is_often_less_than_theorem_1() -> None:
    rng = np.random.default_rng(0)
    for name in CLOSED:
        s1, s2 = FAMILIES[name](rng, 6), FAMILIES[name](rng, 6)
        c_hat, c1, c2 = rng.normal(size=(3, 64, 6))
        bound = loss_gap_bound(c_hat, c1, s1, c2, s2)
        assert (bound.trivial < bound.theorem1).mean() > 0.5, name
    # Not always: for a prediction of 0 and equal costs Theorem 1 gives 0.
    ball, c = dffl.Ball([0.0, 0.0], 1.0), [1.0, 0.0]
    bound = loss_gap_bound([0.0, 0.0], c, ball, c, ball)
    assert (float(bound.theorem1), float(bound.trivial)) == (0.0, 2.0)
