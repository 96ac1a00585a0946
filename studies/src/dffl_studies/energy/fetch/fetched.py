"""What a source returns: one row per zone and hour (prices) or day (weather), with notes for the reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from dffl_studies.energy.data.panel import HOURS
from dffl_studies.energy.fetch.span import Span


class Fetched(NamedTuple):
    """A table, and what a reader of it should know, one line each.

    Prices have the columns ``zone``, ``date``, ``hour``, ``total`` and, where known, its parts ``energy``, ``congestion`` and
    ``loss``. Days are in the market's standard time all year; an hour without a price has no row.
    """

    table: pd.DataFrame
    notes: list[str]


def to_days(begin: pd.Series, offset: int) -> tuple[pd.Series, pd.Series]:
    """The date and hour of hours that begin at these times UTC, on a clock that is always ``offset`` hours ahead of it."""
    local = begin + pd.Timedelta(hours=offset)
    return local.dt.strftime("%Y-%m-%d"), local.dt.hour


def join_prices(parts: Sequence[Fetched], span: Span, name: str) -> Fetched:
    """The parts one after another, only the days of ``span``, with a note on the hours that are missing."""
    tables = [rows for part in parts if len(rows := span.of(part.table))]
    if not tables:
        raise ValueError(f"{name}: no price from {span.first} to {span.last}; choose days that the source has")
    table = pd.concat(tables).sort_values(["zone", "date", "hour"], kind="stable", ignore_index=True)
    notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    expected = pd.MultiIndex.from_product([table["zone"].unique(), span.dates(), range(HOURS)])
    missing = expected.difference(pd.MultiIndex.from_frame(table[["zone", "date", "hour"]]), sort=False)
    if len(missing):
        zone, day, hour = missing[0]
        hours = missing.droplevel(0).nunique()
        notes.append(f"{name}: {len(missing)} prices are missing, in {hours} hours; the first is {zone}, {day} {hour:02d}:00")
    return Fetched(table, notes)
