"""What a rule is expected to lose on average in the test days, from the days before them alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl_studies.energy.weeks import WEEK

MONTH, RECORD, FEWEST_WEEKS = 4, 13, 4
"""Weeks of a block, weeks whose mean is continued, and weeks below which nothing is expected."""
USUAL, WEIGHT = 0.45, 2.0
"""The usual month-to-month change of a market's regret (of its logarithm), and the number of changes that it counts as."""
DRIFTS_BY = (-1.5, 1.5)
"""The ends of the range of 80 %, in month-to-month changes: quantiles over half-years of real markets (`dffl energy study`)."""


def weekly(lost: Sequence[np.ndarray]) -> np.ndarray:
    """The mean over zones of each week before, from the regret of each day, zone by zone, the newest last."""
    days = max(map(len, lost), default=0) // WEEK * WEEK
    table = np.full((len(lost), days), np.nan)
    for place, own in enumerate(lost):
        some = own[max(len(own) - days, 0) :]
        table[place, days - len(some) :] = some
    return np.asarray(np.nanmean(table.reshape(len(lost), -1, WEEK), axis=(0, 2))) if days else np.zeros(0)


def drift(naive: np.ndarray) -> float:
    """How much the regret of a naive rule changes from one month to the next: the spread of the changes of its logarithm.

    - ``naive``: its mean regret in each week before, the newest last.
    """
    months = len(naive) // MONTH
    means = naive[len(naive) - months * MONTH :].reshape(months, MONTH).mean(axis=1)
    changes = np.diff(np.log(means[means > 0]))
    return float(np.sqrt((WEIGHT * USUAL**2 + (changes**2).sum()) / (WEIGHT + len(changes))))


def expected_mean(lost: np.ndarray, naive: np.ndarray, ends: tuple[float, float] = DRIFTS_BY) -> tuple[float, float]:
    """The range of 80 % of the mean over zones of a rule's regret in the half-year that follows.

    - ``lost``: its mean regret in each week before, the newest last.
    - ``naive``: that of a naive rule, in as many weeks as are known: it says how much this market drifts.

    The mean of the last weeks is continued, and multiplied by what markets drift by.
    """
    recent = lost[-RECORD:]
    if len(recent) < FEWEST_WEEKS or not recent.mean() > 0:
        return float("nan"), float("nan")
    size = drift(naive)
    return float(recent.mean() * np.exp(ends[0] * size)), float(recent.mean() * np.exp(ends[1] * size))
