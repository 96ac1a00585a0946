"""A model as its file is read, line by line: what readers of texts fill, with the checks that all formats need."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
from scipy import sparse

from dffl.sets._program import CONTINUOUS, INTEGER, SEMI_CONTINUOUS, SEMI_INTEGER

INFINITE = 1e20
"""A bound of this size is none, as in HiGHS."""
SMALLEST, LARGEST = 1e-9, 1e15
"""Coefficients of rows that HiGHS takes: smaller ones it would leave out, larger ones it refuses."""
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
MOST_DIGITS = 400
"""The longest word that is read as a number: any number has a shorter form."""
LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line; a form feed or a separator of Unicode does not, so that a comment goes to the end of its line."""
ENDLESS = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)


class ReadModel(NamedTuple):
    """A model as the file has it: minimised, or maximised."""

    matrix: sparse.csr_matrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kind: np.ndarray
    cost: np.ndarray
    offset: float
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    maximize: bool


class Refused(ValueError):
    """A line of a model that cannot be used."""


class DraftColumn:
    """A variable: its bounds as far as the file has given them, and its kind."""

    def __init__(self) -> None:
        self.lower: float | None = None
        self.upper: float | None = None
        self.is_integer = self.semi = False
        self.usual_upper = math.inf
        self.line = 0
        """Where its last bound is."""

    @property
    def ends(self) -> tuple[float, float]:
        """Its bounds."""
        return 0.0 if self.lower is None else self.lower, self.usual_upper if self.upper is None else self.upper

    @property
    def kind(self) -> int:
        """Its kind, as a program numbers them."""
        if self.semi:
            return SEMI_INTEGER if self.is_integer else SEMI_CONTINUOUS
        return INTEGER if self.is_integer else CONTINUOUS


def _is_number(word: str) -> bool:
    return len(word) <= MOST_DIGITS and NUMBER.fullmatch(word) is not None


class Draft:
    """The parts of a model that have been read. ``line`` is the number of the line that is being read."""

    def __init__(self, name: str):
        self.name, self.line = name, 0
        self.columns: dict[str, DraftColumn] = {}
        self.rows: dict[str, list[float]] = {}
        """The two ends of each row."""
        self.entries: dict[tuple[str, str], float] = {}
        """Coefficients by column and row."""
        self.cost: dict[str, float] = {}
        self.offset = 0.0
        self.maximize = False

    def refused(self, words: str) -> Refused:
        """What is raised for the line that is being read."""
        return Refused(f"{self.name}, line {self.line}: {words}")

    def not_linear(self, what: str) -> ValueError:
        """What is raised for a line that is understood, of a model that is not linear."""
        return ValueError(f"{self.name}, line {self.line}: it has {what}; only linear models, with whole numbers, can be used")

    def number(self, word: str, what: str) -> float:
        """A number that is finite."""
        if not _is_number(word):
            fix = "; write decimals with a point" if "," in word else ""
            raise self.refused(f"{what} must be a number, found {word!r:.40}{fix}")
        value = float(word)
        if abs(value) >= INFINITE:
            raise self.refused(f"{what} must be below {INFINITE:g}, found {word!r:.40}")
        return value

    def bound(self, word: str, what: str) -> float:
        """A number that may be infinite."""
        endless = ENDLESS.fullmatch(word)
        if endless:
            return -math.inf if endless[1] == "-" else math.inf
        if _is_number(word) and abs(float(word)) >= INFINITE:
            return math.copysign(math.inf, float(word))
        return self.number(word, what)

    def add_entry(self, column: str, row: str, value: float) -> None:
        """A coefficient of a row."""
        if value != 0 and not SMALLEST < abs(value) < LARGEST:
            allowed = f"0 or between {SMALLEST:g} and {LARGEST:g}"
            raise self.refused(f"the coefficient of {column!r} in row {row!r} must be {allowed} in size, found {value:g}")
        self.entries[column, row] = value

    def known_column(self, name: str) -> DraftColumn:
        """A variable that the objective or a row has."""
        if name not in self.columns:
            raise self.refused(f"{name!r:.60} is not a variable of the objective or of a row")
        return self.columns[name]

    def set_ends(self, name: str, lower: float | None = None, upper: float | None = None) -> None:
        """Bounds of a variable; one that was given before must be the same."""
        column = self.known_column(name)
        column.line = self.line
        if lower == math.inf or upper == -math.inf:
            raise self.refused(f"variable {name!r} must have a lower bound below inf and an upper one above -inf")
        for side, value in (("lower", lower), ("upper", upper)):
            before = getattr(column, side)
            if value is not None and before not in (None, value) and math.isfinite(before):
                raise self.refused(f"variable {name!r} has two {side} bounds, {before:g} and {value:g}")
            if value is not None:
                setattr(column, side, value)

    def finished(self) -> ReadModel:
        """The model, checked as a whole."""
        if not self.columns:
            raise ValueError(f"{self.name}: it has no variables")
        for name in (*self.columns, *self.rows):
            if not name.isprintable():  # it reaches a terminal with decisions and messages
                raise ValueError(f"{self.name}: the name {name!r:.60} has a character that cannot be printed; rename it")
        for name, column in self.columns.items():
            low, high = column.ends
            if low > high:
                self.line = column.line
                raise self.refused(f"variable {name!r} has the bounds {low:g} and {high:g}; mend one of them")
        column_number = {name: number for number, name in enumerate(self.columns)}
        row_number = {name: number for number, name in enumerate(self.rows)}
        nonzero = [(column_number[c], row_number[r], value) for (c, r), value in self.entries.items() if value != 0]
        parts = np.array(nonzero, dtype=float).reshape(-1, 3)
        places = parts[:, 1].astype(int), parts[:, 0].astype(int)
        matrix = sparse.csr_matrix((parts[:, 2], places), shape=(len(self.rows), len(self.columns)))
        matrix.sort_indices()
        ends = np.array(list(self.rows.values()), dtype=float).reshape(-1, 2)
        bounds = np.array([column.ends for column in self.columns.values()], dtype=float)
        return ReadModel(
            matrix=matrix,
            row_lower=ends[:, 0].copy(),
            row_upper=ends[:, 1].copy(),
            lower=bounds[:, 0].copy(),
            upper=bounds[:, 1].copy(),
            kind=np.array([column.kind for column in self.columns.values()]),
            cost=np.array([self.cost.get(name, 0.0) for name in self.columns]),
            offset=self.offset,
            columns=tuple(self.columns),
            rows=tuple(self.rows),
            maximize=self.maximize,
        )
