"""A span of days: the part of a market's files that is read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl_studies.energy.input_table import InputTable, read_day

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
        kept = (rows.dates >= first) & (rows.dates <= last)
        if not kept.any():
            there = f"its days are {rows.dates.min()} to {rows.dates.max()}"
            raise ValueError(f"{rows.path}: has no day from {self.first or 'its first'} to {self.last or 'its last'}; {there}")
        return rows.kept(kept)

    def _ends(self) -> tuple[np.datetime64, np.datetime64]:
        first, last = read_day("--from", self.first or EARLIEST), read_day("--to", self.last or LATEST)
        return np.datetime64(first, "D"), np.datetime64(last, "D")


EVERY_DAY = Days()
