"""The days that are asked for."""

from __future__ import annotations

import calendar
from datetime import date
from typing import NamedTuple

import pandas as pd


class Span(NamedTuple):
    """Days from ``first`` to ``last``, both included."""

    first: date
    last: date

    @classmethod
    def read(cls, first: str, last: str) -> Span:
        """A span of two dates like 2025-01-31."""
        days = []
        for name, text in (("first", first), ("last", last)):
            try:
                days.append(date.fromisoformat(text))
            except ValueError:
                raise ValueError(f"{name} must be a date like 2025-01-31, found {text!r}") from None
        if days[0] > days[1]:
            raise ValueError(f"first must not be after last, found {first} and {last}")
        return cls(*days)

    @property
    def days(self) -> int:
        """How many."""
        return (self.last - self.first).days + 1

    def dates(self) -> list[str]:
        """Each day, as text."""
        return list(pd.date_range(self.first, self.last).strftime("%Y-%m-%d"))

    def pieces(self, months: int) -> list[Span]:
        """The span cut at every ``months`` months of the calendar year; ``months`` divides 12."""
        pieces = []
        for year in range(self.first.year, self.last.year + 1):
            for month in range(1, 13, months):
                end = month + months - 1
                piece = Span(
                    max(self.first, date(year, month, 1)), min(self.last, date(year, end, calendar.monthrange(year, end)[1]))
                )
                if piece.first <= piece.last:
                    pieces.append(piece)
        return pieces

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table whose ``date`` is in the span."""
        return table[table["date"].between(self.first.isoformat(), self.last.isoformat())]
