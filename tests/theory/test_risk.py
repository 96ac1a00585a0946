"""The risk bounds: literal numbers, what is vacuous, and refusals."""

import math

import numpy as np
import pytest

from dffl.theory import risk


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
