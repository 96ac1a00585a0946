"""The saving of the choice compared with a rule, with an interval.

Neighbouring days are similar, so single days are not independent evidence (see `dffl.serial`). Clients share their days:
each moment counts once, with the sum over clients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.serial import sureness
from dffl.time.outcome import CHOSEN, Backtest

CONFIDENCE = 0.9


class Gain(NamedTuple):
    """The share of a rule's regret that the choice saves, with the ends of its interval; NaN if too little is known."""

    value: float
    low: float
    high: float


def gain(outcome: Backtest, against: str, confidence: float = CONFIDENCE, rule: str = CHOSEN, place: int | None = None) -> Gain:
    """The saving of the choice, or of another rule, compared with a rule on the reported rows.

    It compares the means over clients of relative regrets, or the regrets of the client at ``place``.
    """
    places = range(len(outcome.clients)) if place is None else [place]
    mine, theirs = outcome.by_moment(rule, places), outcome.by_moment(against, places)
    return saved(mine, theirs, outcome.best_by_moment(places), confidence)


def independent(outcome: Backtest, against: str) -> float:
    """The number of independent moments among those of `gain`."""
    places = range(len(outcome.clients))
    mine, theirs = outcome.by_moment(CHOSEN, places), outcome.by_moment(against, places)
    return sureness(_linear(mine, theirs, outcome.best_by_moment(places))[0]).independent


def saved(mine: np.ndarray, theirs: np.ndarray, best: np.ndarray, confidence: float = CONFIDENCE) -> Gain:
    """Saving of one rule compared with another: regrets, and sizes of the best objectives, of clients and moments (m, n)."""
    series, value, level = _linear(mine, theirs, best)
    if not np.isfinite(value):
        return Gain(value, float("nan"), float("nan"))
    sure = sureness(series, confidence)
    if sure.too_few:
        return Gain(value, float("nan"), float("nan"))
    reach = sure.half / level
    return Gain(value, value - reach, min(value + reach, 1.0))


def _linear(mine: np.ndarray, theirs: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The contribution of each moment to the error of the saved share, this share, and the mean loss of the other rule.

    The share is 1 - A / B; its error to first order is the mean of (1 - share) * theirs - mine, divided by B.
    """
    size = best.sum(axis=1)
    some = size > 0
    old, new = (np.sum(table[some] / size[some, None], axis=0) for table in (theirs, mine))
    if not some.any() or not old.sum() > 0:
        return np.zeros(mine.shape[1]), float("nan"), float("nan")
    value = 1 - float(new.sum() / old.sum())
    return (1 - value) * old - new, value, float(old.mean())
