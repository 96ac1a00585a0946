"""The risk bounds: literal numbers, what is vacuous, and refusals."""

import math

import numpy as np
import pytest

import dffl
from dffl.theory import client_risk, cost_norms, risk
from tests.federations import client, feasible_sets


def test_literal_numbers_of_the_papers_scale():
    # Knapsack, d = 50, tau = 20: b = D (C_max + 2 tau) and the certified complexity tau sqrt(d).
    b = risk.loss_bound(math.sqrt(50), 45.85, 20)
    assert b == pytest.approx(607.05, abs=0.1)
    assert risk.rademacher_upper(20, 50) == pytest.approx(141.42, abs=0.01)
    epsilon = risk.uniform_convergence(math.sqrt(50), 141.42, b, 100, 0.025)
    assert epsilon == pytest.approx(
        4 * math.sqrt(2) * math.sqrt(50) * 141.42 + 607.05 * math.sqrt(2 * math.log(40) / 100), rel=1e-3
    )
    assert risk.local_bound(epsilon, b).vacuous
    assert not risk.Bound(0.9, 1.0).vacuous
    assert not risk.Bound(0.0, 0.0).vacuous  # a single point loses nothing, and the bound says so


def test_the_sharp_deviation_is_about_half_the_papers():
    paper, sharp = risk.deviation(1, 100, 0.05), risk.deviation(1, 100, 0.05, "sharp")
    assert paper == pytest.approx(math.sqrt(2 * math.log(20) / 100))
    assert sharp == pytest.approx(math.sqrt(math.log(40) / 200))
    assert 0.5 < sharp / paper < 0.6


def test_the_deviation_holds_on_both_sides_for_a_coin():
    # Losses 0 or b: the mean of n leaves the interval with probability at most delta; 20,000 trials.
    rng, n, delta = np.random.default_rng(0), 30, 0.2
    means = rng.binomial(n, 0.5, size=20_000) / n
    for form in ("paper", "sharp"):
        assert np.mean(np.abs(means - 0.5) > risk.deviation(1.0, n, delta, form)) <= delta


def test_the_papers_form_needs_a_small_delta_on_two_sides():
    risk.deviation(1, 10, 0.79)
    with pytest.raises(ValueError, match=r"delta must be at most 0\.79 in the paper's form, found 0\.8"):
        risk.deviation(1, 10, 0.8)
    assert risk.deviation(1, 10, 0.8, "sharp") > 0


def test_one_client_and_all_at_once():
    assert risk.confidence_share(0.1) == 0.05
    assert risk.confidence_share(0.1, 19) == pytest.approx(0.005)


def test_oscillation_may_stand_for_twice_the_discrepancy():
    assert risk.federated_bound(1.0, 3.0, 100.0).value == 8.0
    assert risk.federated_bound(1.0, 3.0, 100.0, oscillation=4.0).value == 6.0
    assert risk.federated_bound(1.0, 3.0, 100.0, oscillation=9.0).value == 8.0


def test_the_federation_condition():
    assert risk.federation_condition(1.0, 5.0, 3.0)
    assert not risk.federation_condition(2.0, 5.0, 3.0)


# FG_cert


def test_the_certified_gain_is_above_one_where_the_condition_holds():
    rng = np.random.default_rng(0)
    for local, mixed, gap in rng.exponential(size=(200, 3)):
        gain = risk.certified_gain(risk.local_bound(local, 3.0), risk.federated_bound(mixed, gap, 3.0))
        assert gain.value == pytest.approx(local / (mixed + gap))
        assert (gain.value > 1) == risk.federation_condition(gap, local, mixed)
        assert gain.vacuous == (2 * local > 3 and 2 * (mixed + gap) > 3)


