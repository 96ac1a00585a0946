"""Tables that are not text: Parquet files, and the rows of a query to an SQLite or DuckDB file. Nothing is ever written."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dffl.cells import composed_name
from dffl.tables.sources import checked_names, is_unnamed, require_file, tried


def require_plain(path: Path, name: str, kind: Any) -> None:
    """Refuse a column whose cells are lists, bytes or spans of time."""
    odd = (
        pa.types.is_nested,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_interval,
    )
    if any(is_one(kind) for is_one in odd):
        raise ValueError(f"{path}: column {name!r} must hold one number, text or date per row, found {kind}")


def cells_of(column: Any, as_text: bool = False) -> pd.Series:
    """The cells of a column. As texts, whole numbers and truth values are written with all their digits."""
    kind = column.type
    if as_text and pa.types.is_decimal(kind):  # such as long customer numbers: all their digits count
        with suppress(pa.ArrowInvalid):  # it holds fractions, for which floats are exact enough
            column = column.cast(pa.decimal256(76, 0)).cast(pa.string())
    elif as_text and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        column = column.cast(pa.string())
    return prepared(column).to_pandas()


def prepared(column: Any) -> Any:
    """A column as numbers, moments or texts, in types of pandas. Blanks around texts are removed."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    if pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_time(kind):
        return column.cast(pa.string())
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column.cast(pa.timestamp("s")) if pa.types.is_date(kind) else column


class ParquetSource:
    """A Parquet file. Messages count its rows from 1."""

    def __init__(self, path: Path):
        self.path, self.name = path, str(path)
        schema = tried(path, "Parquet", lambda: pq.read_schema(path))
        raw = [name for name in schema.names if not is_unnamed(name)]
        self.columns = checked_names(path, [composed_name(name) for name in raw])
        self._raw = dict(zip(self.columns, raw, strict=True))
        self._types = {name: schema.field(stored_name).type for name, stored_name in self._raw.items()}

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        for name in columns:
            require_plain(self.path, name, self._types[name])
        return tried(self.path, "Parquet", lambda: self._load(columns, texts))

    def _load(self, columns: Sequence[str], texts: Collection[str]) -> pd.DataFrame:
        loaded = {}
        with pq.ParquetFile(self.path) as file:
            for name in columns:  # column by column; otherwise a large table would be in memory twice
                loaded[name] = cells_of(file.read(columns=[self._raw[name]]).column(0), name in texts)
        return pd.DataFrame(loaded, copy=False)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


class DuckdbSource:
    """The rows of a query, in the order in which the database gives them; messages count them from 1."""

    def __init__(self, path: Path, query: str):
        require_file(path)
        self.path, self.query, self.name = path, query, f"{path} (query)"
        self._table = _duckdb_answer(path, query)
        self.columns = checked_names(path, [composed_name(name) for name in self._table.column_names])

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        loaded = {}
        for name in columns:
            column = self._table.column(self.columns.index(name))
            require_plain(self.path, name, column.type)
            if pa.types.is_timestamp(column.type) and column.type.tz is not None:
                # DuckDB shows such moments in the time zone of this machine: two sites would read different hours.
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            loaded[name] = cells_of(column, name in texts)
        return pd.DataFrame(loaded, copy=False)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


QUERY_SECONDS = 300.0
MOST_CELLS = 20_000_000
"""The limit for the answer to a query. The file may come from someone else, and a recursive query may never end."""
MOST_TEXT = 10_000_000
"""Bytes of one cell of SQLite."""
TEXT = 64
"""A text counts as one more cell for each number of characters of this size."""
QUERY_TOO_LONG = f"takes more than {QUERY_SECONDS:g} seconds; simplify it, or write its answer to a Parquet file"


def _too_many(path: Path) -> str:
    return f"{path}: the query gives more than {MOST_CELLS:,} cells; select less, or write its answer to a Parquet file"


def _duckdb_answer(path: Path, query: str) -> Any:
    """The whole answer to one SELECT, as a table of Arrow."""
    try:
        import duckdb
    except ImportError:
        raise ValueError(f"{path}: reading DuckDB needs its package: pip install 'dffl[duckdb]'") from None
    try:
        # No access to other files: a description may come from someone else.
        # It also must not write to disk what does not fit in memory.
        config = {"enable_external_access": "false", "memory_limit": "50%", "temp_directory": ""}
        with duckdb.connect(str(path), read_only=True, config=config) as base:
            if [statement.type for statement in base.extract_statements(query)] != [duckdb.StatementType.SELECT]:
                raise ValueError(f"{path}: query must be one SELECT, found {query!r:.80}")
            late = Timer(QUERY_SECONDS, base.interrupt)
            late.start()
            try:
                return _bounded(path, base.sql(query).to_arrow_reader(10_000))
            finally:
                late.cancel()
    except (duckdb.InterruptException, OSError) as error:  # while rows are fetched, DuckDB raises errors of Arrow
        if "Interrupted" not in str(error):
            raise
        raise ValueError(f"{path}: the query {QUERY_TOO_LONG}: {query!r:.80}") from None
    except (duckdb.Error, pa.ArrowException, UnicodeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"{path}: the query fails ({reason}): {query!r:.80}") from None


def _bounded(path: Path, batches: Any) -> Any:
    """All rows of an answer, as a table of Arrow. An answer with too many rows is refused."""
    read, cells = [], 0
    for batch in batches:
        cells += max(batch.num_rows * batch.num_columns, batch.nbytes // TEXT)
        if cells > MOST_CELLS:
            raise ValueError(_too_many(path))
        read.append(batch)
    return pa.Table.from_batches(read, batches.schema)


READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33)  # 33 is SQLITE_RECURSIVE
MAGIC = b"SQLite format 3\0"


class SqliteSource:
    """The rows of a query, in the order in which the database gives them; messages count them from 1."""

    def __init__(self, path: Path, query: str):
        require_file(path)
        self.path, self.query, self.name = path, query, f"{path} (query)"
        self._frame = _sqlite_answer(path, query)
        self.columns = checked_names(path, [composed_name(name) for name in self._frame.columns])
        self._frame.columns = self.columns

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        return self._frame[list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def _sqlite_answer(path: Path, query: str) -> pd.DataFrame:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path}: is not an SQLite database")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            base.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_TEXT)
            last = time.monotonic() + QUERY_SECONDS
            base.set_progress_handler(lambda: time.monotonic() > last, 100_000)  # after this number of steps
            cursor = base.execute(query)
            if cursor.description is None:
                raise ValueError(f"{path}: query must be a SELECT, found {query!r:.80}")
            names = [column[0] for column in cursor.description]
            rows: list[Any] = []
            cells = 0
            for row in cursor:
                rows.append(row)
                cells += len(row) + sum(len(cell) // TEXT for cell in row if isinstance(cell, str | bytes))
                if cells > MOST_CELLS:
                    raise ValueError(_too_many(path))
    except sqlite3.OperationalError as error:
        reason = QUERY_TOO_LONG if str(error) == "interrupted" else f"fails ({error})"
        raise ValueError(f"{path}: the query {reason}: {query!r:.80}") from None
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
        raise ValueError(f"{path}: the query fails ({error}): {query!r:.80}") from None
    frame = pd.DataFrame({place: [row[place] for row in rows] for place in range(len(names))})
    return frame.set_axis(names, axis=1)
