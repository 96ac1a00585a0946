"""The days that are asked for."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import pandas as pd

from dffl_studies.energy.input_table import read_day

OLDEST, NEWEST = 1990, 2100
"""No market has hourly prices before, and a later year is a mistake in typing."""


class Span(NamedTuple):
    """Days from ``first`` to ``last``, both included."""

    first: date
    last: date

    @classmethod
    def read(cls, first: str, last: str) -> Span:
        """A span of two days such as 2025-01-31."""
        span = cls(read_day("first", first), read_day("last", last))
        if span.first > span.last:
            raise ValueError(f"first must not be after last, found {first} and {last}")
        if span.first.year < OLDEST or span.last.year > NEWEST:
            raise ValueError(f"the days must be in the years {OLDEST} to {NEWEST}, found {first} to {last}")
        return span

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def dates(self) -> list[str]:
        """All days, as texts."""
        return list(pd.date_range(self.first, self.last).strftime("%Y-%m-%d"))

    def pieces(self, months: int) -> list[Span]:
        """The span cut into parts of ``months`` months of the calendar year; ``months`` divides 12."""
        days = pd.Series(pd.date_range(self.first, self.last))
        parts = days.groupby([days.dt.year, (days.dt.month - 1) // months])
        return [Span(part.iloc[0].date(), part.iloc[-1].date()) for _, part in parts]

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table whose ``date`` is in the span."""
        return table[table["date"].between(self.first.isoformat(), self.last.isoformat())]
