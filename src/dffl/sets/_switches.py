"""Switches with factors that are far too large, as in x <= 1e9 b for x <= 1: the same program with factors of the right size.

Tolerances are relative to a row's largest factor. Beside 1e9, HiGHS takes b = 1e-9 for whole, and x = 1 with b = 0 for
feasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dffl.sets._highs import WarmLP
from dffl.sets._program import INTEGER, WIDE_ROW, Program, row_sizes

LOST = 1e16
"""A row with a larger range of factors cannot be brought to units in which HiGHS takes all of them."""
TOO_LARGE = 1e4
"""A factor is too large if it is this many times what its row needs. Smaller ones are left as they are, to the last bit."""
NEARLY = 1e3
"""Factors of a row within this much of its largest one are made smaller together."""
Row = tuple[np.ndarray, float, bool]
"""Factors and end of a row factors . v <= end, and whether any has changed."""


def with_small_factors(program: Program) -> Program:
    """A program with the same solutions, where no switch has a factor that is too large; the same one if none has.

    Only rows with one end are looked at. What their other columns add up to follows from bounds, or else from all rows.
    """
    switch = (program.kind == INTEGER) & (program.lower == 0)
    is_integer = program.kind == INTEGER
    program = _changed(program, switch, _uneven(program), _smaller)
    smallest, largest = row_sizes(program.matrix)
    program = _changed(program, is_integer, largest >= WIDE_ROW * smallest, _together)
    # Also a factor of 1e9 beside one of 1e5 is far too large if that column is at most 1e-5.
    return _changed(program, is_integer, _towering(program, is_integer), partial(_together, least=WIDE_ROW))


def _changed(program: Program, chosen: np.ndarray, uneven: np.ndarray, rule: Callable[..., Row]) -> Program:
    """The program with this rule applied to its uneven rows with one end, for the chosen columns."""
    one_end = np.isfinite(program.row_lower) != np.isfinite(program.row_upper)
    rows = np.flatnonzero(one_end & uneven & chosen.any())
    if not rows.size:
        return program
    matrix, row_lower, row_upper = program.matrix.copy(), program.row_lower.copy(), program.row_upper.copy()
    changed, reach = False, _Reach(program.relaxed)
    for row in rows:
        mine = slice(matrix.indptr[row], matrix.indptr[row + 1])
        columns, sign = matrix.indices[mine], 1.0 if np.isfinite(row_upper[row]) else -1.0
        factors, end = sign * matrix.data[mine], sign * (row_upper[row] if sign > 0 else row_lower[row])
        factors, end, better = rule(factors, end, columns, chosen[columns], reach)
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
        smallest, largest = row_sizes(relaxed.matrix)
        self._solvable = not (largest > LOST * smallest).any()
        self._warm: WarmLP | None = None

    def __call__(self, columns: np.ndarray, factors: np.ndarray) -> tuple[float, float]:
        terms = factors * np.where(factors > 0, self._relaxed.upper[columns], self._relaxed.lower[columns])
        if np.isfinite(terms).all():
            return float(terms.sum()), float(np.abs(terms).max())
        if not self._solvable:
            return np.inf, np.inf
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
    smallest, largest = row_sizes(program.matrix)
    return largest >= TOO_LARGE * smallest


def _towering(program: Program, is_integer: np.ndarray) -> np.ndarray:
    """Whether a row has a whole column whose factor is `WIDE_ROW` times the most that the term of another column can be."""
    matrix, count = program.matrix, program.matrix.shape[0]
    rows, size = np.repeat(np.arange(count), np.diff(matrix.indptr)), np.abs(matrix.data)
    terms = size * np.maximum(np.abs(program.lower), np.abs(program.upper))[matrix.indices]
    largest, smallest = np.zeros(count), np.full(count, np.inf)
    np.maximum.at(largest, rows, np.where(is_integer[matrix.indices], size, 0.0))
    np.minimum.at(smallest, rows, np.where(terms > 0, terms, np.inf))
    return largest >= WIDE_ROW * smallest


def _smaller(factors: np.ndarray, end: float, columns: np.ndarray, switch: np.ndarray, reach: _Reach) -> Row:
    """A row with the same whole solutions, in which each switch alone has a smaller factor."""
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


def _together(
    factors: np.ndarray, end: float, columns: np.ndarray, is_integer: np.ndarray, reach: _Reach, least: float = 2.0
) -> Row:
    """A row with the same whole solutions, in which all large factors of whole columns are smaller together.

    It is left as it is where they would not become smaller by the factor ``least``.

    They are multiples of one factor G, so the row is ``rest + G t <= end`` with a whole number t. If the rest moves by less
    than G, then at most one t leaves it a choice: any smaller t allows all of it, and any larger one nothing.
    """
    size = np.abs(factors)
    large = is_integer & (size * NEARLY >= size.max(initial=0.0))
    rest = ~large & (size > 0)
    if not large.any() or not rest.any():
        return factors, end, False
    unit = float(size[large].min())
    times = np.round(factors[large] / unit)
    (high, _), (low, _) = reach(columns[rest], factors[rest]), reach(columns[rest], -factors[rest])
    low = -low
    new = 2.0 * (high - low)
    if not (times * unit == factors[large]).all() or not 0.0 < new <= unit / least:
        return factors, end, False
    last = np.floor((end - low) / unit)  # the largest t that leaves the rest anything
    left = min(end - unit * last, high)  # what it may be then
    factors = factors.copy()
    factors[large] = new * times
    return factors, float(left + new * last), True
