"""Features of the past: lags, means of the last rows, exponential averages, weekday and season.

One rule holds for all of them: row t is described by the rows before ``t - known_after`` and no others. ``known_after`` is a
delay in rows: with 0 the row before is known when a client decides; with 1 it is not known yet, and so on. Rows are counted,
not days: where a day is missing, lag 1 is the last row that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dffl.checks import require_whole
from dffl.time.units import Units, deviations, exponential, middles, running

WIDEST_SHAPE = 3.0
"""Costs further than this many spreads from the median of their row are cut to that distance."""
WIDEST_BASE = 6.0
"""The same for a base forecast, in spreads of the recent past."""
ITEM_ROWS = 28
"""The number of rows whose mean and spread are the units of the features of items."""
DAYS_OF_YEAR = 365.25
WEEK = 7


@dataclass(frozen=True)
class Past:
    """Which features of the past there are.

    - ``lags``: rows t - n. A lag that is not known yet becomes the newest row that is.
    - ``means``: plain means of the last n known rows.
    - ``weights``: exponential averages in which the newest row has this weight.
    - ``known_after``: how many rows pass before the costs of a row are known; 0 means before the next decision.
    - ``season``: whether the time of year is a feature. By default where two years come before the first refit: with less, a
      model would be asked about seasons that it has not seen.
    """

    lags: tuple[int, ...] = (1, 2, 7)
    means: tuple[int, ...] = (7, 14, 28)
    weights: tuple[float, ...] = (0.3, 0.05)
    known_after: int = 0
    season: bool | None = None

    def __post_init__(self) -> None:
        require_whole("known_after", self.known_after, least=0, most=10**6)
        for field in ("lags", "means"):
            for number in getattr(self, field):
                require_whole(field, number, least=1, most=10**6)
        for weight in self.weights:
            if not 0 < weight <= 1:
                raise ValueError(f"weights must be in (0, 1], found {weight!r:.40}")

    @property
    def known_lags(self) -> tuple[int, ...]:
        """The lags that are known when a client decides, without repetitions."""
        return tuple(dict.fromkeys(max(lag, self.known_after + 1) for lag in self.lags))

    @property
    def own_width(self) -> int:
        """The number of features of each cost about its past and about the prediction of the base; they come first."""
        return len(self.known_lags) + len(self.means) + len(self.weights) + 1

    @property
    def longest(self) -> int:
        """The number of rows that the longest lag or mean looks back."""
        return self.known_after + max([0, *self.known_lags, *self.means])


class Features(NamedTuple):
    """What is known of each row before its decision."""

    items: np.ndarray
    """Features of each cost, (n, d, q)."""
    rows: np.ndarray
    """Features of each row, (n, r)."""


def lagged(values: np.ndarray, lag: int, known_after: int = 0) -> np.ndarray:
    """Row t - lag of a table, for each row t; zero if there is no such row, or if it is not known yet."""
    shift = max(lag, known_after + 1)
    out = np.zeros_like(values, dtype=np.float64)
    if shift < len(values):
        out[shift:] = values[:-shift]
    return out


def mean_before(values: np.ndarray, count: int, known_after: int = 0) -> np.ndarray:
    """Mean of the last ``count`` known rows before each row, or of fewer if there are fewer; zero without any."""
    sums = np.concatenate([np.zeros_like(values[:1], dtype=np.float64), np.cumsum(values, axis=0)])
    ends = np.maximum(np.arange(len(values)) - known_after, 0)
    starts = np.maximum(ends - count, 0)
    return (sums[ends] - sums[starts]) / np.maximum(ends - starts, 1).reshape(-1, *[1] * (values.ndim - 1))


def average_before(values: np.ndarray, weight: float, known_after: int = 0) -> np.ndarray:
    """Exponential average of the known rows before each row, with this weight for the newest; zero without any.

    It starts at the first row.
    """
    return lagged(exponential(values, weight), 1, known_after)


def fading_sums(values: np.ndarray, weight: float, known_after: int = 0) -> np.ndarray:
    """Sum of the known rows before each row; a row loses the share ``weight`` with each newer row."""
    return lagged(running(1.0 * values, 1 - weight), 1, known_after)


def calendar(days: np.ndarray | None, count: int, season: bool = True) -> np.ndarray:
    """Weekday (seven columns of 0 and 1) and season (two columns, if asked for) of each row; no columns if days are unknown.

    ``days`` are days since 1970-01-01, with fractions for times of day. The weekday is that of the client's own clock.
    """
    if days is None:
        return np.zeros((count, 0))
    whole_days = np.floor(days)
    weekday = np.eye(WEEK)[(whole_days.astype(int) + 3) % WEEK]  # 1970-01-01 was a Thursday
    if not season:
        return weekday
    angle = 2 * np.pi * whole_days / DAYS_OF_YEAR
    return np.column_stack([weekday, np.sin(angle), np.cos(angle)])


def shapes(costs: np.ndarray) -> np.ndarray:
    """Costs (n, d) in spreads of their own row from the median of their own row, with extreme ones cut."""
    return np.clip((costs - middles(costs)) / deviations(costs), -WIDEST_SHAPE, WIDEST_SHAPE)


def features(
    costs: np.ndarray, base: np.ndarray, units: Units, past: Past, days: np.ndarray | None = None,
    own: np.ndarray | None = None, brought: np.ndarray | None = None,
) -> Features:  # fmt: skip
    """Features of each cost and of each row.

    - ``costs`` (n, d): of all rows; row t is described by those before ``t - past.known_after``.
    - ``base`` (n, d): a forecast that is known before each decision.
    - ``units``: level and spread of the recent past, as `dffl.time.units.recent` gives them.
    - ``days``: days since 1970, where the order is of dates.
    - ``own`` (n, p): other features of the rows, known before each decision. What is used is how far they are from their
      mean of the last seven rows.
    - ``brought`` (n, d, q): features of the items, known before each decision too; they are the last of each cost.
    """
    wait, shape = past.known_after, shapes(costs)
    start = np.clip((base - middles(base)) / units.spread, -WIDEST_BASE, WIDEST_BASE)
    lags = [lagged(shape, lag, wait) for lag in past.known_lags]
    newest = lagged(shape, 1, wait)
    averages = [mean_before(shape, count, wait) for count in past.means]
    averages += [average_before(shape, weight, wait) for weight in past.weights]
    two_weeks = mean_before(shape, 14, wait)
    unrest = np.sqrt(np.maximum(mean_before(shape**2, 14, wait) - two_weeks**2, 0.0))
    raw = [np.arcsinh((lagged(costs, lag, wait) - units.level) / units.spread) for lag in _ends(past.known_lags)]
    items = [
        *lags,
        *(average - start for average in averages),
        start,
        *_sides(newest),
        *(side - start for side in _sides(start)),
    ]
    items += [unrest, _ranks(start), *raw]
    level = (units.level - lagged(units.level, 1)) / units.spread
    spread = np.log(units.spread) - lagged(np.log(units.spread), 1)
    rows = [
        np.clip(level, -WIDEST_BASE, WIDEST_BASE),
        np.clip(spread, -1.0, 1.0),
        calendar(days, len(costs), bool(past.season)),
    ]
    if own is not None and own.shape[1]:
        rows.append(_anomalies(own))
    if brought is not None:
        items += list(np.moveaxis(_among_items(brought), -1, 0))
    described = Features(np.stack(items, axis=-1), np.column_stack(rows))
    described.items[: wait + 1], described.rows[: wait + 1, :2] = 0.0, 0.0  # nothing is known before these rows
    return described


def _anomalies(values: np.ndarray) -> np.ndarray:
    """The deviation of each feature from its mean of the last seven rows, relative to its usual deviation; cut at 4."""
    change = values - mean_before(values, WEEK)
    change[0] = 0.0
    ends = np.arange(1, len(values) + 1)[:, None]
    usual = np.sqrt(np.cumsum(change**2, axis=0) / ends)
    return np.clip(change / np.where(usual > 0, usual, 1.0), -4.0, 4.0)


def _among_items(brought: np.ndarray) -> np.ndarray:
    """Features of items in spreads from their mean, over all items of this row and of the last ones; cut at 4."""
    apart = brought - brought[:1].mean(axis=1, keepdims=True)  # so that squares keep their digits
    mean = mean_before(apart.mean(axis=1), ITEM_ROWS, -1)  # -1: known with this row
    variance = mean_before((apart**2).mean(axis=1), ITEM_ROWS, -1) - mean**2
    largest = np.maximum.accumulate(np.abs(brought).max(axis=1), axis=0)
    spread = np.sqrt(np.maximum(variance, 0.0))
    spread = np.where(spread > 1e-7 * largest, spread, 1.0)  # the rest is rounding
    return np.clip((apart - mean[:, None]) / spread[:, None], -4.0, 4.0)


def _sides(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The neighbour before and after each column; the first and the last are their own."""
    return np.hstack([values[:, :1], values[:, :-1]]), np.hstack([values[:, 1:], values[:, -1:]])


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each column in its row, from -0.5 to 0.5."""
    order = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1, kind="stable")
    return order / max(values.shape[1] - 1, 1) - 0.5


def _ends(lags: Sequence[int]) -> list[int]:
    """The shortest and the longest lag."""
    return [min(lags), max(lags)] if lags else []
