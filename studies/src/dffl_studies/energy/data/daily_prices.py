"""Hourly prices as days of 24 hours.

An hour that the clocks repeat in autumn is averaged, one or two missing hours (such as the one that the clocks leave out in
spring) are interpolated, and a day with more missing hours is left out. Notes report all this.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl_studies.energy.data.columns import COMPONENTS
from dffl_studies.energy.data.lagged import weekday
from dffl_studies.energy.data.panel import HOURS
from dffl_studies.energy.input_table import InputTable, shown

PRICE = ("total", "price", "lmp", "total_lmp")
"""The names that the column of prices may have."""
MOST_MISSING = 2
"""Hours that may be missing on a day that is kept."""
CENTS = 0.05
"""How far a price may be from the sum of its components because of rounding."""
SUNDAY, AUTUMN, SMALL_HOURS = 6, (9, 10, 11), 4
"""When clocks are turned back: on one such day of the year, in one of the first hours."""


def daily_prices(rows: InputTable, notes: list[str]) -> tuple[InputTable, np.ndarray]:
    """One row per zone and day (the first of its hours in the file), and the 24 prices of each."""
    column = rows.first_of(PRICE) or PRICE[0]
    rows.require(["hour", column])
    values, hours = rows.numbers(column), _hours(rows, notes)
    _check_components(rows, values, notes)
    values, hours, rows = _average_repeated(rows, values, hours, notes)
    (zone, _), day = pd.factorize(rows.keys, sort=True), rows.dates.astype(int)
    _, first, number = np.unique(zone * (np.ptp(day) + 1) + day - day.min(), return_index=True, return_inverse=True)
    grid = np.full((len(first), HOURS), np.nan)
    grid[number, hours] = values
    days = rows.kept(first)
    complete = _interpolate(days, grid, notes)
    return days.kept(complete), grid[complete]


def _hours(rows: InputTable, notes: list[str]) -> np.ndarray:
    """The hour of each row, 0 to 23."""
    hours = rows.numbers("hour")
    known = hours[~np.isnan(hours)]
    first = 1 if len(known) and known.min() >= 1 and known.max() >= HOURS else 0
    if (row := first_true(~((hours >= first) & (hours < first + HOURS) & (hours == np.floor(hours))))) is not None:
        raise ValueError(
            f"{rows.at(row)}: hour must be a whole number from 0 to {HOURS - 1}, or from 1 to {HOURS} throughout, found "
            f"{shown(hours[row])}; number the hours of a day of 25 by the clock, the repeated one twice"
        )
    if first:
        notes.append(f"{rows.path}: hours are numbered 1 to {HOURS}: hour 1 was read as the one that begins at midnight")
    return hours.astype(int) - first


def _check_components(rows: InputTable, values: np.ndarray, notes: list[str]) -> None:
    """Note a price that is not the sum of its components: a sign may be wrong."""
    if all(name in rows.table for name in COMPONENTS):
        gap = np.abs(values - sum(rows.numbers(name) for name in COMPONENTS))
        if (row := first_true(gap > CENTS)) is not None:
            notes.append(
                f"{_at_hour(rows, row)}: the price is {gap[row]:.2f} off energy + congestion + loss "
                f"({(gap > CENTS).sum()} such rows in all); the price was taken as it is"
            )


def _at_hour(rows: InputTable, row: int) -> str:
    """A row with its hour, as the file numbers it."""
    return f"{rows.at(row)}, hour {float(rows.table['hour'].iloc[row]):g}"


def _average_repeated(
    rows: InputTable, values: np.ndarray, hours: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray, InputTable]:
    """Average the hour that the clocks repeat in autumn; any other second row for an hour is refused."""
    frame = pd.DataFrame({"zone": rows.keys, "date": rows.dates, "hour": hours})
    twin = frame.duplicated().to_numpy()
    again = np.flatnonzero(twin)
    if not len(again):
        return values, hours, rows
    dates = rows.dates[again]
    months = dates.astype("datetime64[M]").astype(int) % 12 + 1
    by_clock = (weekday(dates) == SUNDAY) & np.isin(months, AUTUMN) & (hours[again] < SMALL_HOURS)
    # Clocks are turned back once a year.
    by_clock &= ~pd.DataFrame({"zone": rows.keys[again], "year": dates.astype("datetime64[Y]")}).duplicated().to_numpy()
    if not by_clock.all():
        row = again[np.argmin(by_clock)]
        same = int(np.argmax((frame == frame.iloc[row]).all(axis=1)))
        raise ValueError(f"{_at_hour(rows, row)}: a second row for this hour, after {rows.line(same)}; keep one of them")
    mean = pd.Series(values).groupby([frame["zone"], frame["date"], frame["hour"]], sort=False).transform("mean").to_numpy()
    count = f" ({len(again)} such hours in all)" if len(again) > 1 else ""
    notes.append(f"{_at_hour(rows, again[0])} is there twice, as the clocks repeat it: averaged{count}")
    return mean[~twin], hours[~twin], rows.kept(~twin)


def _interpolate(days: InputTable, grid: np.ndarray, notes: list[str]) -> np.ndarray:
    """Interpolate single missing hours in place, within their day; the answer is which days are complete then."""
    missing = np.isnan(grid).sum(axis=1)
    few, many = (missing > 0) & (missing <= MOST_MISSING), missing > MOST_MISSING
    if many.all():
        found = f"zone {days.keys[0]}, {days.dates[0]}: {missing[0]} of {HOURS} missing"
        raise ValueError(f"{days.path}: no day has the price of at least {HOURS - MOST_MISSING} hours, found {found}")
    for place in np.flatnonzero(few):
        day = grid[place]
        # From hours of the same day alone: an hour of the next day is not known when yesterday's prices are used.
        there = np.flatnonzero(~np.isnan(day))
        day[:] = np.interp(np.arange(HOURS), there, day[there])
    for which, done in ((few, "interpolated within the day"), (many, "the day was left out")):
        if (row := first_true(which)) is not None:
            what = f"zone {days.keys[row]}, {days.dates[row]}: {missing[row]} of {HOURS} hours missing, {done}"
            notes.append(f"{days.path}: {what}{in_all(which)}")
    return ~many


def in_all(which: np.ndarray) -> str:
    """How many zones and days a note is about, if there are more than one."""
    return f" ({which.sum()} such zone-days in all)" if which.sum() > 1 else ""
