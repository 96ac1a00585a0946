"""How sure a mean is of rows that follow each other in time: such rows resemble their neighbours, and say less.

Nobody knows how long rows stay alike, and few rows say little about it. So the answer is the mean over all memories that the
rows allow: each is weighed by how likely it makes the rows (Bayes' rule, with a flat prior for the mean and Jeffreys' for the
spread). A row is a level that forgets with the time tau, plus, perhaps, as much noise that has no memory. For one memory the
mean of the rows has Student's distribution; the interval holds the stated share of the mixture of them.

A season, such as that of a week, changes from row to row and says nothing of the mean. It would hide a level that lasts: rows
would seem to forget fast. So rows are also judged without it, and the wider interval counts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

FEWEST_INDEPENDENT = 4
"""Rows that count as fewer independent rows are not judged: their variance would be a guess."""
MOST = 120
"""More rows are replaced by the means of this number of equal stretches."""
TIMES = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Correlation times, in rows; at most twice the number of rows."""
LEVEL_ONLY, WITH_NOISE = 0.12, 0.05
"""The prior weight of each of these times, for a level alone and for a level with noise; rows without memory have 1. They were
chosen by simulation (see `tests/test_serial.py`).
"""
SEASONS, REPEATS = (2, 5, 7, 12, 24, 48, 96), 3
"""The lengths of a season in rows: two sites in turn, working days and days of a week, months, periods of a day; and the fewest
seasons to remove it."""
NEVER, HALVINGS = 1e-9, 36
"""Memories with a smaller probability are ignored; and the number of steps that find an end of the interval."""


class Sureness(NamedTuple):
    """Half the width of the interval around the mean of some rows, and the number of independent rows."""

    half: float
    independent: float

    @property
    def too_few(self) -> bool:
        return self.independent < FEWEST_INDEPENDENT


def too_alike(independent: float) -> str:
    """Why rows that count as this few independent ones are not judged."""
    return f"the test rows are too alike in time (they count as about {max(round(independent), 1)} independent ones)"


class _Memories(NamedTuple):
    """For each memory: what makes rows independent (k, m, m), its product with ones (k, m), and three numbers."""

    whiten: np.ndarray
    ones: np.ndarray
    weight: np.ndarray
    """The part of the log-likelihood that does not depend on the rows."""
    information: np.ndarray
    """1 / the variance of the best estimate of the mean, for rows of variance 1."""
    share: np.ndarray
    """The variance of the mean, as a share of the variance of one row."""


def sureness(rows: np.ndarray, confidence: float = 0.95) -> Sureness:
    """The certainty of the mean of rows (n,) in the order of time."""
    if len(rows) < 2:
        return Sureness(math.inf, float(len(rows)))
    seasons = [season for season in SEASONS if len(rows) >= REPEATS * season]
    measured = [_sureness(table, confidence) for table in (rows, *(_without(rows, season) for season in seasons))]
    return Sureness(max(part.half for part in measured), min(part.independent for part in measured))


def _without(rows: np.ndarray, season: int) -> np.ndarray:
    """The rows without their means at each place of a season, and with the same overall mean."""
    place = np.arange(len(rows)) % season
    rest = rows - (np.bincount(place, rows) / np.bincount(place))[place]
    return np.asarray(rest - rest.mean() + rows.mean())


def _sureness(rows: np.ndarray, confidence: float) -> Sureness:
    """`sureness` of rows without a season."""
    count = len(rows)
    length = -(-count // MOST)
    means = np.array([part.mean() for part in np.array_split(rows, -(-count // length))]) if length > 1 else rows
    means = means - means.mean()
    size = float(np.abs(means).max())
    if size <= 1e-12 * float(np.abs(rows).max()):  # all are equal
        return Sureness(0.0, float(count))
    return _mixed(means / size, _memories(len(means), length), size, confidence)


def _mixed(rows: np.ndarray, memories: _Memories, size: float, confidence: float) -> Sureness:
    from scipy.special import stdtr  # slow to import, and needed only here

    freedom = len(rows) - 1
    white = memories.whiten @ rows
    middle = (memories.ones * white).sum(axis=1) / memories.information
    left = np.maximum((white**2).sum(axis=1) - memories.information * middle**2, 1e-300)
    log = memories.weight - freedom / 2 * np.log(left)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    independent = 1 / float(weight @ memories.share)
    likely = weight > NEVER
    error = np.sqrt(left / freedom / memories.information)[likely]
    middle, weight = middle[likely], weight[likely] / weight[likely].sum()
    low, high = 0.0, float(error.max() + np.abs(middle).max())

    def outside(half: float) -> float:
        ends = stdtr(freedom, (-half - middle) / error) + stdtr(freedom, (middle - half) / error)
        return float(weight @ ends)

    while outside(high) > 1 - confidence:
        high *= 2
    for _ in range(HALVINGS):
        half = (low + high) / 2
        low, high = (half, high) if outside(half) > 1 - confidence else (low, half)
    return Sureness(size * high, independent)


@lru_cache(maxsize=8)
def _memories(count: int, length: int) -> _Memories:
    """The memories of ``count`` means of ``length`` rows each."""
    kinds = [(0.0, 1.0, 1.0)]
    for time in TIMES:
        if time <= 2 * count * length:
            kinds += [(time, 1.0, LEVEL_ONLY), (time, 0.5, WITH_NOISE)]
    memories = []
    for time, share, plausible in kinds:
        alike, variance = _covariance(count, length, time, share)
        whiten = np.linalg.inv(np.linalg.cholesky(alike))
        ones = whiten.sum(axis=1)
        information = float(ones @ ones)
        weight = math.log(plausible) + float(np.log(np.diag(whiten)).sum()) - math.log(information) / 2
        memories.append((whiten, ones, weight, information, variance))
    return _Memories(*(np.array(values) for values in zip(*memories, strict=True)))


def _covariance(count: int, length: int, time: float, share: float) -> tuple[np.ndarray, float]:
    """The covariance of the means of stretches, for rows of variance 1, and the variance of the overall mean."""
    lags = np.arange(1 - length, length)
    pairs = (length - np.abs(lags)) / length**2
    apart = np.abs(np.arange(count)[:, None] * length + lags)
    level = np.exp(-apart / time) @ pairs if time else np.zeros(count)
    level[0] = level[0] if time else 1 / length
    row = share * level
    row[0] += (1 - share) / length + 1e-10
    alike = row[np.abs(np.subtract.outer(np.arange(count), np.arange(count)))]
    return alike, float(alike.mean())
