"""A table of results: our cells, each with a reference where there is one. `render` writes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Value(NamedTuple):
    """A mean and its standard deviation over seeds; NaN if there is none."""

    mean: float
    sd: float = math.nan

    @classmethod
    def over_seeds(cls, numbers: npt.ArrayLike) -> Value:
        """The mean and the standard deviation of one number for each seed."""
        values = np.asarray(numbers, float)
        middle = float(values.mean()) if len(values) else math.nan
        return cls(middle, float(values.std(ddof=1)) if len(values) > 1 else math.nan)


class Count(Value):
    """A whole number, shown without decimals."""


class Cell(NamedTuple):
    """One number of a table: ours over seeds, and the paper's if it has one."""

    row: tuple[str, ...]
    column: str
    ours: Value
    paper: Value | None = None


class Table(NamedTuple):
    """A table: its file name, its title, the headings of its row labels, its cells and how to read it."""

    name: str
    title: str
    labels: tuple[str, ...]
    cells: list[Cell]
    note: str
    differences: bool = True
    """Whether a line shows the difference between the paper's numbers and ours; not if they are of different quantities."""


def plain_cells(row: tuple[str, ...], numbers: Mapping[str, float]) -> list[Cell]:
    """One row of numbers without a spread and without a reference, by column."""
    return [Cell(row, column, Value(float(number))) for column, number in numbers.items()]
