"""Where the rows of a table come from: CSV, Parquet, a query to a database, or a data frame. Each knows where a row stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from dffl.data.cells import missing_in, text_of
from dffl.data.coding import composed
from dffl.data.tables import listed
from dffl.files import special
from dffl.named import nearest

NOT_TABLES = (
    ".xlsx",
    ".xls",
    ".xlsm",
    ".ods",
    ".json",
    ".feather",
    ".arrow",
    ".h5",
    ".pkl",
    ".pickle",
    ".db",
    ".sqlite",
    ".duckdb",
)


class Source(Protocol):
    """A table that is not read yet: its columns are known, its rows come when they are asked for."""

    name: str
    """What messages call it: the path of its file."""
    columns: list[str]

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        """All rows with these columns. Cells of ``texts`` are kept as they are written: 007 stays 007, NA stays NA."""
        ...

    def place(self, row: int) -> str:
        """Where a row of `load` stands, such as ``line 5``."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a source, each with its place there."""

    source: Source
    frame: pd.DataFrame
    rows: np.ndarray
    """The numbers of the rows in the source, from 0."""

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, row: int, column: str | None = None) -> str:
        """The beginning of a message about a row or a cell: file, line and column."""
        where = f"{self.source.name}, {self.source.place(int(self.rows[row]))}"
        return where if column is None else f"{where}, column {column!r}"

    def take(self, index: np.ndarray | slice) -> Table:
        """Some of the rows, by their positions."""
        return Table(self.source, self.frame.iloc[index].reset_index(drop=True), self.rows[index])

    def only(self, columns: Sequence[str]) -> Table:
        """The rows with some of the columns: what is not used need not be copied."""
        return Table(self.source, self.frame[list(columns)], self.rows)

    def cell(self, row: int, column: str) -> str:
        """A cell as it is written in its file, for a message."""
        return text_of(self.source.load([column], [column])[column].iloc[int(self.rows[row])])

    def as_written(self, column: str) -> Table:
        """The same with a column as texts: pandas may have made 7 of 007."""
        if pd.api.types.is_string_dtype(self.frame[column].dtype):
            return self
        cells = self.source.load([column], [column])[column].iloc[self.rows].reset_index(drop=True)
        return Table(self.source, self.frame.assign(**{column: cells}), self.rows)


def open_source(path: Path) -> Source:
    """A CSV (also compressed) or a Parquet file."""
    from dffl.data.csv_source import CsvSource
    from dffl.data.parquet_source import ParquetSource

    require_file(path)
    if path.suffix.lower() in NOT_TABLES:
        raise ValueError(f"{path}: must be CSV or Parquet, found {path.suffix!r}; save the table as CSV in UTF-8")
    return ParquetSource(path) if path.suffix.lower() in (".parquet", ".pq") else CsvSource(path)


def require_file(path: Path) -> None:
    """Refuse what is no file, and name one beside it that was probably meant."""
    try:
        if path.is_file():
            return
        folder, other = path.is_dir(), special(path)
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    except (OSError, ValueError):  # a name that no file can have
        folder, other, beside = False, None, []
    if other:
        raise ValueError(f"{path}: {other}, not a regular file")
    raise ValueError(
        f"{path}: a folder, not a file" if folder else f"{path}: there is no such file{nearest(path.name, beside)}"
    )


def load(source: Source, columns: Sequence[str], texts: Collection[str] = ()) -> Table:
    """The rows of a source with these columns; rows that are empty in all columns of the source are left out."""
    require_columns(source, columns)
    columns = list(dict.fromkeys(columns))
    frame = source.load(columns, texts)
    if not len(frame):
        raise ValueError(f"{source.name}: must have at least one row below its header, found none")
    blank = np.ones(len(frame), bool)
    for name in columns:
        blank &= np.asarray(frame[name].isna(), bool)
        if not blank.any():
            return Table(source, frame, np.arange(len(frame)))
    rows = np.flatnonzero(~_blank(source, frame, blank))
    if not len(rows):
        raise ValueError(f"{source.name}: must have at least one row below its header, found only empty ones")
    return Table(source, frame.iloc[rows].reset_index(drop=True), rows)


def _blank(source: Source, frame: pd.DataFrame, maybe: np.ndarray) -> np.ndarray:
    """Which of these rows are empty, also in the columns that are not needed: a row with a name is no empty row."""
    others = [name for name in source.columns if name not in frame]
    try:
        whole = [frame, source.load(others)] if others else [frame]
    except ValueError:  # a column of a kind that cannot be read: then nothing is left out
        return np.zeros(len(frame), bool)
    for part in whole:
        for name in part:
            maybe &= missing_in(part[name])
    return maybe


def require_columns(source: Source, columns: Sequence[str]) -> None:
    """Refuse a source without these columns; all that it lacks are named at once."""
    known = set(source.columns)
    lacking = [name for name in columns if name not in known]
    if lacking:
        hint = nearest(lacking[0], source.columns) if len(lacking) == 1 else ""
        some = f"column {lacking[0]!r}" if len(lacking) == 1 else f"columns {listed(map(repr, lacking), 8)}"
        raise ValueError(f"{source.name}: lacks the {some}{hint}; it has {listed(source.columns, 12)}")


class FrameSource:
    """A data frame that a user hands in."""

    def __init__(self, frame: pd.DataFrame, name: str = "the data frame"):
        self.name = name
        self.frame = frame.set_axis([composed(str(column)) for column in frame.columns], axis=1)
        self.columns = list(self.frame.columns)

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        return self.frame[list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        return f"row {row}"