def test_literal_gains():
    gain = risk.certified_gain(risk.local_bound(6.0, 10.0), risk.federated_bound(2.0, 1.0, 10.0))
    assert (gain.value, gain.capped, gain.vacuous) == (2.0, pytest.approx(10 / 6), False)
    both = risk.certified_gain(risk.local_bound(60.0, 10.0), risk.federated_bound(20.0, 10.0, 10.0))
    assert (both.value, both.capped, both.vacuous) == (2.0, 1.0, True)  # twice nothing
    assert risk.certified_gain(risk.Bound(math.inf, 1.0), risk.Bound(math.inf, 1.0)).value == 1.0
    assert risk.certified_gain(risk.Bound(1.0, 1.0), risk.Bound(math.inf, 1.0)).value == 0.0
    assert risk.certified_gain(risk.Bound(1.0, 1.0), risk.Bound(0.0, 1.0)).value == math.inf
    with pytest.raises(ValueError, match=r"both bounds must be of one client, with one largest loss, found 1\.0 and 2\.0"):
        risk.certified_gain(risk.Bound(1.0, 1.0), risk.Bound(1.0, 2.0))


def test_a_certified_gain_above_one_does_not_say_that_federating_helps():
    """S = [-1/2, 1/2], constant predictions in [-1, 1]: both bounds of Theorem 2 say something, and federating harms.

    Client j has 100 samples of c = 1 with probability .6, the others 900 with .4; else c = -1. SPO+ is max(0, 1 -+ 2g), so
    R_j has its minimum .8 at g = 1/2. R_mix has its own at -1/2, where R_j is 1.2.
    """
    grid = np.linspace(-1, 1, 2001)
    own, other = (p * np.maximum(0, 1 - 2 * grid) + (1 - p) * np.maximum(0, 1 + 2 * grid) for p in (0.6, 0.4))
    delta = float(np.abs(own - (0.1 * own + 0.9 * other)).max())
    assert delta == pytest.approx(0.54)
    b = risk.loss_bound(1.0, 1.0, 1.0)
    for form, expected in (("paper", 1.346), ("sharp", 1.088)):
        # The complexity of constants is E |mean of n signs|.
        alone, mixed = (risk.uniform_convergence(1.0, math.sqrt(2 / (math.pi * n)), b, n, 0.025, form) for n in (100, 1000))
        gain = risk.certified_gain(risk.local_bound(alone, b), risk.federated_bound(mixed, delta, b))
        assert gain.value == gain.capped == pytest.approx(expected, abs=1e-3)
        assert not gain.local.vacuous
        assert not gain.federated.vacuous
    # The empirical minimisers: 1/2 where 1 is the more frequent cost, else -1/2.
    rng = np.random.default_rng(0)
    ones, others = rng.binomial(100, 0.6, 2000), rng.binomial(900, 0.4, 2000)
    excess = [0.4 * np.mean(k < half) for k, half in ((ones, 50), (ones + others, 500))]
    assert excess[0] < 0.02
    assert excess[1] > 0.39


# Corollary estimation-to-spo, and the MSE proposition with C_min


def test_the_estimation_bound_holds_and_is_attained():
    rng = np.random.default_rng(0)
    shares = []
    for name in ("box", "topk", "ball"):
        one = client("a", feasible_sets(5)[name], n=60)
        diameter = one.set.diameter().upper
        for size in (0.01, 1.0):
            base = rng.normal(size=(2, one.x.shape[1], 5))
            f, g = base[0], base[0] + size * base[1]
            excess = client_risk(lambda x, f=f: x @ f, one) - client_risk(lambda x, g=g: x @ g, one)
            error = float(np.mean(np.sum((one.x @ (f - g)) ** 2, axis=1)))
            shares.append(abs(excess) / risk.estimation_bound(diameter, error).value)
    assert 0.05 < max(shares) <= 1
    # On [-1/2, 1/2] at c = 1 the loss is max(0, 1 - 2g): from the minimiser 1/2 to 1/4 it rises by 1/2 = 2 D |f - f*|.
    interval = dffl.Client("i", np.zeros((1, 1)), [[1.0]], dffl.Box([-0.5], [0.5]))
    assert client_risk(lambda x: np.full((1, 1), 0.25), interval) == risk.estimation_bound(1.0, 1 / 16).value == 0.5


