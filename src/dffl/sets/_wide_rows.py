"""Rows whose coefficients differ by many powers of ten, as in 2e9 x + y <= 2e9: brought to units that HiGHS can see.

HiGHS leaves out coefficients below 1e-9 and allows every row an absolute error of 1e-10. Beside 2e9, a coefficient of 1 may be
lost. So continuous columns of such programs are measured in other units, by powers of two, which is exact. What is still too
far apart is refused, and answers are checked against the rows as the user gave them. Programs without such rows are not
touched.
"""

from __future__ import annotations

import numpy as np

from dffl.sets._program import CONTINUOUS, WIDE_ROW, Program, row_sizes

MOST = 1e10
"""The largest over the smallest coefficient of a row that can be solved: with more, HiGHS's tolerance hides 1e-5 of a term."""
PASSES = 20
BROKEN = 1e-6
"""An answer breaks a row if it is outside by this share of the row's terms."""
NOISE = 1e-9
"""Being outside by this share of the most that a row's smallest term can be is nothing."""


def has_wide_rows(program: Program) -> bool:
    """Whether the coefficients of a row range over `WIDE_ROW` or more."""
    smallest, largest = row_sizes(program.matrix)
    return bool((largest >= WIDE_ROW * smallest).any())


def units_of(program: Program) -> np.ndarray | None:
    """The unit of each column, a power of two, in which no row is too wide; None where all units can stay 1.

    Rows and columns are brought to size 1 in turn, by the middle of their largest and smallest entry (geometric scaling). A
    column's bounds count as one of its entries, so that its values stay of size 1, too.
    """
    if not has_wide_rows(program):
        return None
    matrix, columns = program.matrix.tocoo(), program.lower.size
    nonzero = matrix.data != 0
    row, column, size = matrix.row[nonzero], matrix.col[nonzero], np.log2(np.abs(matrix.data[nonzero]))
    free = program.kind == CONTINUOUS
    reach = np.log2(_reach(program, 1.0))
    exponent = np.zeros(columns)
    for _ in range(PASSES):
        in_rows = _middles(row, size + exponent[column], matrix.shape[0])
        low, high = -reach, -reach.copy()
        np.minimum.at(low, column, size - in_rows[row])
        np.maximum.at(high, column, size - in_rows[row])
        exponent = np.where(free, -(low + high) / 2, 0.0)
    unit = np.exp2(np.round(exponent))
    smallest, largest = row_sizes(program.in_units(unit).matrix)
    if (largest > MOST * smallest).any():
        smallest, largest = row_sizes(program.matrix)
        worst = int(np.argmax(largest / smallest))
        sizes = f"its coefficients range from {smallest[worst]:g} to {largest[worst]:g} in size"
        fix = "measure its variables in other units, or choose a smaller big-M"
        raise ValueError(f"{program.owner}: {program.row_name(worst)} cannot be solved: {sizes}; {fix}")
    return unit


def _middles(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The middle of the smallest and the largest value of each group; 0 for empty ones."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, groups, values)
    np.maximum.at(high, groups, values)
    return np.where(low <= high, low + high, 0.0) / 2


def _reach(program: Program, otherwise: float) -> np.ndarray:
    """The largest bound of each column, in size; ``otherwise`` where none is a number other than 0."""
    ends = np.abs([program.lower, program.upper])
    reach = np.where(np.isfinite(ends), ends, 0.0).max(axis=0)
    return np.where(reach > 0, reach, otherwise)


class RowCheck:
    """The conditions of a program with wide rows, each measured by its own terms and not by the largest of all."""

    def __init__(self, program: Program, extent: float):
        self._program, self._size = program, abs(program.matrix)
        self._reach = _reach(program, extent)
        terms = self._size.tocoo()
        smallest = np.full(self._size.shape[0], np.inf)
        nonzero = terms.data > 0
        np.minimum.at(smallest, terms.row[nonzero], terms.data[nonzero] * self._reach[terms.col[nonzero]])
        self._noise = NOISE * np.where(np.isfinite(smallest), smallest, 0.0)

    def outside(self, v: np.ndarray) -> np.ndarray:
        """How far solutions (n, columns) are outside a row, at most, as a share of its terms at that solution."""
        program, at = self._program, v @ self._program.matrix.T
        terms = np.abs(v) @ self._size.T
        worst = np.full(len(v), -np.inf)
        for end, over in ((program.row_lower, program.row_lower - at), (program.row_upper, at - program.row_upper)):
            size = np.maximum(terms, np.where(np.isfinite(end), np.abs(end), 0.0))
            worst = np.maximum(worst, ((over - self._noise) / np.where(size > 0, size, 1.0)).max(axis=-1, initial=-np.inf))
        return worst

    def broken(self, v: np.ndarray) -> bool:
        """Whether one solution breaks a row."""
        return bool(self.outside(v[None])[0] > BROKEN)

    def excess(self, v: np.ndarray) -> np.ndarray:
        """The largest violation of a condition by each solution (n, columns)."""
        program = self._program
        bounds = np.maximum(program.lower - v, v - program.upper) / self._reach
        bounds = np.where(program.semi & (np.abs(v) <= NOISE * self._reach), -np.inf, bounds)
        fraction = np.abs(v - np.round(v))[:, program.is_integer].max(axis=-1, initial=-np.inf)
        return np.maximum(np.maximum(self.outside(v), bounds.max(axis=-1)), fraction)
