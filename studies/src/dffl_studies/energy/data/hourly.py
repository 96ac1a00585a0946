"""A panel from a table of hourly prices and one of daily weather."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl.named import listed
from dffl_studies.energy.data.columns import (
    CALENDAR,
    COMPONENTS,
    DATE,
    DEMAND,
    FORECAST,
    LATITUDE,
    LONGITUDE,
    ZONE,
    covariate_columns,
)
from dffl_studies.energy.data.money import AS_IN_FILE, Money
from dffl_studies.energy.data.panel import BACK, HOURS, SMALL_HOURS, Panel, filled, may_change, weekday
from dffl_studies.energy.data.reading import assemble, zone_facts
from dffl_studies.energy.input_table import EVERY_DAY, Days, InputTable, shown

PRICE = ("total", "price", "lmp", "total_lmp")
"""The names that the column of prices may have."""
HOUR, MINUTE, PERIOD = "hour", "minute", "period"
"""The columns that say when on its day a price is: an hour, with its minute where periods are shorter, or a number."""
MOST_MISSING = 2
"""Hours that may be missing on a day that is kept."""
CENTS = 0.05
"""How far a price may be from the sum of its components because of rounding."""


class Slots(NamedTuple):
    """The period of each row, and how many a day has."""

    number: np.ndarray
    periods: int

    @property
    def an_hour(self) -> int:
        """How many periods an hour has; at least one."""
        return max(self.periods // HOURS, 1)


def daily_prices(rows: InputTable, notes: list[str], column: str | None = None) -> tuple[InputTable, np.ndarray]:
    """One row per zone and day (the first of its periods in the file), and the prices of each, or another ``column``."""
    column = column or rows.first_of(PRICE) or PRICE[0]
    when = rows.first_of((HOUR, PERIOD)) or HOUR
    rows.require([when, column])
    values, slots = rows.numbers(column), _periods(rows) if when == PERIOD else _hours(rows, notes)
    if column in PRICE:
        _check_components(rows, values, notes)
    values, number, rows = _average_repeated(rows, values, slots, notes)
    (zone, _), day = pd.factorize(rows.keys, sort=True), rows.dates.astype(int)
    _, first, place = np.unique(zone * (np.ptp(day) + 1) + day - day.min(), return_index=True, return_inverse=True)
    grid = np.full((len(first), slots.periods), np.nan)
    grid[place, number] = values
    days = rows.kept(first)
    complete = _interpolate(days, grid, slots, notes)
    return days.kept(complete), grid[complete]


def _hours(rows: InputTable, notes: list[str]) -> Slots:
    """The period of each row by its hour, 0 to 23, and its minute where there is such a column."""
    hours = rows.numbers(HOUR)
    known = hours[~np.isnan(hours)]
    first = 1 if len(known) and known.min() >= 1 and known.max() >= HOURS else 0
    if (row := first_true(~((hours >= first) & (hours < first + HOURS) & (hours == np.floor(hours))))) is not None:
        raise ValueError(
            f"{rows.at(row)}: hour must be a whole number from 0 to {HOURS - 1}, or from 1 to {HOURS} throughout, found "
            f"{shown(hours[row])}; number the hours of a day of 25 by the clock, the repeated one twice"
        )
    if first:
        notes.append(f"{rows.path}: hours are numbered 1 to {HOURS}: hour 1 was read as the one that begins at midnight")
    whole_hours = hours.astype(int) - first
    if MINUTE not in rows.table:
        return Slots(whole_hours, HOURS)
    minutes = rows.complete(MINUTE)
    there = np.unique(minutes)
    step = int(np.gcd.reduce([60, *there.astype(int)]))
    if (row := first_true((minutes < 0) | (minutes >= 60) | (minutes != np.floor(minutes)))) is not None:
        raise ValueError(f"{rows.at(row)}: minute must be a whole number from 0 to 59, found {shown(minutes[row])}")
    slots = Slots(whole_hours * (60 // step) + minutes.astype(int) // step, HOURS * 60 // step)
    _refuse_mixed(rows, minutes, slots)
    return slots


def _refuse_mixed(rows: InputTable, minutes: np.ndarray, slots: Slots) -> None:
    """Refuse days of hours among days of shorter periods."""
    day = pd.DataFrame({"zone": rows.keys, "date": rows.dates})
    coarse = (pd.Series(minutes).groupby([day["zone"], day["date"]]).transform("nunique") == 1).to_numpy()
    several = pd.Series(minutes).groupby([day["zone"], day["date"]]).transform("size").to_numpy() > 1
    if slots.an_hour > 1 and (row := first_true(coarse & several)) is not None:
        other = int(np.argmin(coarse))
        what = f"{rows.line(other)}, zone {rows.keys[other]}, {rows.dates[other]} has {slots.an_hour}"
        fix = "use days of one kind (--from, --to), or write each hour's price into all of its periods"
        raise ValueError(f"{rows.at(row)}: has one price an hour, and {what}; {fix}")


def _periods(rows: InputTable) -> Slots:
    """The period of each row by its number, from 0 or from 1 on; the largest number says how many a day has."""
    numbers = rows.complete(PERIOD)
    if (row := first_true((numbers < 0) | (numbers != np.floor(numbers)) | (numbers > 24 * 60))) is not None:
        raise ValueError(f"{rows.at(row)}: period must be a whole number of at least 0, found {shown(numbers[row])}")
    first = 1 if numbers.min() >= 1 else 0
    return Slots(numbers.astype(int) - first, int(numbers.max()) + 1 - first)


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
    named = [name for name in (HOUR, MINUTE, PERIOD) if name in rows.table]
    return ", ".join([rows.at(row), *(f"{name} {float(rows.table[name].iloc[row]):g}" for name in named)])


def _average_repeated(
    rows: InputTable, values: np.ndarray, slots: Slots, notes: list[str]
) -> tuple[np.ndarray, np.ndarray, InputTable]:
    """Average the hour that the clocks repeat in autumn; any other second row for a period is refused."""
    frame = pd.DataFrame({"zone": rows.keys, "date": rows.dates, "period": slots.number})
    twin = frame.duplicated().to_numpy()
    again = np.flatnonzero(twin)
    if not len(again):
        return values, slots.number, rows
    later = frame.iloc[again].assign(year=rows.dates[again].astype("datetime64[Y]"))
    by_clock = may_change(rows.dates[again], BACK) & (slots.number[again] < SMALL_HOURS * slots.an_hour)
    # Clocks are turned back once a year, and each period is repeated once.
    by_clock &= (later.groupby(["zone", "year"])["date"].transform("first") == later["date"]).to_numpy()
    by_clock &= ~later.duplicated(["zone", "year", "period"]).to_numpy()
    by_clock &= (later.groupby(["zone", "date"]).cumcount() < slots.an_hour).to_numpy()
    if not by_clock.all():
        row = again[np.argmin(by_clock)]
        same = int(np.argmax((frame == frame.iloc[row]).all(axis=1)))
        raise ValueError(f"{_at_hour(rows, row)}: a second row for this hour, after {rows.line(same)}; keep one of them")
    mean = pd.Series(values).groupby([frame[name] for name in frame], sort=False).transform("mean").to_numpy()
    count = f" ({len(again)} such hours in all)" if len(again) > 1 else ""
    notes.append(f"{_at_hour(rows, again[0])} is there twice, as the clocks repeat it: averaged{count}")
    return mean[~twin], slots.number[~twin], rows.kept(~twin)


def _interpolate(days: InputTable, grid: np.ndarray, slots: Slots, notes: list[str]) -> np.ndarray:
    """Interpolate one or two missing hours in place, within their day; the answer is which days are complete then."""
    missing, most = np.isnan(grid).sum(axis=1), MOST_MISSING * slots.an_hour
    few, many = (missing > 0) & (missing <= most), missing > most
    what = "hours" if slots.periods == HOURS else "periods"
    if many.all():
        problem = f"zone {days.keys[0]}, {days.dates[0]}: {missing[0]} of {slots.periods} missing"
        raise ValueError(f"{days.path}: no day has the price of at least {slots.periods - most} {what}, found {problem}")
    for place in np.flatnonzero(few):
        grid[place] = filled(grid[place])
    for which, done in ((few, "interpolated within the day"), (many, "the day was left out")):
        if (row := first_true(which)) is not None:
            problem = f"zone {days.keys[row]}, {days.dates[row]}: {missing[row]} of {slots.periods} {what} missing, {done}"
            notes.append(f"{days.path}: {problem}{in_all(which)}")
    return ~many


def in_all(which: np.ndarray) -> str:
    """How many zones and days a note is about, if there are more than one."""
    return f" ({which.sum()} such zone-days in all)" if which.sum() > 1 else ""


def build_panel(
    prices: str | Path | InputTable, weather: str | Path | None = None, zones: str | Path | None = None,
    covariates: Sequence[str] | None = None,
    without: Iterable[str] = (), demand_seed: int = 0, span: Days = EVERY_DAY, money: Money = AS_IN_FILE,
) -> Panel:  # fmt: skip
    """A panel from a table of prices (zone, date, hour, total) and, where there is one, of weather (zone, date, covariates).

    ``zones`` is a table with each zone's lat and lon, and its demand where that is known. ``covariates`` names the columns
    of the weather to keep, or is ``["all"]``; by default those that the paper uses, if any is there, else all. The weekday
    is added where the weather has none. Only the rows of ``span`` are read.
    """
    notes, left_out = list[str](), set(without)
    hourly = prices if isinstance(prices, InputTable) else InputTable.read(Path(prices), ZONE, DATE)
    hourly = span.of(hourly).without(left_out)
    days, grid = daily_prices(hourly, notes)
    rate, currency, unit = money.of(days, notes)
    grid *= rate if isinstance(rate, float) else rate[:, None]
    if weather is None:
        names, values = [CALENDAR[0]], weekday(days.dates)[:, None].astype(float)
    else:
        daily = span.of(InputTable.read(Path(weather), ZONE, DATE))
        known, columns_found, names = _weather(daily.without(left_out & set(daily.keys)), covariates, notes)
        place = _zone_days(known).get_indexer(_zone_days(days))
        if not (place >= 0).any():
            raise ValueError(
                f"{hourly.path} and {weather} have no zone and day in common; zones must have the same names in both"
            )
        notes += _unmatched(days, known, place)
        days, grid, values = days.kept(place >= 0), grid[place >= 0], columns_found[place[place >= 0]]
    forecast = _forecast(hourly, days)
    facts = zone_facts(days, grid.shape[1]) if zones is None else _facts_of(Path(zones), set(days.keys), notes, grid.shape[1])
    # Column by column, as a table has them: the last digit of a day's spread depends on the order in memory.
    panel = assemble(days, np.asfortranarray(grid), values, names, facts, demand_seed, notes, forecast)
    return replace(panel, currency=currency, unit=unit)


def _forecast(hourly: InputTable, days: InputTable) -> np.ndarray | None:
    """The forecasts of these days, where the table of prices has a column of them; each day must have all."""
    if FORECAST not in hourly.table:
        return None
    known, grid = daily_prices(hourly, [], FORECAST)
    place = _zone_days(known).get_indexer(_zone_days(days))
    if (row := first_true(place < 0)) is not None:
        raise ValueError(f"{days.at(row)}: forecast is missing in over two hours of the day; fill it, or leave the day out")
    return np.asarray(grid[place])


def _weather(rows: InputTable, asked: Sequence[str] | None, notes: list[str]) -> tuple[InputTable, np.ndarray, list[str]]:
    """The days with complete weather, the covariates of each, and their names."""
    names = covariate_columns(rows, asked, notes, papers_only=True)
    if not any(name in rows.table or name in (asked or ()) for name in names):
        raise ValueError(f"{rows.path}: must have at least one column of numbers in addition to zone and date, found none")
    rows.refuse_repeats()
    columns = [rows.numbers(name) if name in rows.table else weekday(rows.dates).astype(float) for name in names]
    values = np.stack(columns, axis=1)
    empty = np.isnan(values)
    days = empty.any(axis=1)
    if (row := first_true(days)) is not None:
        missing = f"{rows.at(row)}: {names[int(np.argmax(empty[row]))]} is missing"
        if days.all():
            raise ValueError(f"{missing}, and something on every day; choose the covariates with --covariates")
        notes.append(f"{missing}: the day was left out{in_all(days)}")
    return rows.kept(~days), values[~days], names


def _zone_days(rows: InputTable) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([rows.keys, rows.dates])


def _unmatched(prices: InputTable, weather: InputTable, place: np.ndarray) -> list[str]:
    """Zones and days that only one of the tables has, or that the tables have at different times."""
    priced, covered, both = set(prices.keys), set(weather.keys), set(prices.keys[place >= 0])
    reasons = (
        (priced - covered, "without weather"),
        (covered - priced, "without prices"),
        ((priced & covered) - both, "with no day that has both prices and weather"),
    )
    notes = [f"left out: zone {listed(sorted(zones))}, {why}" for zones, why in reasons if zones]
    alone = (place < 0) & pd.Series(prices.keys).isin(both).to_numpy()
    if (row := first_true(alone)) is not None:
        what = f"zone {prices.keys[row]}, {prices.dates[row]}"
        notes.append(f"left out: {what}, with prices and no weather{in_all(alone)}")
    return notes


def _facts_of(path: Path, zones: set[str], notes: list[str], periods: int) -> pd.DataFrame:
    """The lat, lon and demand of these zones, as far as a table of zones has them."""
    rows = InputTable.read(path, ZONE)
    if all(rows.first_of(names) is None for names in (LATITUDE, LONGITUDE, DEMAND)):
        raise ValueError(f"{path}: must have the columns zone, lat and lon (or demand), found {listed(rows.table.columns)}")
    rows.refuse_repeats()
    column = rows.first_of(DEMAND)
    if absent := listed(sorted(zones - set(rows.keys))):
        if column is not None and not np.isnan(rows.numbers(column)).all():
            raise ValueError(f"{path}: must have the demand of every zone or of none, found none of zone {absent}")
        notes.append(f"{path}: has no row for zone {absent}")
    return zone_facts(rows.kept(pd.Series(rows.keys).isin(zones).to_numpy()), periods)
