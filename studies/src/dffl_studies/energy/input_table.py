"""Tables that users provide: read with the line number of every row, so that a message names the cell that is wrong."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence
from copy import copy
from datetime import date
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dffl.cells import EMPTY, composed, composed_name
from dffl.checks import first_true
from dffl.named import listed
from dffl.tables.sources import UNPRINTABLE, checked_names, is_unnamed, tried

DAY = re.compile(r"(\d{4})([-/])(\d\d?)\2(\d\d?)|(\d{4})(\d\d)(\d\d)")
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$")
"""What may follow a day. Any other time is refused: which day it belongs to would depend on the time zone."""


class InputTable:
    """The rows of a file, each with a key (the name of a zone or a client) and, if asked for, a date.

    ``key`` lists the names that the key column may have; messages use the first. ``date`` is the name of the date column.
    """

    def __init__(self, path: Path, table: pd.DataFrame, lines: np.ndarray, key: Sequence[str], date: str | None = None):
        self.path, self.table, self.lines, self.key, self.date = path, table, lines, key[0], date
        self.require([self.first_of(key) or key[0], *([] if date is None else [date])])
        self.keys = self._keys(str(self.first_of(key)))
        self.dates = np.full(len(table), None, "datetime64[D]") if date is None else self._dates(date)

    @classmethod
    def read(cls, path: Path, key: Sequence[str], date: str | None = None) -> Self:
        """Read a CSV (also compressed) or a Parquet file."""
        return cls(path, *read_table(path, key, date), key, date)

    def __len__(self) -> int:
        return len(self.table)

    def line(self, row: int) -> str:
        """Where a row is in its file."""
        return f"{'row' if is_parquet(self.path) else 'line'} {self.lines[row]}"

    def at(self, row: int) -> str:
        """The beginning of a message about a row: its file, line, key and date."""
        day = "" if np.isnat(self.dates[row]) else f", {self.dates[row]}"
        return f"{self.path}, {self.line(row)}: {self.key} {self.keys[row]}{day}"

    def first_of(self, names: Sequence[str]) -> str | None:
        """The first of these names that is a column."""
        return next((name for name in names if name in self.table), None)

    def require(self, columns: Sequence[str]) -> None:
        """Refuse a table without these columns."""
        for name in columns:
            if name not in self.table:
                raise ValueError(f"{self.path}: must have a column {name!r}, found {listed(self.table.columns, 12)}")

    def numbers(self, column: str) -> np.ndarray:
        """A column of numbers, NaN where a cell is empty."""
        values, wrong = numbers_in(self.table[column])
        if wrong is not None:
            text = str(self.table[column].iloc[wrong])
            fix = "; write decimals with a point" if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text) else ""
            raise ValueError(f"{self.at(wrong)}: {column} must be a finite number, found {text!r}{fix}")
        return values

    def complete(self, column: str, fix: str = "") -> np.ndarray:
        """A column of numbers without empty cells."""
        self.require([column])
        values = self.numbers(column)
        if (row := first_true(np.isnan(values))) is not None:
            raise ValueError(f"{self.at(row)}: {column} is missing; fill it, or leave that row out{fix}")
        return values

    def kept(self, mask: np.ndarray) -> Self:
        """Some of the rows."""
        part = copy(self)
        part.table = self.table.loc[mask].reset_index(drop=True)
        part.lines, part.keys, part.dates = self.lines[mask], self.keys[mask], self.dates[mask]
        return part

    def only(self, columns: Collection[str]) -> Self:
        """The rows with some of the columns: a column that is not used need not stay in memory."""
        part = copy(self)
        part.table = self.table[[name for name in self.table if name in columns]]
        return part

    def without(self, keys: set[str]) -> Self:
        """The rows of all keys except these."""
        present = set(self.keys)
        if unknown := keys - present:
            found = f"names {self.key} {min(unknown)!r}, which is not there; it has {listed(sorted(present))}"
            raise ValueError(f"{self.path}: --without {found}")
        if keys == present:
            raise ValueError(f"{self.path}: --without leaves no {self.key}")
        return self.kept(~pd.Series(self.keys).isin(keys).to_numpy()) if keys else self

    def refuse_repeats(self) -> None:
        """Refuse a second row with the same key and date."""
        if (row := first_true(pd.DataFrame({"key": self.keys, "date": self.dates}).duplicated())) is not None:
            same = (self.keys == self.keys[row]) & ((self.dates == self.dates[row]) | np.isnat(self.dates))
            what = self.key if self.date is None else f"{self.key} and {self.date}"
            raise ValueError(f"{self.at(row)}: a second row for this {what}, after {self.line(int(np.argmax(same)))}; keep one")

    def _keys(self, column: str) -> np.ndarray:
        codes, found = pd.factorize(self.table[column])
        names = np.array([*map(_name, found), ""], object)[codes]  # a cell without a value has the code -1
        if (row := first_true(names == "")) is not None:
            raise ValueError(f"{self.path}, {self.line(row)}: {column} is empty; name the {self.key}, or remove the line")
        wrong = np.array([not str(name).strip().isprintable() for name in found] + [False])[codes]
        if (row := first_true(wrong)) is not None:
            raise ValueError(f"{self.path}, {self.line(row)}: {column} {names[row]!r} {UNPRINTABLE}")
        return names

    def _dates(self, column: str) -> np.ndarray:
        codes, found = pd.factorize(self.table[column])
        days = np.array([*map(_day, found), None], "datetime64[D]")[codes]
        if (row := first_true(np.isnat(days))) is not None:
            text = "nothing" if codes[row] < 0 else repr(str(self.table[column].iloc[row]))
            where = f"{self.path}, {self.line(row)}: {self.key} {self.keys[row]}"
            raise ValueError(f"{where}: {column} must be a day such as 2021-01-31, found {text}")
        return days


def read_table(path: Path, key: Sequence[str] = (), date: str | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """A table, and the line number (in Parquet: the row number) of each of its rows.

    Empty rows and columns without a name are left out. In CSV, cells of ``key`` and ``date`` columns are kept as texts.
    """
    if not path.is_file():
        raise ValueError(f"{path}: {'a folder, not a table' if path.is_dir() else 'there is no such file'}")
    table, first = (_parquet(path), 1) if is_parquet(path) else (_csv(path, key, date), 2)
    filled = table.notna().any(axis=1).to_numpy()
    if not filled.any():
        raise ValueError(f"{path}: must have at least one row below its header, found none")
    lines = np.arange(len(table)) + first
    return (table, lines) if filled.all() else (table.loc[filled].reset_index(drop=True), lines[filled])


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its name; any other is CSV."""
    return path.suffix.lower() == ".parquet"


