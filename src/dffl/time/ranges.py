"""Adaptive conformal ranges of what decisions will cost, one for each client, corrected by what they really cost.

A range is the expected cost plus quantiles of recent errors, in units of the recent spread. Each end has its own miss rate: if
the truth falls outside too often, the end moves outwards, and the other way round (Gibbs and Candes, 2021). So the stated share
holds under drift, without an assumption on the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dffl.checks import require_number

SHARE = 0.8
"""The share of later costs that a range should contain."""
WINDOW = 60
"""The number of past errors that a range uses."""
RATE = 0.05
"""The speed of the ends: a lower rate also has the stated share on average, but less exactly within half a year."""
FEWEST = 8
"""With fewer errors there is no range."""
ROUNDING = 1e-9
BEYOND = 0.25
"""An end beyond all errors is moved out by this share of their width."""


@dataclass
class AdaptiveRange:
    """The range of one client. `ends` gives it for a row; `observe` takes the realised cost of the row."""

    share: float = SHARE
    window: int = WINDOW
    rate: float = RATE
    errors: list[float] = field(default_factory=list)
    """The latest errors, in units of the scale, oldest first."""
    low_rate: float = field(default=float("nan"))
    high_rate: float = field(default=float("nan"))
    """The current miss rates of the two ends."""

    def __post_init__(self) -> None:
        require_number("share", self.share, 0.0, 1.0, "in (0, 1)")
        self.miss = (1.0 - self.share) / 2
        self.low_rate = self.miss if np.isnan(self.low_rate) else self.low_rate
        self.high_rate = self.miss if np.isnan(self.high_rate) else self.high_rate

    def ends(self, expected: float, scale: float) -> tuple[float, float]:
        """The range of an expected cost, with its recent spread; infinite while there are too few errors."""
        if len(self.errors) < FEWEST:
            return -np.inf, np.inf
        past = np.sort(self.errors)
        count, width = len(past), past[-1] - past[0]
        below = int(np.floor((count + 1) * max(self.low_rate, 0.0) + ROUNDING)) - 1
        above = int(np.ceil((count + 1) * (1 - max(self.high_rate, 0.0)) - ROUNDING)) - 1
        low = past[min(below, count - 1)] if below >= 0 else past[0] - BEYOND * width
        high = past[max(above, 0)] if above < count else past[-1] + BEYOND * width
        return float(expected + scale * min(low, high)), float(expected + scale * max(low, high))

    def observe(self, cost: float, expected: float, scale: float, ends: tuple[float, float]) -> None:
        """Learn from the realised cost of a row, given its expected cost and its stated range."""
        if np.isfinite(ends[0]):
            below, above = misses(np.array([cost]), np.array([ends]))
            self.low_rate += self.rate * (self.miss - bool(below[0]))
            self.high_rate += self.rate * (self.miss - bool(above[0]))
        self.errors = [*self.errors, float((cost - expected) / scale)][-self.window :]


def adaptive_ranges(
    cost: np.ndarray, expected: np.ndarray, scale: np.ndarray, known_after: int = 0, share: float = SHARE
) -> np.ndarray:
    """The range of each row (n, 2), from the costs of the rows before ``t - known_after`` alone.

    - ``cost`` (n,): what the decisions really cost.
    - ``expected`` (n,): what they were expected to cost.
    - ``scale`` (n,): the recent spread of each row.
    """
    state, ends = AdaptiveRange(share), np.empty((len(cost), 2))
    for row in range(len(cost)):
        known = row - known_after - 1
        if known >= 0:
            state.observe(cost[known], expected[known], scale[known], (ends[known, 0], ends[known, 1]))
        ends[row] = state.ends(expected[row], scale[row])
    return ends


def misses(cost: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which costs (n,) are below their ranges (n, 2), and which above; by more than rounding, as costs may be constant."""
    slack = ROUNDING * np.maximum(np.abs(cost), 1e-300)
    return cost < ends[:, 0] - slack, cost > ends[:, 1] + slack


def inside(cost: np.ndarray, ends: np.ndarray) -> float:
    """The share of costs inside their ranges; rows without a range do not count. NaN if no row has one."""
    ranged = np.isfinite(ends).all(axis=1)
    below, above = misses(cost, ends)
    return float((~(below | above))[ranged].mean()) if ranged.any() else float("nan")
