"""Hourly prices of zones: a row a zone and hour, with ``zone``, ``date``, ``hour``, ``total`` and the known components."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dffl.cases.energy.data.panel import HOURS
from dffl.cases.energy.fetch.fetched import Fetched
from dffl.cases.energy.fetch.span import Span


def to_days(begin: pd.Series, offset: int) -> tuple[pd.Series, pd.Series]:
    """The date and hour of hours that begin at these times UTC, on a clock that is always ``offset`` hours ahead of it."""
    local = begin + pd.Timedelta(hours=offset)
    return local.dt.strftime("%Y-%m-%d"), local.dt.hour


def join(parts: Sequence[Fetched], span: Span, name: str) -> Fetched:
    """The parts one after another, the days of ``span`` only, with a note on the hours that are missing."""
    tables = [rows for part in parts if len(rows := span.of(part.table))]
    if not tables:
        raise ValueError(f"{name}: no price from {span.first} to {span.last}; choose days that the source has")
    table = pd.concat(tables).sort_values(["zone", "date", "hour"], kind="stable", ignore_index=True)
    notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    return Fetched(table, notes + _gaps(table, span, name))


def _gaps(table: pd.DataFrame, span: Span, name: str) -> list[str]:
    """One line on the hours that are not there, if there are such."""
    wanted = pd.MultiIndex.from_product([table["zone"].unique(), span.dates(), range(HOURS)])
    missing = wanted.difference(pd.MultiIndex.from_frame(table[["zone", "date", "hour"]]), sort=False)
    if missing.empty:
        return []
    zone, day, hour = missing[0]
    hours = missing.droplevel(0).nunique()
    return [f"{name}: {len(missing)} prices are missing, in {hours} hours; the first is {zone}, {day} {hour:02d}:00"]