def test_the_estimation_bound_is_about_the_spo_plus_minimiser_not_the_conditional_mean():
    c = np.array([[10.0]] * 2 + [[-1.0]] * 8)
    one = dffl.Client("a", np.zeros((10, 1)), c, dffl.Box([-0.5], [0.5]))
    grid = np.linspace(-3, 12, 61)
    risks = [client_risk(lambda x, g=g: np.full((10, 1), g), one) for g in grid]
    assert grid[int(np.argmin(risks))] == pytest.approx(-0.5)
    assert min(risks) == pytest.approx(2.2)
    mean = client_risk(lambda x: np.full((10, 1), c.mean()), one)
    assert (float(c.mean()), mean) == (pytest.approx(1.2), pytest.approx(4.24))
    # Estimated without error: the bound would be 0, and the excess risk is 2.04.
    assert risk.estimation_bound(1.0, 0.0).value == 0 < mean - min(risks)


def test_the_mse_bound_holds_with_c_min_and_is_attained():
    rng = np.random.default_rng(1)
    for s in (dffl.Ball(np.zeros(4), 3.0), dffl.Ellipsoid(np.zeros(4), np.diag([1.0, 2, 3, 4]))):
        one = dffl.Client("a", rng.normal(size=(200, 2)), rng.normal(size=(200, 4)), s)
        least = cost_norms(one.c, s).least
        guess = one.c + rng.choice([0.01, 1, 5], (200, 1)) * rng.normal(size=(200, 4))
        mse = float(np.mean(np.sum((guess - one.c) ** 2, axis=1)))
        assert client_risk(lambda x, guess=guess: guess, one) <= risk.mse_bound(s.curvature(), least, mse).value
    # The counterexample of the printed 2 / rho: 3 at most, and 3 it is.
    big = dffl.Client("b", np.zeros((1, 1)), [[1.0, 0.0]], dffl.Ball([0.0, 0.0], 3.0))
    assert client_risk(lambda x: np.array([[0.5, -0.5]]), big) == pytest.approx(3.0)
    assert risk.mse_bound(3.0, 1.0, 0.5).value == 3.0


def test_bounds_from_errors_refuse_what_they_cannot_use():
    with pytest.raises(ValueError, match="estimation_bound: estimation_risk must be >= 0, found -1"):
        risk.estimation_bound(1.0, -1.0)
    with pytest.raises(ValueError, match=r"mse_bound: least_cost \(C_min\) must be > 0, found 0"):
        risk.mse_bound(1.0, 0.0, 1.0)
    assert risk.mse_bound(math.inf, 1.0, 0.0).vacuous
    assert risk.estimation_bound(math.inf, 0.0).vacuous
    assert risk.estimation_bound(2.0, 4.0, b=7.0).vacuous


def test_mixture_weights():
    np.testing.assert_allclose(risk.mixture_weights([500, 50, 450]), [0.5, 0.05, 0.45])
    for counts in ([], [1, 0]):
        with pytest.raises(ValueError, match="counts must be positive"):
            risk.mixture_weights(counts)


def test_gains_scale_by_roots():
    assert risk.spo_plus_gain(16.0) == 4.0
    assert risk.spo_gain(16.0, strongly_convex=False) == 2.0
    assert risk.spo_gain(16.0, strongly_convex=True) == 4.0
    with pytest.raises(ValueError, match="must be >= 0, found -1"):
        risk.spo_plus_gain(-1)


def test_su_et_al():
    # n >= d: min(sigma^2 d / n, B^2) over sigma^2 d / N + Gamma^2; below d, B^2 (1 - n / d) joins.
    assert risk.su_estimation_gain(100, 1000, 10, 1.0, 5.0, 0.0) == pytest.approx(10.0)
    assert risk.su_estimation_gain(100, 1000, 10, 1.0, 5.0, 0.3) == pytest.approx(0.1 / (0.01 + 0.09))
    assert risk.su_estimation_gain(5, 1000, 10, 1.0, 1.0, 0.0) == pytest.approx((1.0 + 0.5) / 0.01)
    assert risk.su_estimation_gain(5, 1000, 10, 0.0, 1.0, 0.0) == math.inf
    with pytest.raises(ValueError, match="1 <= n <= total"):
        risk.su_estimation_gain(10, 5, 10, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        risk.confidence_share(delta)
