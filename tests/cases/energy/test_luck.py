"""Whether a difference is more than luck: literal numbers, SciPy's test, and how often it errs."""

import numpy as np
import pytest
from scipy import stats

from dffl.cases.energy.luck import interval


def test_one_start_gives_the_ordinary_interval_of_a_paired_test():
    differences = np.random.default_rng(0).normal(0.3, 1, (1, 20))
    expected = stats.ttest_1samp(differences[0], 0).confidence_interval(0.95)
    assert interval(differences) == pytest.approx((differences.mean(), expected.low, expected.high))


def test_both_sources_of_luck_by_hand():
    # samples: means over starts 2, 3, 4, variance 1, over 3; starts: means over samples 2 and 4, variance 2, over 2
    differences = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])
    variance = 1 / 3 + 1
    freedom = variance**2 / ((1 / 3) ** 2 / 2 + 1**2 / 1)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert interval(differences) == pytest.approx((3, 3 - half, 3 + half))
    wider = interval(differences, confidence=0.99)
    assert wider[1] < 3 - half
    assert wider[2] > 3 + half


def test_starts_and_samples_without_any_spread():
    assert interval(np.full((3, 4), 2.0)) == (2, 2, 2)
    assert interval(np.array([[1.0], [2.0]])) == (1.5, -np.inf, np.inf)


def test_of_models_that_differ_by_luck_few_seem_worse():
    """Starts and samples have effects of their own, the true difference is zero: at most one in forty is above zero."""
    rng = np.random.default_rng(1)
    low = []
    for _ in range(2000):
        made = rng.normal(size=(5, 1)) + 2 * rng.normal(size=(1, 26)) + rng.normal(size=(5, 26))
        low.append(interval(made)[1])
    assert 0.005 < np.mean(np.array(low) > 0) < 0.035
