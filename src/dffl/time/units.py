"""Units of the recent past: costs are measured from a recent level, in a recent spread.

Costs of one client may double within months. A model of costs in these units does not notice. They help where level or spread
drift; where both are constant they change little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from dffl.batched import solve_each
from dffl.sets import FeasibleSet

LEVEL_WEIGHT, SPREAD_WEIGHT = 0.2, 0.1
"""The weight of the newest row in the average level, and in the average of the logarithm of the spread."""
CUT = 4.0
"""Costs further than this many recent spreads from the base are cut to that distance, in training only."""
SMALLEST = 0.01
"""The least spread of a row, in mean sizes of the costs so far."""


class Units(NamedTuple):
    """Level and spread of the recent past, one number for each row, (n, 1); each follows from earlier rows alone."""

    level: np.ndarray
    spread: np.ndarray

    def scaled(self, costs: np.ndarray) -> np.ndarray:
        """Costs in these units."""
        return np.asarray((costs - self.level) / self.spread)

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values in these units as costs again."""
        return np.asarray(self.level + self.spread * values)

    def take(self, index: slice | np.ndarray) -> Units:
        """The units of some rows."""
        return Units(self.level[index], self.spread[index])


def middles(costs: np.ndarray) -> np.ndarray:
    """The median of each row, (n, 1)."""
    return np.median(costs, axis=1, keepdims=True)


def deviations(costs: np.ndarray) -> np.ndarray:
    """The spread of each row's own costs, (n, 1), never zero: it is known when the costs are.

    With fewer than three costs a row has no spread to speak of: its mean size takes the place.
    """
    size = np.abs(costs).mean(axis=1, keepdims=True)
    least = SMALLEST * np.cumsum(size, axis=0) / np.arange(1, len(costs) + 1)[:, None] + 1e-9
    return (costs.std(axis=1, keepdims=True) if costs.shape[1] > 2 else size) + least


def recent(costs: np.ndarray, known_after: int = 0) -> Units:
    """Exponential averages of the level and of the logarithm of the spread, of the rows before each row.

    Row t depends on the rows before ``t - known_after`` alone. Where none is known, the level is 0 and the spread 1.
    """
    level = _before(middles(costs), LEVEL_WEIGHT, known_after)
    return Units(level, np.exp(_before(np.log(deviations(costs)), SPREAD_WEIGHT, known_after)))


def _before(values: np.ndarray, weight: float, known_after: int) -> np.ndarray:
    means, _ = lfilter([weight], [1, weight - 1], values, axis=0, zi=(1 - weight) * values[:1])
    shift, out = known_after + 1, np.zeros_like(values)
    if shift < len(values):
        out[shift:] = means[:-shift]
    return out


def cut(costs: np.ndarray, base: np.ndarray, units: Units, multiple: float = CUT) -> np.ndarray:
    """Costs with extreme ones cut at a multiple of the recent spread from the base, in raw units."""
    reach = multiple * units.spread
    return np.clip(costs, base - reach, base + reach)


def usable(units: Units, feasible: FeasibleSet) -> Units:
    """The part of these units that leaves the best decisions on a set as they are.

    A level may be subtracted where all decisions have the same sum, as with top-k. A spread may divide the costs where all of
    them are predicted; where a part of the objective is known, one constant scale takes its place.
    """
    lifted = feasible.lifted.dim != feasible.dim
    if lifted:
        return Units(np.zeros_like(units.level), np.ones_like(units.spread))
    ones = np.ones((1, feasible.dim))
    [low], [high] = solve_each([feasible], [ones])[0], solve_each([feasible], [-ones])[0]
    constant = abs(low.sum() - high.sum()) <= 1e-9 * max(1.0, abs(low.sum()))
    return units if constant else Units(np.zeros_like(units.level), units.spread)
