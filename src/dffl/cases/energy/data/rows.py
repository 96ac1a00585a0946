"""Rows of zones and days, and what can be wrong with a cell: named by file, line, zone and date."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from copy import copy
from datetime import date
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from dffl.data.tables import ZONE as ZONE
from dffl.data.tables import as_numbers, is_parquet, some
from dffl.data.tables import read_table as read_table

DAY = re.compile(r"(\d{4})([-/])(\d\d?)\2(\d\d?)|(\d{4})(\d\d)(\d\d)")
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$")
"""What may stand behind a day. A time zone is the day's own; another time would leave open whose day it is."""


class ZoneRows:
    """The rows of a file, each of a zone."""

    def __init__(self, path: Path, table: pd.DataFrame, lines: np.ndarray):
        self.path, self.table, self.lines = path, table, lines
        column = self.first_of(ZONE)
        if column is None:
            self.require(ZONE[:1])
        self.zones = self._zones(str(column))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a CSV (also compressed) or a Parquet file."""
        table, lines = read_table(path)
        return cls(path, table, lines)

    def __len__(self) -> int:
        return len(self.table)

    def line(self, row: int) -> str:
        """Where a row stands in its file."""
        return f"{'row' if is_parquet(self.path) else 'line'} {self.lines[row]}"

    def at(self, row: int) -> str:
        """A row's file, line and zone: the beginning of a message."""
        return f"{self.path}, {self.line(row)}: zone {self.zones[row]}"

    def first_of(self, names: Sequence[str]) -> str | None:
        """The first of these names that is a column."""
        return next((name for name in names if name in self.table), None)

    def require(self, columns: Sequence[str]) -> None:
        """Refuse a table without these columns."""
        for name in columns:
            if name not in self.table:
                found = ", ".join(self.table.columns[:12]) + (", ..." if len(self.table.columns) > 12 else "")
                raise ValueError(f"{self.path}: must have a column {name!r}, found {found}")

    def numbers(self, column: str) -> np.ndarray:
        """A column of numbers, NaN where a cell is empty."""
        values = self.table[column]
        parsed = as_numbers(values)
        self._refuse(parsed.isna() & values.notna(), column, "must be a number", values)
        out = parsed.to_numpy(np.float64, na_value=np.nan)
        self._refuse(np.isinf(out), column, "must be finite", values)
        return out

    def complete(self, column: str, fix: str = "") -> np.ndarray:
        """A column of numbers without empty cells."""
        values = self.numbers(column)
        empty = np.flatnonzero(np.isnan(values))
        if len(empty):
            raise ValueError(f"{self.at(empty[0])}: {column} is missing; fill it, or leave that day out{fix}")
        return values

    def _refuse(self, wrong: Any, column: str, must: str, values: pd.Series) -> None:
        found = np.flatnonzero(np.asarray(wrong))
        if len(found):
            text = str(values.iloc[found[0]])
            fix = "; write decimals with a point" if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text) else ""
            raise ValueError(f"{self.at(found[0])}: {column} {must}, found {text!r}{fix}")

    def _zones(self, column: str) -> np.ndarray:
        codes, found = pd.factorize(self.table[column])
        names = np.array([*map(_name, found), ""], object)[codes]  # a cell without a value has the code -1
        empty = np.flatnonzero(names == "")
        if len(empty):
            raise ValueError(f"{self.path}, {self.line(empty[0])}: {column} is empty; name the zone, or take the line out")
        return names


class Rows(ZoneRows):
    """The rows of a file, each of a zone and a date."""

    def __init__(self, path: Path, table: pd.DataFrame, lines: np.ndarray):
        super().__init__(path, table, lines)
        self.require(["date"])
        self.dates = self._dates()

    def at(self, row: int) -> str:
        """A row's file, line, zone and date: the beginning of a message."""
        return f"{super().at(row)}, {self.dates[row]}"

    def kept(self, mask: np.ndarray) -> Self:
        """Some of the rows."""
        part = copy(self)
        part.table = self.table.loc[mask].reset_index(drop=True)
        part.lines, part.zones, part.dates = self.lines[mask], self.zones[mask], self.dates[mask]
        return part

    def only(self, columns: Collection[str]) -> Self:
        """The rows with some of the columns: what is not used need not stay in memory."""
        part = copy(self)
        part.table = self.table[[name for name in self.table if name in columns]]
        return part

    def without(self, zones: set[str]) -> Self:
        """The rows of all zones but these."""
        there = set(self.zones)
        if unknown := zones - there:
            raise ValueError(f"{self.path}: --without names zone {min(unknown)!r}, which is not there; it has {some(there)}")
        if zones == there:
            raise ValueError(f"{self.path}: --without leaves no zone")
        return self.kept(~pd.Series(self.zones).isin(zones).to_numpy()) if zones else self

    def refuse_pairs(self) -> None:
        """Refuse a second row for a zone and day."""
        again = np.flatnonzero(pd.DataFrame({"zone": self.zones, "date": self.dates}).duplicated().to_numpy())
        if len(again):
            row = again[0]
            first = np.flatnonzero((self.zones == self.zones[row]) & (self.dates == self.dates[row]))[0]
            raise ValueError(f"{self.at(row)}: a second row for this zone and day, after {self.line(first)}; keep one")

    def _dates(self) -> np.ndarray:
        codes, found = pd.factorize(self.table["date"])
        days = np.array([*map(_day, found), None], "datetime64[D]")[codes]
        wrong = np.flatnonzero(np.isnat(days))
        if len(wrong):
            value = self.table["date"].iloc[wrong[0]]
            text = "nothing" if codes[wrong[0]] < 0 else repr(str(value))
            raise ValueError(f"{super().at(wrong[0])}: date must be a day such as 2021-01-31, found {text}")
        return days


def weekday(dates: np.ndarray) -> np.ndarray:
    """0 for a Monday to 6 for a Sunday."""
    return (dates.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday


def _name(value: Any) -> str:
    """A zone's name. Whole numbers are fractions where a column has empty cells, and are whole again here."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _day(value: Any) -> date | None:
    match = DAY.fullmatch(MIDNIGHT.sub("", str(value).strip()))
    if match is None:
        return None
    try:
        return date(*(int(match[group]) for group in ((1, 3, 4) if match[1] else (5, 6, 7))))
    except ValueError:
        return None
