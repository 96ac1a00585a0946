"""A market's tables: rows with a zone and a day each, read by `dffl.tables`, so that a message names the cell that is wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from copy import copy
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from dffl.cells import composed
from dffl.checks import first_true
from dffl.named import listed
from dffl.tables.sources import UNPRINTABLE, FrameSource, Table, load, open_source

DAY = re.compile(r"(\d{4})([-/])(\d\d?)\2(\d\d?)|(\d{4})(\d\d)(\d\d)")
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$")
"""What may follow a day. Any other time is refused: which day it belongs to would depend on the time zone."""


class InputTable:
    """The rows of a table, each with a key (the name of a zone or a client) and, if asked for, a date.

    ``key`` lists the names that the key column may have; messages use the first. ``date`` is the name of the date column.
    """

    def __init__(self, table: Table, key: Sequence[str], date: str | None = None):
        self.path, self.table, self.places, self.key, self.date = Path(table.source.name), table.frame, table.rows, key[0], date
        self._place = table.source.place
        self.require([self.first_of(key) or key[0], *([] if date is None else [date])])
        self.keys = self._keys(str(self.first_of(key)))
        self.dates = np.full(len(table), None, "datetime64[D]") if date is None else self._dates(date)

    @classmethod
    def read(cls, path: Path, key: Sequence[str], date: str | None = None) -> Self:
        """Read a CSV (also compressed) or a Parquet file."""
        return cls(read_table(path, key, date), key, date)

    @classmethod
    def made(cls, path: Path, frame: pd.DataFrame, places: np.ndarray, key: Sequence[str], date: str | None = None) -> Self:
        """Rows that were made of a file of another layout, each with its line there."""
        return cls(Table(Lines(frame, str(path)), frame, np.asarray(places)), key, date)

    def __len__(self) -> int:
        return len(self.table)

    def line(self, row: int) -> str:
        """Where a row is in its file."""
        return self._place(int(self.places[row]))

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
        part.places, part.keys, part.dates = self.places[mask], self.keys[mask], self.dates[mask]
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
            problem = f"names {self.key} {min(unknown)!r}, which is not there; it has {listed(sorted(present))}"
            raise ValueError(f"{self.path}: --without {problem}")
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
        codes, unique = pd.factorize(self.table[column])
        names = np.array([*map(_name, unique), ""], object)[codes]  # a cell without a value has the code -1
        if (row := first_true(names == "")) is not None:
            raise ValueError(f"{self.path}, {self.line(row)}: {column} is empty; name the {self.key}, or remove the line")
        wrong = np.array([not str(name).strip().isprintable() for name in unique] + [False])[codes]
        if (row := first_true(wrong)) is not None:
            raise ValueError(f"{self.path}, {self.line(row)}: {column} {names[row]!r} {UNPRINTABLE}")
        return names

    def _dates(self, column: str) -> np.ndarray:
        codes, unique = pd.factorize(self.table[column])
        days = np.array([*map(_day, unique), None], "datetime64[D]")[codes]
        if (row := first_true(np.isnat(days))) is not None:
            text = "nothing" if codes[row] < 0 else repr(str(self.table[column].iloc[row]))
            where = f"{self.path}, {self.line(row)}: {self.key} {self.keys[row]}"
            raise ValueError(f"{where}: {column} must be a day such as 2021-01-31, found {text}")
        return days


class Lines(FrameSource):
    """A frame whose rows are known by their lines in a file."""

    def place(self, row: int) -> str:
        return f"line {row}"


def read_table(path: Path, key: Sequence[str] = (), date: str | None = None) -> Table:
    """A table; cells of ``key`` and ``date`` columns are kept as texts."""
    source = open_source(path)
    return load(source, source.columns, [name for name in source.columns if name in (*key, date)])


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
        numbers = pd.Series(np.nan, cells.index) if moments else pd.to_numeric(cells, errors="coerce")
    except OverflowError:  # whole numbers of hundreds of digits: as texts they are infinite, and refused
        numbers = pd.to_numeric(cells.where(cells.isna(), cells.astype(str)), errors="coerce")
    values = numbers.to_numpy(np.float64, na_value=np.nan)
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


EARLIEST, LATEST = "0001-01-01", "9999-12-31"


class Days(NamedTuple):
    """The first and the last day, both included; None: as the file has them."""

    first: str | None = None
    last: str | None = None

    def checked(self) -> Days:
        """The same span, its days written as 2021-01-31; one that is unreadable or empty is refused."""
        first, last = self._ends()
        if first > last:
            raise ValueError(f"--from must not be after --to, found {self.first} and {self.last}")
        return Days(self.first and str(first), self.last and str(last))

    def of(self, rows: InputTable) -> InputTable:
        """The rows of these days. The rest is not read, so that no message and no note is about it."""
        if self == EVERY_DAY:
            return rows
        first, last = self._ends()
        inside = (rows.dates >= first) & (rows.dates <= last)
        if not inside.any():
            there = f"its days are {rows.dates.min()} to {rows.dates.max()}"
            raise ValueError(f"{rows.path}: has no day from {self.first or 'its first'} to {self.last or 'its last'}; {there}")
        return rows.kept(inside)

    def _ends(self) -> tuple[np.datetime64, np.datetime64]:
        first, last = read_day("--from", self.first or EARLIEST), read_day("--to", self.last or LATEST)
        return np.datetime64(first, "D"), np.datetime64(last, "D")


EVERY_DAY = Days()
