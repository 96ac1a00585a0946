"""Whether a difference is more than luck: numbers by hand, and how often it errs."""

import numpy as np
import pytest
from scipy import stats

from dffl.cases.energy.luck import interval


def test_both_sources_of_luck_by_hand():
    # samples: means over starts 3, 4, 5, 6, variance 5 / 3, over 4; starts: means over samples 2.5, 4.5, 6.5, variance 4, of 3
    differences = np.array([[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0], [5.0, 6.0, 7.0, 8.0]])
    half = np.sqrt(stats.t.ppf(0.975, 3) ** 2 * 5 / 12 + stats.t.ppf(0.975, 2) ** 2 * 4 / 3)
    assert interval(differences) == pytest.approx((4.5, 4.5 - half, 4.5 + half))
    wider = interval(differences, confidence=0.99)
    assert wider[1] < 4.5 - half
    assert wider[2] > 4.5 + half


def test_starts_that_agree_leave_the_ordinary_interval_of_a_paired_test():
    samples = np.random.default_rng(0).normal(0.3, 1, 20)
    expected = stats.ttest_1samp(samples, 0).confidence_interval(0.95)
    assert interval(np.tile(samples, (3, 1))) == pytest.approx((samples.mean(), expected.low, expected.high))


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (5, 1)])
def test_too_few_starts_or_samples_say_nothing(shape):
    assert interval(np.ones(shape)) == (1, -np.inf, np.inf)


def test_of_models_that_differ_by_luck_few_seem_worse():
    """Starts and samples have effects of their own, the true difference is zero: about one in forty is above zero."""
    rng = np.random.default_rng(1)
    low = []
    for _ in range(2000):
        made = rng.normal(size=(5, 1)) + 2 * rng.normal(size=(1, 26)) + rng.normal(size=(5, 26))
        low.append(interval(made)[1])
    assert 0.005 < np.mean(np.array(low) > 0) < 0.035
