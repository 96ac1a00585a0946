"""What the choice saves against a rule, and between which ends that lies: by blocks of consecutive moments, drawn anew.

Days that follow each other are alike, so single days are no independent evidence. The same blocks are drawn at all clients,
whose days are alike too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.time.outcome import CHOSEN, Backtest

BLOCK, FEWEST_BLOCKS, DRAWS = 7, 6, 2000
CONFIDENCE = 0.9


class Gain(NamedTuple):
    """The share of a rule's regret that the choice saves, with the ends of its interval; NaN where too little is known."""

    value: float
    low: float
    high: float


def gain(found: Backtest, against: str, confidence: float = CONFIDENCE) -> Gain:
    """What the choice saves against a rule on the reported rows: the mean over clients of relative regrets, compared."""
    mine, theirs, best = (np.zeros((len(found.clients), len(found.timeline.moments))) for _ in range(3))
    for place, client in enumerate(found.clients):
        rows, times = found.reported(place), found.timeline.times[place]
        where = np.searchsorted(found.timeline.moments, times[len(times) - client.n :][rows])
        mine[place, where] = found.regrets(CHOSEN, place)[rows]
        theirs[place, where] = found.regrets(against, place)[rows]
        best[place, where] = client.z_star_size[rows]
    first = found.timeline.start
    return saved(mine[:, first:], theirs[:, first:], best[:, first:], confidence)


def saved(mine: np.ndarray, theirs: np.ndarray, best: np.ndarray, confidence: float = CONFIDENCE) -> Gain:
    """What one rule saves against another: regrets, and sizes of the best objectives, of clients and moments (m, n)."""
    value = _saved(mine.sum(axis=1), theirs.sum(axis=1), best.sum(axis=1))
    count = mine.shape[1] // BLOCK
    if count < FEWEST_BLOCKS or not np.isfinite(value):
        return Gain(value, float("nan"), float("nan"))
    rng = np.random.default_rng(0)
    starts = rng.integers(0, mine.shape[1] - BLOCK + 1, (DRAWS, -(-mine.shape[1] // BLOCK)))
    columns = (starts[:, :, None] + np.arange(BLOCK)).reshape(DRAWS, -1)
    drawn = [_saved(*(table[:, some].sum(axis=1) for table in (mine, theirs, best))) for some in columns]
    low, high = np.nanquantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Gain(value, float(low), float(high))


def _saved(mine: np.ndarray, theirs: np.ndarray, best: np.ndarray) -> float:
    """1 - the ratio of the mean relative regrets."""
    some = best > 0
    if not some.any():
        return float("nan")
    old = float((theirs[some] / best[some]).mean())
    return 1 - float((mine[some] / best[some]).mean()) / old if old > 0 else float("nan")
