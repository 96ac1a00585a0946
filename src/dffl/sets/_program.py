"""Linear and mixed-integer programs with predicted and known costs: what they are, as arrays.

Some columns are predicted: their costs come from a prediction. The others are helpers. Every column may have a known cost
besides; what all known costs add up to at a solution is the known part of the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    import highspy
else:
    from dffl.sets._highspy import highspy

CONTINUOUS, INTEGER, SEMI_CONTINUOUS, SEMI_INTEGER = range(4)
"""Kinds of columns, as HiGHS numbers them. A semi-continuous or semi-integer one may also be zero."""
WIDE_ROW = 1e6
"""A row is wide if its largest coefficient is this many times its smallest one: see `_wide_rows`."""


def row_sizes(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """The smallest coefficient of each row that is not zero, in size, and the largest one; infinite and 0 where all are."""
    smallest, largest = np.full(matrix.shape[0], np.inf), np.zeros(matrix.shape[0])
    rows, size = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), np.abs(matrix.data)
    np.maximum.at(largest, rows, size)
    np.minimum.at(smallest, rows, np.where(size > 0, size, np.inf))
    return smallest, largest


@dataclass(frozen=True, eq=False)
class Program:
    """{v : row_lower <= A v <= row_upper, lower <= v <= upper, some entries whole}, and the known part of the objective."""

    owner: str
    """How messages name it."""
    matrix: Any
    """A, as a SciPy matrix of sparse rows."""
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: np.ndarray
    predicted: np.ndarray
    """The columns whose costs are predicted, in the order of the costs."""
    known: np.ndarray
    """The known cost of each column."""
    offset: float = 0.0
    """A constant of the objective."""
    maximize: bool | None = None
    """Whether the known costs are meant to be maximised; None where that is as the client says."""
    columns: tuple[str, ...] | None = None
    rows: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # Whole numbers have whole bounds. HiGHS relies on it: with others it may answer numbers outside or not the best.
        is_integer, near = self.is_integer, 1e-9
        object.__setattr__(self, "lower", np.where(is_integer, np.ceil(self.lower - near), self.lower))
        object.__setattr__(self, "upper", np.where(is_integer, np.floor(self.upper + near), self.upper))

    @cached_property
    def helpers(self) -> np.ndarray:
        """The columns without a predicted cost, in order."""
        return np.setdiff1d(np.arange(self.lower.size), self.predicted)

    @cached_property
    def shown(self) -> np.ndarray:
        """The columns as decisions show them: those with predicted costs first, then the helpers."""
        return np.concatenate([self.predicted, self.helpers])

    @property
    def is_integer(self) -> np.ndarray:
        """Whether each column must be a whole number."""
        return np.isin(self.kind, (INTEGER, SEMI_INTEGER))

    @property
    def semi(self) -> np.ndarray:
        """Whether each column may be zero besides its own interval."""
        return self.kind >= SEMI_CONTINUOUS

    @property
    def integer(self) -> bool:
        """Whether the program is more than a linear one."""
        return bool((self.kind != CONTINUOUS).any())

    @property
    def relaxed(self) -> Program:
        """The linear program without these conditions."""
        low, high = (
            np.where(self.semi, np.minimum(self.lower, 0), self.lower),
            np.where(self.semi, np.maximum(self.upper, 0), self.upper),
        )
        return replace(self, lower=low, upper=high, kind=np.full(self.kind.size, CONTINUOUS))

    @property
    def free(self) -> np.ndarray:
        """The columns that can have more than one value: a semi-continuous one is also 0, whatever its bounds."""
        relaxed = self.relaxed
        return relaxed.lower < relaxed.upper

    @property
    def has_known(self) -> bool:
        """Whether the objective has a known part."""
        return bool(self.known.any()) or self.offset != 0.0

    def in_units(self, unit: np.ndarray) -> Program:
        """The same program with each column measured in its unit, a power of two; 1 for columns that are not continuous."""
        matrix = sparse.csr_matrix(self.matrix @ sparse.diags(unit))
        return replace(self, matrix=matrix, lower=self.lower / unit, upper=self.upper / unit, known=self.known * unit)

    def name(self, column: int) -> str:
        """How messages name a column."""
        return f"column {column}" if self.columns is None else f"variable {self.columns[column]!r}"

    def row_name(self, row: int) -> str:
        """How messages name a row."""
        return f"row {row}" if self.rows is None else f"row {self.rows[row]!r}"

    def costs(self, predicted: np.ndarray, weight: np.ndarray | float) -> np.ndarray:
        """The cost of every column (n, columns), from predicted costs (n, d) and the weight (n,) of the known ones."""
        full: np.ndarray = np.asarray(weight)[..., None] * self.known + np.zeros((len(predicted), 1))
        full[:, self.predicted] += predicted
        return full

    def known_part(self, v: np.ndarray) -> np.ndarray:
        """The known part of the objective at solutions (n, columns)."""
        return v @ self.known + self.offset

    @cached_property
    def scaled_rows(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """The rows brought to size 1 by powers of two, which is exact; of wide ones, the middle of their coefficients is."""
        smallest, size = row_sizes(self.matrix)
        size = np.where(size >= WIDE_ROW * smallest, np.sqrt(size) * np.sqrt(np.minimum(smallest, size)), size)
        unit = np.exp2(-np.frexp(size)[1])
        return sparse.csr_matrix(sparse.diags(unit) @ self.matrix), unit * self.row_lower, unit * self.row_upper

    @cached_property
    def scaled_columns(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """The same by columns."""
        matrix, low, high = self.scaled_rows
        return sparse.csc_matrix(matrix), low, high

    def highs(self) -> highspy.HighsLp:
        """The program for HiGHS, without costs."""
        matrix, low, high = self.scaled_rows
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.col_cost_ = np.zeros(matrix.shape[1])
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        if self.integer:
            lp.integrality_ = [highspy.HighsVarType(int(kind)) for kind in self.kind]
        lp.row_lower_, lp.row_upper_ = low, high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        return lp

    def excess(self, v: np.ndarray, extent: float) -> np.ndarray:
        """The largest violation of a condition by each solution (n, columns), relative to the size of the condition."""
        worst = np.full(len(v), -np.inf)
        rows, size = v @ self.matrix.T, np.asarray(np.abs(self.matrix).sum(axis=1)).ravel() * extent
        size = np.where(size > 0, size, 1.0)
        for slack in ((self.row_lower - rows) / size, (rows - self.row_upper) / size):
            worst = np.maximum(worst, slack.max(axis=-1, initial=-np.inf))
        # In units of the largest bound that is a number; zero is always allowed where a column is semi-continuous.
        bounds = np.where(
            self.semi & (np.abs(v) <= 1e-9 * extent), -np.inf, np.maximum(self.lower - v, v - self.upper) / extent
        )
        worst = np.maximum(worst, bounds.max(axis=-1))
        fraction = np.abs(v - np.round(v))[:, self.is_integer]
        return np.maximum(worst, fraction.max(axis=-1, initial=-np.inf))
