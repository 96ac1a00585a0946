"""Whether a column has drifted: its last rows against those that a model holds, in the time that its values last.

Many columns are watched every day for years. Values that last (a temperature, a price level) leave their usual band for weeks
without any change of what makes them. So two things are asked: many of the last rows are beyond the usual values, and their
mean is further from that of the model's rows than a level that forgets as slowly as theirs would explain.
"""

from __future__ import annotations

import numpy as np

LATEST = 28
"""Rows that are compared with those of the model."""
USUAL = 0.98
"""The share of a column's values in the rows of the model that counts as usual."""
MOST_UNUSUAL = 0.25
"""A column has drifted only where more than this share of the latest rows is beyond the usual values,"""
ERRORS = 6.0
"""and their mean by more than this many standard errors from that of the model's rows (measured: `benchmarks.alarms`)."""
WIDEST = 1.0
"""Values further beyond the usual ones than this share of their width are cut: else one spike would move a mean of weeks."""
FAR = 0.5
"""It has drifted also where their mean is beyond the usual values by more than this share of their width: however slow a level
is, it does not go so far in the rows that a model has seen."""
LAGS = (1, 4, 14)
"""Rows between which values are compared to see how slowly a column forgets; the slowest counts."""
SLOWEST = 0.995
"""The most that a value keeps from row to row: slower ones are not distinguished."""


def drifted(before: np.ndarray, latest: np.ndarray) -> np.ndarray:
    """Which columns have drifted, from the rows of a model (n, k) to the `LATEST` ones (m, k)."""
    if len(before) < 2 * max(LAGS):
        return np.zeros(before.shape[1], bool)
    low, high = np.quantile(before, [(1 - USUAL) / 2, (1 + USUAL) / 2], axis=0)
    slack = 1e-9 * np.maximum(np.abs(low), np.abs(high))
    reach = np.where(high - low > slack, WIDEST * (high - low), np.inf)
    before, latest = (np.clip(rows, low - reach, high + reach) for rows in (before, latest))
    unusual = ((latest < low - slack) | (latest > high + slack)).mean(axis=0)
    mean, beyond = latest.mean(axis=0), FAR * (high - low) + slack
    far = (mean < low - beyond) | (mean > high + beyond)
    return np.asarray((unusual > MOST_UNUSUAL) & (far | (_errors(before, latest) > ERRORS)))


def _errors(before: np.ndarray, latest: np.ndarray) -> np.ndarray:
    """How many standard errors the mean of the latest rows is from that before; infinite where a column never changed."""
    apart = before - before.mean(axis=0)
    variance = (apart**2).mean(axis=0)
    varies = variance > 1e-18 * np.abs(before).max(axis=0) ** 2
    spread = np.where(varies, variance, 1.0)
    keeps = _kept(apart, spread)
    earlier, later = (_variance_of_mean(keeps, len(rows)) for rows in (before, latest))
    spread = spread / np.clip(1 - earlier, 0.1, 1.0)  # a slow level moves the mean that it is measured from
    errors = np.abs(latest.mean(axis=0) - before.mean(axis=0)) / np.sqrt(spread * (earlier + later))
    return np.where(varies, errors, np.inf)


def _kept(apart: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The share of its distance from the mean that a column keeps from row to row: the slowest that some lag shows."""
    found, count = np.zeros(apart.shape[1]), len(apart)
    for lag in LAGS:
        alike = np.clip((apart[lag:] * apart[:-lag]).sum(axis=0) / count / variance, 0.0, 1.0)
        if lag > 1:
            alike = np.where(alike > 2 / np.sqrt(count), alike, 0.0) ** (1 / lag)  # a root of noise would be large
        found = np.maximum(found, alike + (1 + 4 * alike) / count)  # it is estimated too low (Kendall)
    return np.minimum(found, SLOWEST)


def _variance_of_mean(keeps: np.ndarray, count: int) -> np.ndarray:
    """The variance of the mean of ``count`` rows that keep this share from row to row, and have variance 1."""
    lags = np.arange(1, count)[:, None]
    return np.asarray((1 + 2 * ((1 - lags / count) * keeps**lags).sum(axis=0)) / count)
