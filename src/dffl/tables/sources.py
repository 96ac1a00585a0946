"""The sources of a table's rows: CSV, Parquet, a query to a database, or a data frame. Each knows the place of a row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from tarfile import TarError
from typing import Protocol, TypeVar
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import pandas as pd
import pyarrow as pa

from dffl.cells import composed, missing_in, text_of
from dffl.files import special
from dffl.named import listed, nearest

T = TypeVar("T")
UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    ImportError,
    ZlibError,
    LZMAError,
    BadZipFile,
    TarError,
    pa.ArrowException,
)
UNPRINTABLE = "has a character that cannot be printed; rename it"
"""Such characters begin the commands of a terminal, so messages must not print them."""
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
    """A table that is not read yet: its columns are known, and its rows are read when they are needed."""

    name: str
    """Its name in messages: the path of its file."""
    columns: list[str]

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        """All rows with these columns. Cells of ``texts`` are kept as they are written: 007 stays 007, NA stays NA."""
        ...

    def place(self, row: int) -> str:
        """The place of a row of `load`, such as ``line 5``."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a source, each with its place in the source."""

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
        """The rows with some of the columns. Unused columns are not copied."""
        return Table(self.source, self.frame[list(columns)], self.rows)

    def cell(self, row: int, column: str) -> str:
        """A cell as in its file, for a message."""
        return text_of(self.source.load([column], [column])[column].iloc[int(self.rows[row])])

    def as_written(self, column: str) -> Table:
        """A cell as in its file, from a column that is read again as texts: pandas may have made 7 of 007."""
        if pd.api.types.is_string_dtype(self.frame[column].dtype):
            return self
        cells = self.source.load([column], [column])[column].iloc[self.rows].reset_index(drop=True)
        return Table(self.source, self.frame.assign(**{column: cells}), self.rows)


def open_source(path: Path) -> Source:
    """A CSV (also compressed) or a Parquet file."""
    from dffl.tables.binary_sources import ParquetSource
    from dffl.tables.csv_source import CsvSource

    require_file(path)
    if path.suffix.lower() in NOT_TABLES:
        raise ValueError(f"{path}: must be CSV or Parquet, found {path.suffix!r}; save the table as CSV in UTF-8")
    return ParquetSource(path) if path.suffix.lower() in (".parquet", ".pq") else CsvSource(path)


def require_file(path: Path) -> None:
    """Refuse a path that is not a file. The message names the most similar file of its folder."""
    try:
        if path.is_file():
            return
        folder, other = path.is_dir(), special(path)
        beside = [neighbour.name for neighbour in path.parent.iterdir()] if path.parent.is_dir() else []
    except (OSError, ValueError):  # such a file name is not possible
        folder, other, beside = False, None, []
    if other:
        raise ValueError(f"{path}: {other}, not a regular file")
    raise ValueError(
        f"{path}: a folder, not a file" if folder else f"{path}: there is no such file{nearest(path.name, beside)}"
    )


def load(source: Source, columns: Sequence[str], texts: Collection[str] = ()) -> Table:
    """The rows of a source with these columns. Rows that are empty in all columns of the source are left out."""
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
    """Which of these rows are empty, also in the columns that are not needed: a row with a name is not empty."""
    others = [name for name in source.columns if name not in frame]
    try:
        frames = [frame, source.load(others)] if others else [frame]
    except ValueError:  # a column of an unreadable kind: then no row is left out
        return np.zeros(len(frame), bool)
    for part in frames:
        for name in part:
            maybe &= missing_in(part[name])
    return maybe


def require_columns(source: Source, columns: Sequence[str], others: Sequence[str] = ()) -> None:
    """Refuse a source without these columns; the message names all of them and similar columns that exist.

    A column of ``others`` has another use and is not suggested: `dnn_9` does not mean `price_9`. A name with another number
    is not suggested either.
    """
    known = set(source.columns)
    lacking = [name for name in columns if name not in known]
    if lacking:
        free = known.difference(columns, others)
        maybe = [name for name in source.columns if name in free and _numbers(name) == _numbers(lacking[0])]
        hint = nearest(lacking[0], maybe) if len(lacking) == 1 else ""
        some = f"column {lacking[0]!r}" if len(lacking) == 1 else f"columns {listed(map(repr, lacking), 8)}"
        raise ValueError(f"{source.name}: lacks the {some}{hint}; it has {listed(source.columns, 12)}")


def _numbers(name: str) -> list[int]:
    """The numbers in a name."""
    return [int(digits) for digits in re.findall(r"[0-9]+", name)]


class FrameSource:
    """A data frame of a user."""

    def __init__(self, frame: pd.DataFrame, name: str = "the data frame"):
        self.name = name
        self.frame = frame.set_axis([composed(str(column)) for column in frame.columns], axis=1)
        self.columns = list(self.frame.columns)

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        return self.frame[list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        return f"row {row}"


def is_unnamed(column: str) -> bool:
    """Whether a column has no name, such as the row numbers that pandas writes."""
    return not column.strip() or column.startswith("__index_level_")


def checked_names(path: Path, names: list[str]) -> list[str]:
    """The names of the columns; they must differ and be printable."""
    for name, count in Counter(names).items():
        if not name.isprintable():
            raise ValueError(f"{path}: the column {name!r} {UNPRINTABLE}")
        if count > 1:
            raise ValueError(f"{path}: two columns are named {name!r}; rename one")
    return names


def tried(path: Path, kind: str, read: Callable[[], T]) -> T:
    """The result of ``read``, or one line on why it failed."""
    fix = "write decimals with a point, texts with commas in quotes, and the names of all columns in the first line"
    try:
        return read()
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path}: its first line must name the columns, found nothing there") from None
    except pd.errors.ParserWarning:
        raise ValueError(f"{path}, line 2: has more cells than the header; {fix}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: cannot be read as {kind}, as it is not text in UTF-8; save it as CSV in UTF-8") from None
    except UNREADABLE as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if cells := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason):
            problem = f"has {cells[3]} cells, where {cells[1]} were expected"
            raise ValueError(f"{path}, line {cells[2]}: {problem}; {fix}") from None
        raise ValueError(f"{path}: cannot be read as {kind} ({reason})") from None
