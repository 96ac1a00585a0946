"""What past prices say of tomorrow's: moving averages, each of which knows the days before a day and nothing more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

WEIGHTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The weights of a new day that tuning chooses from."""
WIDEST = 3.0
"""How many spreads an hour may stand from its day's median before it counts no further."""


def yesterday(prices: np.ndarray) -> np.ndarray:
    """The prices of the day before each day, and (last row) of the day before the day after the last."""
    return np.concatenate([np.zeros_like(prices[:1]), prices])


def moving_average(prices: np.ndarray, weight: float) -> np.ndarray:
    """Exponentially weighted means of the prices before each day, and (last row) before the day after the last.

    Of the first day nothing is known beforehand: its row is zero.
    """
    held = (1 - weight) * prices[:1]  # the average starts at the first day's prices
    means, _ = lfilter([weight], [1, weight - 1], prices, axis=0, zi=held)
    return np.concatenate([np.zeros_like(prices[:1]), means])


def steady_average(prices: np.ndarray, weight: float) -> np.ndarray:
    """A moving average in which a wild day counts no more than a calm one; rows as in `moving_average`.

    Each day is taken apart into its median, its spread and its shape, in spreads from the median. The shapes are averaged,
    with outliers cut at three spreads, and put together again with the average median and the spread of an ordinary day.
    """
    middle, size, shape = _apart(prices)
    sizes = np.cumsum(size, axis=0) / np.arange(1, len(size) + 1)[:, None]
    sizes = np.concatenate([np.zeros((1, 1)), sizes])
    return moving_average(middle, weight) + moving_average(shape, weight) * np.exp(sizes)


class Memory(NamedTuple):
    """What a `steady_average` remembers of the days so far: enough to go on without them."""

    days: int
    middle: float
    size: float
    shape: list[float]

    @classmethod
    def of(cls, prices: np.ndarray, weight: float) -> Memory:
        """What is left of these days, (days, 24)."""
        memory: Memory | None = None
        for day in prices:
            memory = cls.first(day) if memory is None else memory.after(day, weight)
        if memory is None:
            raise ValueError("a moving average needs at least one day, found none")
        return memory

    @classmethod
    def first(cls, day: np.ndarray) -> Memory:
        """What is left of a single day."""
        middle, size, shape = _apart(day[None])
        return cls(1, float(middle[0, 0]), float(size[0, 0]), shape[0].tolist())

    def after(self, day: np.ndarray, weight: float) -> Memory:
        """What is left one day later."""
        middle, size, shape = _apart(day[None])
        old = np.array(self.shape)
        return Memory(
            self.days + 1,
            self.middle + weight * (float(middle[0, 0]) - self.middle),
            self.size + (float(size[0, 0]) - self.size) / (self.days + 1),
            (old + weight * (shape[0] - old)).tolist(),
        )

    def forecast(self) -> np.ndarray:
        """The 24 prices that it expects of the next day."""
        return self.middle + np.array(self.shape) * np.exp(self.size)


def _apart(prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The median of each day, the logarithm of its spread, and its shape in spreads from the median."""
    middle = np.median(prices, axis=1, keepdims=True)
    spread = prices.std(axis=1, keepdims=True) + 1.0  # a day on which all hours cost the same has no shape
    return middle, np.log(spread), np.clip((prices - middle) / spread, -WIDEST, WIDEST)