def read_day(name: str, text: str) -> date:
    """The day in a text such as 2021-01-31; ``name`` is what the caller calls it."""
    day = _day(text)
    if day is None:
        raise ValueError(f"{name} must be a day such as 2021-01-31, found {text!r}")
    return day


def numbers_in(cells: pd.Series) -> tuple[np.ndarray, int | None]:
    """The cells as numbers, NaN where empty, and the position of the first that is neither empty nor a finite number."""
    moments = pd.api.types.is_datetime64_any_dtype(cells) or pd.api.types.is_timedelta64_dtype(cells)
    try:
        found = pd.Series(np.nan, cells.index) if moments else pd.to_numeric(cells, errors="coerce")
    except OverflowError:  # whole numbers of hundreds of digits: as texts they are infinite, and refused
        found = pd.to_numeric(cells.where(cells.isna(), cells.astype(str)), errors="coerce")
    values = found.to_numpy(np.float64, na_value=np.nan)
    return values, first_true(~np.isfinite(values) & cells.notna().to_numpy() & (cells != "").to_numpy(bool, na_value=False))


def shown(value: float) -> str:
    """A number for a message."""
    return "nothing" if np.isnan(value) else f"{value:.10g}"


def _name(value: Any) -> str:
    """A key as a text. Pandas makes fractions of whole numbers where a column has empty cells; they are whole again here."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else composed(str(value)).strip()


def _day(value: Any) -> date | None:
    match = DAY.fullmatch(MIDNIGHT.sub("", str(value).strip()))
    try:
        return match and date(*(int(match[group]) for group in ((1, 3, 4) if match[1] else (5, 6, 7))))
    except ValueError:
        return None


def _parquet(path: Path) -> pd.DataFrame:
    """The whole file; an index that pandas has written becomes ordinary columns."""

    def read() -> pd.DataFrame:
        with pq.ParquetFile(path) as file:
            # One column after another: else a large table is in memory twice, as it is read and as it is used.
            return pd.DataFrame(
                {name: file.read(columns=[name]).column(0).to_pandas(integer_object_nulls=True) for name in names}, copy=False
            )

    schema = tried(path, "Parquet", lambda: pq.read_schema(path))
    names = [name for name in schema.names if not is_unnamed(name)]
    for name in names:
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
            raise ValueError(f"{path}: column {name!r} must hold one number, text or date per row, found {kind}; remove it")
    plain = checked_names(path, [composed_name(name) for name in names])
    return tried(path, "Parquet", read).set_axis(plain, axis=1)


def _csv(path: Path, key: Sequence[str], date: str | None) -> pd.DataFrame:
    """The whole file, with its blank lines."""
    header = _header(path)
    named = checked_names(path, [name for name in header if not is_unnamed(name)])
    names = [f"\0{place}" if is_unnamed(name) else name for place, name in enumerate(header)]  # pandas needs a name for each

    def read() -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path, header=0, names=names, index_col=False, skip_blank_lines=False, low_memory=False, encoding="utf-8-sig",
                dtype={name: str for name in (*key, date) if name in names},  # a key 007 stays 007
                na_values={name: EMPTY[:1] if name in key else EMPTY for name in names}, keep_default_na=False,
            )  # fmt: skip

    table = tried(path, "CSV", read)
    _refuse_line_breaks(path, table)
    return table if len(named) == len(names) else table.loc[:, named]


def _refuse_line_breaks(path: Path, table: pd.DataFrame) -> None:
    """Refuse a cell that goes over several lines: two stray quotes would swallow the rows between them."""
    for name in [name for name, kind in table.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]:
        codes, cells = pd.factorize(table[name])  # keys and dates repeat: each text is looked at once
        broken = np.array([isinstance(cell, str) and ("\n" in cell or "\r" in cell) for cell in cells] + [False])
        if (row := first_true(broken[codes])) is not None:
            fix = f"remove the line break, or the stray quotes around {str(table[name].iloc[row])[:30]!r}"
            raise ValueError(f"{path}, line {row + 2}: a cell of column {name!r} goes over several lines; {fix}")


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV."""
    options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False, "skip_blank_lines": False}
    line = tried(path, "CSV", lambda: pd.read_csv(path, encoding="utf-8-sig", **options))
    names = [composed_name(name) for name in line.iloc[0]]
    for sign, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and sign in names[0]:
            raise ValueError(f"{path}: has {word} between its columns; save it with commas there, and with points in decimals")
    return names
