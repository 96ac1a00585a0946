"""How certain is it that a model beats a naive rule? The weeks of the test half are resampled many times.

Several seeds show how much the randomness of training matters. Which weeks are in the test half matters more: a few days make
half of the regret.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.cases.energy.data import Panel
from dffl.cases.energy.model import Trained
from dffl.cases.energy.naive import daily_regrets
from dffl.randomness import Purpose, stream

RESAMPLES = 2000
WEEK = 7
INTERVAL = (0.05, 0.95)


class ResampledChange(NamedTuple):
    """The difference of a model's regret from a rule's in percent, and the range of 90 % of the resampled differences."""

    method: str
    rule: str
    change: float
    low: float
    high: float

    def in_words(self) -> str:
        """For people."""
        return (
            f"Resampling the weeks of the test half, {self.method} (seed 0) is {self.low:+.1f} to {self.high:+.1f} % off the "
            f"{self.rule.replace('-', ' ')} (90 %; negative is better)."
        )


def resampled_change(trained: Trained, panel: Panel, cost: str, first_test: str, rule: str) -> ResampledChange | None:
    """The model of the first half against a rule, on the days of the second; None if the rule loses nothing."""
    mine = [trained.first_half.regrets(client) for client in trained.test]
    theirs = daily_regrets(panel, cost, first_test)[rule]
    dates = [panel.dates[rows][-len(lost) :] for rows, lost in zip(panel.zones.values(), mine, strict=True)]
    weeks = np.concatenate([(days - np.datetime64(first_test, "D")).astype(int) // WEEK for days in dates])
    sums = np.stack([np.bincount(weeks, weights=np.concatenate(losses)) for losses in (mine, theirs)])
    if sums[1].sum() <= 0:
        return None
    drawn = stream(0, Purpose.COMPARE).integers(sums.shape[1], size=(RESAMPLES, sums.shape[1]))
    totals = sums[:, drawn].sum(axis=2)
    ratios = totals[0][totals[1] > 0] / totals[1][totals[1] > 0]
    low, high = np.quantile(ratios, INTERVAL)
    change, low, high = (100 * (ratio - 1) for ratio in (sums[0].sum() / sums[1].sum(), low, high))
    return ResampledChange(trained.model.method, rule, float(change), float(low), float(high))
