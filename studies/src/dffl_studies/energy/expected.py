"""What a rule is expected to lose on average in the test days, from the days before them alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WEEK = 7
SHARE = 1.2816
"""The quantile of a normal distribution beyond which one case in ten lies: two such ends hold 80 %."""
DRIFT = 0.5
"""The standard deviation of the logarithm of what drift multiplies a mean regret by, from one quarter to the next half-year.

It is a round number between calm markets (.2) and those whose prices multiply within a year (1.1)."""
FEW = 14
"""Days below which nothing is expected."""


def expected_mean(lost: Sequence[np.ndarray], horizon: int) -> tuple[float, float]:
    """The range of 80 % of the mean over zones of a rule's regret in the next ``horizon`` days.

    - ``lost``: the regret of each judged day before, zone by zone, with the newest day last.

    The mean of the days before is moved by two things: it is a mean of few weeks, and prices drift. Both are taken as factors.
    """
    days = max(map(len, lost), default=0)
    table = np.full((len(lost), days), np.nan)
    for place, own in enumerate(lost):
        table[place, days - len(own) :] = own
    daily = np.nanmean(table, axis=0) if days else np.zeros(0)
    if days < FEW or not daily.mean() > 0:
        return float("nan"), float("nan")
    weeks = np.array([part.mean() for part in np.array_split(daily, max(days // WEEK, 2))])
    noise = weeks.std(ddof=1) / weeks.mean() * np.sqrt(1 / len(weeks) + WEEK / max(horizon, WEEK))
    reach = SHARE * float(np.hypot(noise, DRIFT))
    return float(daily.mean() * np.exp(-reach)), float(daily.mean() * np.exp(reach))
