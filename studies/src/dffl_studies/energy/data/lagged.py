"""Forecasts from past prices: moving averages, each of which uses only the days before the day that it forecasts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

WEIGHTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The weights of a new day that tuning chooses from."""
WIDEST = 3.0
"""Hours farther than so many spreads from their day's median are cut to that distance."""
SATURDAY = 5
ALIKE = 3.0
"""The weight of days of the same kind (working day or weekend), compared with days of the other kind."""


def weekday(dates: np.ndarray) -> np.ndarray:
    """0 for a Monday to 6 for a Sunday."""
    return (dates.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday


def is_weekend(dates: np.ndarray) -> np.ndarray:
    """Whether each date is a Saturday or a Sunday."""
    return weekday(dates) >= SATURDAY


def yesterday(prices: np.ndarray) -> np.ndarray:
    """The prices of the day before each day, and (last row) of the day before the day after the last."""
    return np.concatenate([np.zeros_like(prices[:1]), prices])


def mean_of_last(prices: np.ndarray, days: int) -> np.ndarray:
    """Plain means of so many days before each day, or of as many as there are; rows as in `moving_average`."""
    sums = np.concatenate([np.zeros_like(prices[:1]), np.cumsum(prices, axis=0)])
    ends = np.arange(len(sums))
    starts = np.maximum(ends - days, 0)
    return (sums - sums[starts]) / np.maximum(ends - starts, 1)[:, None]


def moving_average(prices: np.ndarray, weight: float) -> np.ndarray:
    """Exponentially weighted means of the prices before each day, and (last row) before the day after the last.

    Nothing is known before the first day: its row is zero.
    """
    held = (1 - weight) * prices[:1]  # the average starts at the first day's prices
    means, _ = lfilter([weight], [1, weight - 1], prices, axis=0, zi=held)
    return np.concatenate([np.zeros_like(prices[:1]), means])


def steady_average(prices: np.ndarray, dates: np.ndarray, weight: float) -> np.ndarray:
    """A moving average in which an extreme day counts no more than an ordinary one, and a day of the same kind counts more.

    Each day is split into its median, its spread and its shape (in spreads from the median, with outliers cut). A forecast is
    the average shape of the days before, in which days of the same kind (working day or weekend) count three times, times the
    average spread, plus the average median. Rows as in `moving_average`.
    """
    level, spread, shape = _level_spread_shape(prices)
    kinds = is_weekend(np.append(dates, dates[-1] + 1))
    total, count = np.zeros((len(prices) + 1, prices.shape[1])), np.zeros((len(prices) + 1, 1))
    for kind in (False, True):
        days = (kinds[:-1] == kind)[:, None]
        trust = np.where(kinds == kind, ALIKE, 1.0)[:, None]
        total += trust * _fading_sums(shape * days, weight)
        count += trust * _fading_sums(days.astype(float), weight)
    spreads = np.cumsum(spread, axis=0) / np.arange(1, len(spread) + 1)[:, None]
    spreads = np.concatenate([np.zeros((1, 1)), spreads])
    return moving_average(level, weight) + total / np.where(count > 0, count, 1.0) * np.exp(spreads)


@dataclass
class Memory:
    """The state of a `steady_average` after some days: enough to continue without them."""

    weight: float
    days: int
    middle: float
    size: float
    counts: list[float]
    """The numbers of working days and of weekend days, in which older days count less."""
    shapes: list[list[float]]
    """The sums of their shapes, in which older days count less."""

    @classmethod
    def of(cls, prices: np.ndarray, dates: np.ndarray, weight: float) -> Memory:
        """The state after these days, (days, 24)."""
        if not len(prices):
            raise ValueError("a moving average needs at least one day, found none")
        nothing = np.zeros((2, prices.shape[1])).tolist()
        memory = cls(weight, 0, 0.0, 0.0, [0.0, 0.0], nothing)
        for day, date in zip(prices, dates, strict=True):
            memory.add(day, date)
        return memory

    def add(self, day: np.ndarray, date: np.datetime64) -> None:
        """Add the prices of one more day."""
        middle, size, shape = (part[0] for part in _level_spread_shape(day[None]))
        kind, kept = int(is_weekend(np.asarray(date))), 1 - self.weight
        self.days += 1
        self.middle += (self.weight if self.days > 1 else 1.0) * (float(middle[0]) - self.middle)
        self.size += (float(size[0]) - self.size) / self.days
        self.counts = [kept * count + (place == kind) for place, count in enumerate(self.counts)]
        sums = kept * np.array(self.shapes)
        sums[kind] += shape
        self.shapes = sums.tolist()

    def forecast(self, date: np.datetime64) -> np.ndarray:
        """The forecast of the 24 prices of a later day."""
        trust = np.ones(2)
        trust[int(is_weekend(np.asarray(date)))] = ALIKE
        shape = trust @ np.array(self.shapes) / (trust @ np.array(self.counts))
        return np.asarray(self.middle + shape * np.exp(self.size))

    def as_json(self) -> dict[str, Any]:
        """For a saved model; ``Memory(**...)`` reads it."""
        return asdict(self)


def _fading_sums(values: np.ndarray, weight: float) -> np.ndarray:
    """Sums of the rows before each row, and before the row after the last; a row loses the share ``weight`` each day."""
    return np.concatenate([np.zeros_like(values[:1]), lfilter([1.0], [1, weight - 1], values, axis=0)])


def _level_spread_shape(prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The median of each day, the logarithm of its spread, and its shape in spreads from the median."""
    middle = np.median(prices, axis=1, keepdims=True)
    spread = prices.std(axis=1, keepdims=True) + 1.0  # a day on which all hours cost the same has no shape
    return middle, np.log(spread), np.clip((prices - middle) / spread, -WIDEST, WIDEST)
