"""Harm distinguished from noise: the interval over samples and starts, by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dffl.harm import above_tolerance, interval, judge_harm
from dffl.serial import sureness


def test_the_interval_by_hand() -> None:
    """Three starts, two samples.

    The means of the samples are 4 and 2: variance 2, divided by 2 samples 1, and Student's 97.5 % point with one degree of
    freedom is 12.706205. Those of the starts are 1, 3 and 5: variance 4, divided by 3 starts 4/3, and the point with two is
    4.302653. So the half-width is the root of 161.447645 + 18.512823 * 4/3 = 186.131409, which is 13.642998.
    """
    mean, low, high = interval(np.array([[2.0, 0.0], [4.0, 2.0], [6.0, 4.0]]))
    assert (mean, low, high) == pytest.approx((3.0, 3 - 13.642998, 3 + 13.642998), abs=1e-5)


def test_only_one_source_of_chance_is_the_usual_interval() -> None:
    """Starts that agree leave Student's interval over the samples; samples that agree leave the one over the starts."""
    column = np.array([1.0, 2.0, 3.0, 6.0])  # mean 3, variance 14/3; t(3) = 3.182446
    half = 3.182446 * math.sqrt(14 / 3 / 4)
    expected = pytest.approx((3.0, 3 - half, 3 + half), abs=1e-5)
    assert interval(np.tile(column, (5, 1))) == expected
    assert interval(np.tile(column[:, None], (1, 5))) == expected


def test_a_difference_without_any_spread_is_certain() -> None:
    assert interval(np.full((3, 4), 0.5)) == (0.5, 0.5, 0.5)
    assert judge_harm(np.ones((3, 4)), np.ones((3, 4)))[:5] == (0, 0, 0, "unclear", False)


@pytest.mark.parametrize("shape", [(1, 50), (2, 50), (3, 1)])
def test_too_few_starts_or_samples_are_not_judged(shape: tuple[int, int]) -> None:
    found = judge_harm(np.full(shape, 2.0), np.ones(shape))
    assert found == (1.0, -math.inf, math.inf, "not judged", None, True, shape[1])


OWN = np.array([[1.0, 1.2], [1.1, 1.3], [0.9, 1.1]])


@pytest.mark.parametrize(
    ("lost", "verdict", "harmed", "above"),
    [
        (OWN + 0.5, "worse", True, True),
        (OWN - 0.5, "better", False, False),
        (OWN + 0.005, "worse", False, False),  # certain, and below the tolerance of .011
        (OWN + np.array([[0.5], [-0.4], [0.1]]), "unclear", False, True),  # the first start had bad luck
        (OWN + np.array([[-0.5], [0.9], [0.1]]), "unclear", False, False),
    ],
)
def test_harm_is_above_the_tolerance_and_beyond_luck(lost: np.ndarray, verdict: str, harmed: bool, above: bool) -> None:
    found = judge_harm(lost, OWN)
    assert (found.verdict, found.harmed, found.above_tolerance) == (verdict, harmed, above)


def test_the_tolerance_and_the_margin() -> None:
    assert judge_harm(OWN + 0.005, OWN, tolerance=0.001).harmed
    assert not judge_harm(OWN + 0.5, OWN, margin=0.6).harmed
    assert above_tolerance(np.array([1.0099, 1.0101]), 1.0).tolist() == [False, True]


def differences(rng: np.random.Generator, start: float, sample: float, both: float, starts: int, samples: int) -> np.ndarray:
    """Effects of starts, of samples (skewed, as regrets are) and of the two together, all with the mean 0."""
    skewed = rng.exponential(1.0, samples) - 1
    return start * rng.normal(size=(starts, 1)) + sample * skewed + both * rng.normal(size=(starts, samples))


