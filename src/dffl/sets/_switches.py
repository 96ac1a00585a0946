"""Switches with factors that are far too large, as in x <= 1e9 b for x <= 1: the same program with factors of the right size.

Tolerances are relative to a row's largest factor. Beside 1e9, HiGHS takes b = 1e-9 for whole, and x = 1 with b = 0 for
feasible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dffl.sets._highs import WarmLP
from dffl.sets._program import INTEGER, Program

TOO_LARGE = 1e4
"""A factor is too large if it is this many times what its row needs. Smaller ones are left as they are, to the last bit."""


def with_small_factors(program: Program) -> Program:
    """A program with the same solutions, where no switch has a factor that is too large; the same one if none has.

    Only rows with one end are looked at. What their other columns add up to follows from bounds, or else from all rows.
    """
    switch = (program.kind == INTEGER) & (program.lower == 0)
    one_end = np.isfinite(program.row_lower) != np.isfinite(program.row_upper)
    if not switch.any() or not one_end.any():
        return program
    relaxed = program.relaxed
    matrix, row_lower, row_upper = program.matrix.copy(), program.row_lower.copy(), program.row_upper.copy()
    changed, reach = False, _Reach(relaxed)
    for row in np.flatnonzero(one_end & _uneven(program)):
        mine = slice(matrix.indptr[row], matrix.indptr[row + 1])
        columns, sign = matrix.indices[mine], 1.0 if np.isfinite(row_upper[row]) else -1.0
        factors, end = sign * matrix.data[mine], sign * (row_upper[row] if sign > 0 else row_lower[row])
        factors, end, better = _smaller(factors, end, columns, switch[columns], reach)
        if better:
            changed = True
            matrix.data[mine] = sign * factors
            (row_upper if sign > 0 else row_lower)[row] = sign * end
    if not changed:
        return program
    matrix.eliminate_zeros()
    return replace(program, matrix=matrix, row_lower=row_lower, row_upper=row_upper)


class _Reach:
    """What some terms add up to at most, and the largest of them; infinite where there is no end."""

    def __init__(self, relaxed: Program):
        self._relaxed, self.upper = relaxed, relaxed.upper
        self._warm: WarmLP | None = None

    def __call__(self, columns: np.ndarray, factors: np.ndarray) -> tuple[float, float]:
        terms = factors * np.where(factors > 0, self._relaxed.upper[columns], self._relaxed.lower[columns])
        if np.isfinite(terms).all():
            return float(terms.sum()), float(np.abs(terms).max())
        cost = np.zeros(self._relaxed.lower.size)
        cost[columns] = -factors / np.abs(factors).max()
        try:
            if self._warm is None:
                self._warm = WarmLP(self._relaxed.highs(), lambda _, status: status.name)
            terms = factors * self._warm.run(cost)[columns]
        except ValueError:  # it has no end, or the program no point: that is said elsewhere
            return np.inf, np.inf
        size = float(np.abs(terms).sum())
        return float(terms.sum()) + 1e-6 * size, size  # with room for the tolerances of HiGHS


def _uneven(program: Program) -> np.ndarray:
    """Whether a row's largest factor is at least TOO_LARGE times its smallest one: only such rows are examined."""
    matrix, size = program.matrix, np.abs(program.matrix.data)
    largest, smallest = np.zeros(matrix.shape[0]), np.full(matrix.shape[0], np.inf)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.maximum.at(largest, rows, size)
    np.minimum.at(smallest, rows, size)
    return largest >= TOO_LARGE * smallest


def _smaller(
    factors: np.ndarray, end: float, columns: np.ndarray, switch: np.ndarray, reach: _Reach
) -> tuple[np.ndarray, float, bool]:
    """Factors and end of a row factors . v <= end with the same whole solutions; and whether any has changed."""
    factors, better = factors.copy(), False
    for place in np.flatnonzero(switch):
        factor = factors[place]
        others = (factors != 0) & (np.arange(factors.size) != place)
        if not others.any() or abs(factor) < TOO_LARGE * np.abs(factors[others]).min():
            continue
        if factor > 0 and reach.upper[columns[place]] != 1:
            continue
        most, largest = reach(columns[others], factors[others])
        if factor < 0 and most <= end - factor:  # the row says nothing where the switch is 1 or more
            needed, new_end = min(end - most, 0.0), end
        elif factor > 0 and most <= end:  # it says nothing where the switch is 0
            needed, new_end = max(most - (end - factor), 0.0), most
        else:
            continue
        if abs(factor) >= TOO_LARGE * max(abs(needed), largest):
            factors[place], end, better = needed, new_end, True
    return factors, end, better
