"""What a rule is expected to lose on average in the test days, from the days before them alone.

The numbers below were measured, by `dffl energy study` (its table `expected`), on markets and on parts of their zones. A test
measures them again from the rows that are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl_studies.energy.weeks import WEEK

RECORD, MONTH = 8, 4
"""The weeks whose mean is continued, and those of a month; below a month nothing is expected."""
USUAL = 0.59
"""The usual change of a market's regret from one month to the next (of its logarithm); it counts as one more change."""
ENDS = (-1.96, 1.83)
"""The ends of the range of 80 %, in such changes."""


def weekly(lost: Sequence[np.ndarray]) -> np.ndarray:
    """The mean over zones of each week before, from the regret of each day, zone by zone, the newest last."""
    days = max(map(len, lost), default=0) // WEEK * WEEK
    table = np.full((len(lost), days), np.nan)
    for place, values in enumerate(lost):
        some = values[max(len(values) - days, 0) :]
        table[place, days - len(some) :] = some
    return np.asarray(np.nanmean(table.reshape(len(lost), -1, WEEK), axis=(0, 2))) if days else np.zeros(0)


def changes_of(weeks: np.ndarray) -> np.ndarray:
    """The changes of the logarithm of a mean regret from one month to the next."""
    months = len(weeks) // MONTH
    means = weeks[len(weeks) - months * MONTH :].reshape(months, MONTH).mean(axis=1)
    return np.diff(np.log(means[means > 0]))


def drift(naive: np.ndarray, usual: float = USUAL) -> float:
    """How much a market's regret changes from one month to the next: its own changes, and one usual one.

    - ``naive``: the mean regret of a naive rule in each week before, the newest last.
    """
    changes = changes_of(naive)
    return float(np.sqrt((usual**2 + (changes**2).sum()) / (1 + len(changes))))


def expected_mean(lost: np.ndarray, naive: np.ndarray) -> tuple[float, float]:
    """The range of 80 % of the mean over zones of a rule's regret in the test days that follow.

    - ``lost``: its mean regret in each week before, the newest last.
    - ``naive``: that of a naive rule, in as many weeks as are known: it says how much this market drifts.

    The mean of the last weeks is continued, and multiplied by what markets drift by.
    """
    recent = lost[-RECORD:]
    if len(recent) < MONTH or not recent.mean() > 0:
        return float("nan"), float("nan")
    low, high = recent.mean() * np.exp(np.array(ENDS) * drift(naive))
    return float(low), float(high)
