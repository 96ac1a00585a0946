"""What a column holds: the same kind of cells in all tables, and no numbers or dates in a form that is not read.

Numbers in one table and texts in another would give one column two meanings. A number or a date in an unknown form would be
read as a text, and would lose its meaning as a category.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.cells import MOMENT, NUMBER, dates_of, missing_in, numbers_of, offsets_of
from dffl.checks import first_true
from dffl.tables.sources import Table

WORDS = {"number": "numbers", "date": "dates", "category": "texts", "offset": "dates with an offset from UTC"}
LISTED = "write it in the same way at all sites, or list all of its texts, the numbers too, under federation.categories"
ALIKE = "write it in the same way at all sites"
SERIALS = (10_000, 100_000)
"""The numbers of the days from 1927 to 2173 in spreadsheets."""


class Held(NamedTuple):
    """What the table of a client holds in a column."""

    client: str
    table: Table
    kind: str


class SameKind:
    """One column. The first table with a filled cell sets its kind. ``fix`` is the usual advice."""

    def __init__(self, column: str, fix: str = LISTED):
        self.column, self.fix = column, fix
        self._first: Held | None = None

    def require(self, client: str, table: Table, kind: str | None) -> None:
        """Refuse a table of another kind than the first one; the message shows a cell of both."""
        if kind is None:  # it has no filled cell
            return
        new = Held(client, table, kind)
        first = self._first = self._first or new
        if new.kind != first.kind:
            texts = {sample.kind: sample.table.cell(_example(sample, self.column), self.column) for sample in (first, new)}
            places = {sample.kind: sample.table.at(_example(sample, self.column)) for sample in (first, new)}
            what = (
                f"{WORDS[sample.kind]} at {sample.client!r} ({places[sample.kind]}: {texts[sample.kind]!r:.60})"
                for sample in (first, new)
            )
            raise ValueError(f"holds {' and '.join(what)}; {self._mend(texts)}")

    def _mend(self, texts: dict[str, str]) -> str:
        """What to change, from an example of each of the two kinds."""
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
    """The kind of a column. Dates with an offset from UTC are another kind than dates without one."""
    return "offset" if kind == "date" and not np.isnan(offsets_of(table.frame[column])).all() else kind


def _example(sample: Held, column: str) -> int:
    """The row of the first cell of the kind that a table holds."""
    cells = sample.table.frame[column]
    if sample.kind == "offset":
        fits = ~np.isnan(offsets_of(cells))
    else:
        is_number, is_date = ~np.isnan(numbers_of(cells)), ~np.isnat(dates_of(cells))
        fits = {"number": is_number, "date": is_date, "category": ~(is_number | is_date)}[sample.kind]
    filled = ~missing_in(cells)
    row = first_true(fits & filled)
    return first_true(filled) or 0 if row is None else row  # half numbers and half dates are read as texts


ODD = {
    "number": "write numbers such as 1093.5, with a point and no other signs",
    "date": "write dates as 2021-01-31",
    "unit": "write the numbers alone, such as 1093.5, and the unit into the name of the column",
}
"""The advice for them."""
YEAR_FIRST = "2021-01-31, 2021/01/31 or 2021-01-31 13:00"
"""The forms of dates that can be read."""
GROUPED = r"\d{1,3}(?:[ ,.'_\u2019]\d{3})*(?:[.,]\d+)?|\d+,\d+(?:[eE][+-]?\d+)?"
OTHER_NUMBER = re.compile(rf"[+-]?(?:{GROUPED})")
IN_BRACKETS = re.compile(r"\((.+)\)")
"""Negative numbers in the form of accountants."""
AROUND = "%€$£¥ "
"""Signs that people write before and after a number."""
TIME = r"(?:[T ,]+\d\d?(?:[:.h]\d\d| ?[ap]\.?m).*)?"
MONTH = (
    r"(?:jan(?:uary|uar|vier|v)?|feb(?:ruary|ruar)?|f[eé]v(?:rier|r)?|mar(?:ch|s)?|märz?|mrz|apr(?:il)?|avr(?:il)?|ma[iy]"
    r"|jun[ei]?|jul[iy]?|juin|juil(?:let)?|aug(?:ust)?|ao[uû]t|sept?(?:ember|embre)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?"
    r"|d[eé][cz](?:ember|embre)?)(?![^\W\d_])\.?"
)
"""English, German and French names of months, complete or abbreviated as usual."""
YEAR = r"(?:\d{4}|'?\d\d)"
OTHER_DATE = re.compile(
    rf"(?:\d\d?([./-])\d\d?\1{YEAR}|\d{{4}}([./-])\d\d?\2\d\d?"  # 31.1.2021; 2021.01.31, or with 1:00 PM
    rf"|(?:[^\W\d_]{{2,10}}[.,]* )?(?:\d\d?[. /-]*{MONTH}[ ,/-]*{YEAR}|{MONTH} ?\d\d?,? {YEAR}|\d{{4}}[ /-]?{MONTH}[ /-]?\d\d?)"
    rf"){TIME}",
    re.IGNORECASE,
)
"""Also days with a name of a month, perhaps after a weekday: 5-Jan-2024, Fri, Jan 5, 2024."""
DAY_OR_MONTH = re.compile(r"(\d\d?)[./-](\d\d?)[./-](\d{4})(?!\d)")
"""A day and its month, or a month and its day."""
UNIT = r"(?!(?:st|nd|rd|th|er|re|e|[ºª])$)[^\W\d_][^\s,;:()]*|°.*|-"
MEASURED = re.compile(rf"([+-]?(?:{GROUPED}|\d+(?:\.\d+)?|\.\d+))(?! ?$)(?![A-Z]$) ?({UNIT})")
"""A number and one word after it, which may be a unit, or a minus. The e of 2e is not a unit, nor the A of 12A."""
MOST_SIZES = 10
"""Up to this number of different numbers with one unit may be names of categories, as in `3 rooms`; more are measurements."""


def odd_form(text: str) -> str | None:
    """Whether a text is a number or a date in an unknown form, such as 1.093,5 or 31.1.2021. Numbers with a unit: `unit_of`."""
    if NUMBER.fullmatch(text) or MOMENT.fullmatch(text):
        return None
    if OTHER_DATE.fullmatch(text):
        return "date"
    plain = _with_plain_signs(text).strip(AROUND)
    if bracketed := IN_BRACKETS.fullmatch(plain):
        plain = bracketed[1].strip(AROUND)
    return "number" if NUMBER.fullmatch(plain) or OTHER_NUMBER.fullmatch(plain) else None


def year_first(text: str) -> str:
    """How to write a date of an unknown form. Whether 5/6/2015 is in May or in June is not guessed."""
    if not (match := DAY_OR_MONTH.match(text)):
        return f"write the year first, as in {YEAR_FIRST}"
    first, second, year = int(match[1]), int(match[2]), match[3]
    readings = {f"{year}-{month:02}-{day:02}" for day, month in ((first, second), (second, first)) if _is_day(year, month, day)}
    if len(readings) == 2:
        return f"it may be {' or '.join(sorted(readings))}, so write the year first, as in {YEAR_FIRST}"
    return f"write the year first{''.join(f', here {reading}' for reading in readings)}; read are {YEAR_FIRST}"


def _is_day(year: str, month: int, day: int) -> bool:
    try:
        return bool(date(int(year), month, day))
    except ValueError:
        return False


def unit_of(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text such as 12 kW, or None."""
    match = MEASURED.fullmatch(_with_plain_signs(text))
    return None if match is None else (match[1], match[2])


def measured(texts: Iterable[str]) -> str | None:
    """The first text of a column that is a number with a unit, if the column is a measurement.

    A column is a measurement if more than half of its different texts have the same unit, and these are more than
    `MOST_SIZES`.
    """
    texts, by_unit = list(texts), defaultdict[str, dict[str, str]](dict)
    for text in texts:
        if unit := unit_of(text):
            by_unit[unit[1]].setdefault(unit[0], text)
    sizes = max(by_unit.values(), key=len, default={})
    return next(iter(sizes.values())) if len(sizes) > MOST_SIZES and 2 * len(sizes) > len(texts) else None


def _with_plain_signs(text: str) -> str:
    """The text with typographic blanks and minus signs replaced by those of a keyboard."""
    return re.sub(r"[\u00a0\u2009\u202f]", " ", text).replace("\u2212", "-")
