"""Harm distinguished from noise: is a client worse off with a method, or is this only one noisy training?

Training the same model with another seed changes a client's regret too. So a client counts as harmed only if its regret is
above the tolerance and a confidence interval of the difference, over test samples and seeds, excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dffl.serial import sureness

HARM_TOLERANCE = 0.01
"""The excess over the regret of the client's own model, as a share of it, above which harm is possible."""
ENOUGH_STARTS = 3
"""With fewer seeds, their variance is unknown and there is no verdict."""


class Judgement(NamedTuple):
    """The regret of a method minus that of the reference for one client, and the verdict."""

    mean: float
    low: float
    high: float
    verdict: str
    """By the interval: better, worse or unclear. "not judged" with fewer than three seeds or two samples, or if samples are too
    similar in time.
    """
    harmed: bool | None
    """Above the tolerance, and ``low`` above 0. None: not judged."""
    above_tolerance: bool
    """Above the tolerance with the first seed. A single run is noisy."""
    independent: float
    """The number of independent samples."""


def judge_harm(
    lost: np.ndarray,
    reference: np.ndarray,
    tolerance: float = HARM_TOLERANCE,
    confidence: float = 0.95,
    margin: float = 0.0,
    ordered: bool = False,
    groups: np.ndarray | None = None,
) -> Judgement:
    """Compare two methods for one client: the regrets (seeds, samples) of one, and those of the reference.

    Row s of both is one seed, column i of both is one test sample. ``ordered`` samples are in the order of time; samples of
    equal ``groups``, such as copies of a row or rows of one moment, count as one. Excesses up to ``margin``, in the units of
    regret, are rounding.
    """
    mean, low, high, count = _interval(lost - reference, confidence, ordered, groups)
    excessive = above_tolerance(lost.mean(axis=1), reference.mean(axis=1), tolerance, margin)
    if math.isinf(high):
        return Judgement(mean, low, high, "not judged", None, bool(excessive[0]), count)
    verdict = "better" if high < 0 else "worse" if low > 0 else "unclear"
    harmed = low > 0 and bool(above_tolerance(lost.mean(), reference.mean(), tolerance, margin))
    return Judgement(mean, low, high, verdict, harmed, bool(excessive[0]), count)


def above_tolerance(regret: Any, local: Any, tolerance: float = HARM_TOLERANCE, margin: float = 0.0) -> Any:
    """Whether these regrets exceed those of the clients' local models by more than a share of them (and a margin)."""
    return regret > (1 + tolerance) * local + margin


def interval(
    differences: np.ndarray, confidence: float = 0.95, ordered: bool = False, groups: np.ndarray | None = None
) -> tuple[float, float, float]:
    """The mean of differences (seeds, samples), and the ends of its interval over other samples and other seeds.

    ``ordered`` samples are in the order of time: see `dffl.serial`. Samples of equal ``groups`` count as one. The interval
    is unbounded with fewer than three seeds or two samples, or if ordered samples count as too few: one draw does not show
    the variance.
    """
    return _interval(differences, confidence, ordered, groups)[:3]


def interval_of_sum(
    differences: Sequence[np.ndarray], groups: Sequence[np.ndarray], confidence: float = 0.95
) -> tuple[float, float, float]:
    """As `interval`, of the sum over clients of their means. Samples of equal ``groups``, of any clients, count as one."""
    if len(differences) == 1:
        return interval(differences[0], confidence, groups=groups[0])
    mean, starts = float(sum(table.mean() for table in differences)), len(differences[0])
    place = np.split(np.unique(np.concatenate(groups), return_inverse=True)[1], np.cumsum([len(own) for own in groups])[:-1])
    fewest = min(len(np.unique(own)) for own in groups)
    if starts < ENOUGH_STARTS or fewest < 2:
        return mean, -math.inf, math.inf
    by_group = np.zeros(max(int(own.max()) for own in place) + 1)
    for table, own in zip(differences, place, strict=True):
        count = len(np.unique(own))
        each = table.mean(axis=0)
        by_group += np.bincount(own, each - each.mean(), len(by_group)) * math.sqrt(count / (count - 1)) / len(each)
    by_start = float(np.sum([table.mean(axis=1) for table in differences], axis=0).var(ddof=1)) / starts
    from scipy.special import stdtrit  # slow to import, and needed here alone

    quantiles = stdtrit(np.array([fewest - 1, starts - 1]), 0.5 + confidence / 2)
    half = math.sqrt(float(quantiles**2 @ [float((by_group**2).sum()), by_start]))
    return mean, mean - half, mean + half


def _interval(
    differences: np.ndarray, confidence: float, ordered: bool, groups: np.ndarray | None = None
) -> tuple[float, float, float, float]:
    """`interval`, and the number of independent samples."""
    mean, (starts, samples) = float(differences.mean()), differences.shape
    if groups is not None:
        differences = _of_groups(differences, groups)
        samples = differences.shape[1]
    if samples < 2:
        return mean, -math.inf, math.inf, float(samples)
    # A difference is the sum of a mean, an effect of the seed, one of the sample, and one of both together. The variance of
    # the mean is v_seed / S + v_sample / n + v_both / (S n). Each of the two terms below contains v_both / (S n), so it is
    # counted twice: the interval is slightly too wide, and no variance is negative, as unbiased estimates can be.
    each = differences.mean(axis=0)
    in_time = sureness(each, confidence) if ordered else None
    independent = float(samples) if in_time is None else in_time.independent
    if starts < ENOUGH_STARTS or (in_time is not None and in_time.too_few):
        return mean, -math.inf, math.inf, independent
    by_sample = each.var(ddof=1) / samples
    by_start = differences.mean(axis=1).var(ddof=1) / starts
    from scipy.special import stdtrit  # slow to import, and needed only here

    # Each source has its own Student quantile, and the squares of the half-widths are added (Banerjee 1960). This is valid
    # for every ratio of the two variances. One quantile with the degrees of freedom of Welch and Satterthwaite is not: if
    # the three seeds and the samples both matter, up to 3.8 % are called harmed by chance instead of 2.5 %.
    quantiles = stdtrit(np.array([samples - 1, starts - 1]), 0.5 + confidence / 2)
    squares = quantiles**2 * [by_sample, by_start]
    half = math.sqrt(float(quantiles**2 @ [by_sample, by_start]) if in_time is None else in_time.half**2 + float(squares[1]))
    return mean, mean - half, mean + half, independent


def _of_groups(differences: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """One column for each group, in ascending order, which deviates as far as its group moves the overall mean."""
    place = np.unique(groups, return_inverse=True)[1]
    count, samples, mean = int(place.max()) + 1, len(groups), differences.mean()
    if count == samples:
        return differences
    moved = np.stack([np.bincount(place, row - mean) for row in differences])
    return np.asarray(mean + moved * count / samples)
