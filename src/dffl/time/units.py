"""Units of the recent past: costs are measured from a recent level, in units of a recent spread.

Costs of a client may double within months. A model of costs in these units is not affected. They help if level or spread
drift; if both are constant they change little.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dffl.batched import solve_each
from dffl.sets import FeasibleSet

LEVEL_WEIGHT, SPREAD_WEIGHT = 0.2, 0.1
"""The weight of the newest row in the average level, and in the average of the logarithm of the spread."""
CUT = 4.0
"""Costs further than this many recent spreads from the base are cut to that distance, in training only."""
SMALLEST = 0.01
"""The smallest spread of a row, relative to the mean size of the costs so far."""


class Units(NamedTuple):
    """The level and the spread of the recent past, one number for each row, (n, 1). Each depends only on earlier rows."""

    level: np.ndarray
    spread: np.ndarray

    def scaled(self, costs: np.ndarray) -> np.ndarray:
        """Costs in these units."""
        return np.asarray((costs - self.level) / self.spread)

    def raw(self, values: np.ndarray) -> np.ndarray:
        """The inverse: values in these units as costs."""
        return np.asarray(self.level + self.spread * values)

    def take(self, index: slice | np.ndarray) -> Units:
        """The units of some rows."""
        return Units(self.level[index], self.spread[index])


def middles(costs: np.ndarray) -> np.ndarray:
    """The median of each row, (n, 1)."""
    return np.median(costs, axis=1, keepdims=True)


def deviations(costs: np.ndarray) -> np.ndarray:
    """The spread of each row's own costs, (n, 1), never zero. It is known only with the costs.

    With fewer than three costs, a row has no meaningful spread: its mean size is used instead.
    """
    size = np.abs(costs).mean(axis=1, keepdims=True)
    least = SMALLEST * np.cumsum(size, axis=0) / np.arange(1, len(costs) + 1)[:, None] + 1e-9
    return (costs.std(axis=1, keepdims=True) if costs.shape[1] > 2 else size) + least


def day_scaled(regrets: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Regret of each row over the spread of that row's costs (n, d)."""
    return np.asarray(regrets / deviations(costs)[:, 0])


def recent(costs: np.ndarray, known_after: int = 0) -> Units:
    """Exponential averages of the level and of the logarithm of the spread, over the rows before each row.

    Row t depends only on the rows before ``t - known_after``. Without such rows, the level is 0 and the spread 1.
    """
    level = _before(middles(costs), LEVEL_WEIGHT, known_after)
    return Units(level, np.exp(_before(np.log(deviations(costs)), SPREAD_WEIGHT, known_after)))


def _before(values: np.ndarray, weight: float, known_after: int) -> np.ndarray:
    means = exponential(values, weight)
    shift, out = known_after + 1, np.zeros_like(values)
    if shift < len(values):
        out[shift:] = means[:-shift]
    return out


def cut(costs: np.ndarray, base: np.ndarray, units: Units, multiple: float = CUT) -> np.ndarray:
    """Costs with extreme ones cut at a multiple of the recent spread from the base, in raw units."""
    reach = multiple * units.spread
    return np.clip(costs, base - reach, base + reach)


def constant_sum(feasible: FeasibleSet) -> bool:
    """Whether all decisions have the same sum, as with top-k: then adding a number to all costs changes no decision."""
    ones = np.ones((1, feasible.dim))
    [low], [high] = solve_each([feasible], [ones])[0], solve_each([feasible], [-ones])[0]
    return bool(abs(low.sum() - high.sum()) <= 1e-9 * max(1.0, abs(low.sum())))


def for_training(
    costs: np.ndarray, base: np.ndarray, units: Units, feasible: FeasibleSet
) -> tuple[np.ndarray, np.ndarray, Units]:
    """Costs and base for the training of a model, and the units of its predictions.

    They are divided by the recent spread, and costs are cut around the base. If all decisions have the same sum, each row is
    measured from its own median, because no decision depends on it, and a model need not learn the level. If a part of the
    objective is known, nothing is divided: the known part would get different weights in different rows.
    """
    nothing = np.zeros_like(units.level)
    if feasible.lifted.dim != feasible.dim:
        return cut(costs, base, units), base, Units(nothing, np.ones_like(units.spread))
    if constant_sum(feasible):
        costs, level = costs - middles(costs), middles(base)
        centred = Units(level, units.spread)
        return cut(costs, base - level, units) / units.spread, centred.scaled(base), centred
    plain = Units(nothing, units.spread)
    return plain.scaled(cut(costs, base, units)), plain.scaled(base), plain


def exponential(values: np.ndarray, weight: float) -> np.ndarray:
    """The exponential average of the rows up to each row, with this weight for the newest. It starts at the first row."""
    parts = weight * values
    parts[:1] += (1 - weight) * values[:1]
    return running(parts, 1 - weight)


def running(parts: np.ndarray, keeps: float) -> np.ndarray:
    """Sum of the rows up to each row, of which each newer row keeps the share ``keeps``.

    `scipy.signal.lfilter` gives the same bits, but its import takes longer than all else in the first decision of a process.
    """
    sums = parts + 0.0  # a copy, without negative zeros
    for before, row in pairwise(sums):
        row += keeps * before
    return sums