@pytest.mark.parametrize(
    ("starts", "start", "sample", "both"),
    [(3, 0.0, 1.0, 1.0), (3, 0.1, 1.0, 0.5), (3, 0.3, 1.0, 0.5), (3, 1.0, 0.1, 0.1), (5, 0.3, 1.0, 0.5)],
)
def test_without_a_difference_few_are_harmed_and_with_a_large_one_most(
    starts: int, start: float, sample: float, both: float
) -> None:
    rng, samples, times = np.random.default_rng(0), 100, 2000
    error = math.sqrt(start**2 / starts + sample**2 / samples + both**2 / (starts * samples))
    drawn = [differences(rng, start, sample, both, starts, samples) for _ in range(times)]
    own = np.full((starts, samples), error)  # any excess of 1 % of a standard error is above the tolerance
    luck = np.mean([judge_harm(own + one, own).harmed for one in drawn])
    power = np.mean([judge_harm(own + one + 5 * error, own).harmed for one in drawn])
    assert luck <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / times)
    assert power >= (0.65 if starts == 3 else 0.9)
    if start > sample:  # one start alone takes its own luck for harm
        assert np.mean([judge_harm(own + one, own).above_tolerance for one in drawn]) > 0.4


def test_samples_in_time_that_are_too_alike_are_not_judged() -> None:
    """A walk has no mean to judge; samples without memory do."""
    rng = np.random.default_rng(0)
    found = judge_harm(2 + np.tile(rng.normal(size=60).cumsum(), (3, 1)), np.ones((3, 60)), ordered=True)
    assert found[1:5] == (-math.inf, math.inf, "not judged", None)
    assert found.independent < 4
    found = judge_harm(np.tile(1.5 + rng.normal(size=60), (3, 1)), np.ones((3, 60)), ordered=True)
    assert found.independent > 20
    assert found.high - found.low < 1.3 * np.ptp(interval(np.tile(rng.normal(size=60), (3, 1)))[1:])


def test_the_starts_widen_the_interval_of_samples_in_time() -> None:
    """Half-widths add as squares: Student's point with two degrees of freedom is 4.302653, and three starts vary by 1."""
    rows = np.random.default_rng(1).normal(size=50)
    starts = np.array([[-1.0], [0.0], [1.0]])
    mean, _, high = interval(rows + starts, ordered=True)
    assert high - mean == pytest.approx(math.hypot(sureness(rows).half, 4.302653 / math.sqrt(3)), rel=1e-6)


def test_copies_of_samples_are_no_evidence() -> None:
    """Twelve samples, each six times: as 72 independent ones, 45 % of the 95 % intervals exclude the truth."""
    rng, missed = np.random.default_rng(0), 0
    groups = np.repeat(np.arange(12), 6)
    for _ in range(400):
        once = np.tile(rng.normal(size=12), (3, 1))
        found = interval(np.repeat(once, 6, axis=1), groups=groups)
        assert found == pytest.approx(interval(once), abs=1e-12)
        missed += found[1] > 0 or found[2] < 0
    assert missed / 400 <= 0.08
    assert judge_harm(np.ones((3, 4)), np.zeros((3, 4)), groups=np.zeros(4))[3:] == ("not judged", None, True, 1)


def test_groups_of_different_sizes_by_hand() -> None:
    """Four samples in three groups, whose deviations from the mean 2 add up to -1, -1 and 2.

    The variance of the mean is 3 / 2 * (1 + 1 + 4) / 4^2 = 9 / 16; Student's point with two degrees of freedom is 4.302653.
    """
    half = 4.302653 * 0.75
    found = interval(np.tile([1.5, 1.5, 1.0, 4.0], (3, 1)), groups=np.array([0, 0, 1, 2]))
    assert found == pytest.approx((2, 2 - half, 2 + half), abs=1e-5)


def test_rows_of_one_moment_count_once_in_time() -> None:
    """Six rows a day on a level of the day that lasts for days: of 40 days 16 % had a false verdict where each row counted."""
    rng, false, times = np.random.default_rng(0), 0, 100
    for _ in range(times):
        level = rng.normal(size=240)
        for day in range(1, 240):
            level[day] = 0.7 * level[day - 1] + math.sqrt(0.51) * level[day]
        rows = np.repeat(level[200:], 6) + 0.5 * rng.normal(size=240)
        low, high = interval(np.tile(rows, (3, 1)), ordered=True, groups=np.repeat(np.arange(40.0), 6))[1:]
        false += low > 0 or high < 0
    assert false / times <= 0.08
