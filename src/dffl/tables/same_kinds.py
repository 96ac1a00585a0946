"""A column holds the same kind of cells in all tables: numbers here and texts there would be one column with two meanings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.cells import dates_of, missing_in, numbers_of, offsets_of
from dffl.checks import first_true
from dffl.tables.odd_forms import ODD, odd_form, unit_of
from dffl.tables.sources import Table

WORDS = {"number": "numbers", "date": "dates", "category": "texts", "offset": "dates with an offset from UTC"}
LISTED = "write it in the same way at all sites, or list all of its texts, the numbers too, under federation.categories"
ALIKE = "write it in the same way at all sites"
SERIALS = (10_000, 100_000)
"""How spreadsheets number the days of the years 1927 to 2173."""


class Held(NamedTuple):
    """What a table of a client holds in a column."""

    client: str
    table: Table
    kind: str


class SameKind:
    """One column; the first table with a filled cell says what the others must hold. ``fix`` is the usual advice."""

    def __init__(self, column: str, fix: str = LISTED):
        self.column, self.fix = column, fix
        self._first: Held | None = None

    def require(self, client: str, table: Table, kind: str | None) -> None:
        """Refuse a table that holds another kind than the first one; both are named with a cell."""
        if kind is None:  # it has no filled cell
            return
        held = Held(client, table, kind)
        first = self._first = self._first or held
        if held.kind != first.kind:
            texts = {one.kind: one.table.cell(_example(one, self.column), self.column) for one in (first, held)}
            places = {one.kind: one.table.at(_example(one, self.column)) for one in (first, held)}
            what = (
                f"{WORDS[one.kind]} at {one.client!r} ({places[one.kind]}: {texts[one.kind]!r:.60})" for one in (first, held)
            )
            raise ValueError(f"holds {' and '.join(what)}; {self._mend(texts)}")

    def _mend(self, texts: dict[str, str]) -> str:
        """What to change, by an example of each of the two kinds."""
        if set(texts) == {"number", "date"}:
            serial = SERIALS[0] < float(numbers_of(pd.Series([texts["number"]]))[0]) < SERIALS[1]
            why = "; a spreadsheet numbers days so, unless the column has the format of a date" if serial else ""
            return f"write all dates as 2021-01-31{why}"
        if set(texts) == {"date", "offset"}:
            return "write all clocks with an offset from UTC, or none"
        odd = texts.get("category", "")
        form = odd_form(odd) or ("unit" if "number" in texts and unit_of(odd) else None)
        return f"{ODD[form]}, at all sites" if form else self.fix


def with_offset(table: Table, column: str, kind: str | None) -> str | None:
    """The kind of a column, where dates with an offset from UTC are another kind than clocks without one."""
    return "offset" if kind == "date" and not np.isnan(offsets_of(table.frame[column])).all() else kind


def _example(held: Held, column: str) -> int:
    """The row of the first cell of the kind that a table holds."""
    cells = held.table.frame[column]
    if held.kind == "offset":
        fits = ~np.isnan(offsets_of(cells))
    else:
        is_number, is_date = ~np.isnan(numbers_of(cells)), ~np.isnat(dates_of(cells))
        fits = {"number": is_number, "date": is_date, "category": ~(is_number | is_date)}[held.kind]
    filled = ~missing_in(cells)
    row = first_true(fits & filled)
    return first_true(filled) or 0 if row is None else row  # half numbers and half dates are texts
