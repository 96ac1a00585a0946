"""A panel from two tables: prices by the hour and weather by the day.

Days keep their 24 hours: an hour that the clocks repeat in autumn is averaged, one or two missing hours (such as the one
that the clocks leave out in spring) are interpolated, and a day that lacks more is left out. What was done is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.cases.energy.data.columns import (
    ALL,
    CALENDAR,
    COMPONENTS,
    DEMAND,
    LATITUDE,
    LONGITUDE,
    NEITHER,
    checked_covariates,
    mostly_numbers,
    papers_covariates,
)
from dffl.cases.energy.data.panel import HOURS, PRICES, Panel
from dffl.cases.energy.data.reading import assemble, check_demand, told
from dffl.cases.energy.data.rows import Rows, ZoneRows, weekday
from dffl.data.tables import some

PRICE = ("total", "price", "lmp", "total_lmp")
MOST_MISSING = 2
"""Hours that a day may lack and keep its place."""
CENTS = 0.05
"""How far a price may lie from the sum of its components, for rounding."""
SUNDAY, AUTUMN, SMALL_HOURS = 6, (9, 10, 11), 4
"""When clocks are turned back: on one such day a year, in one of the first hours."""
KEY = ["zone", "date"]


def build_panel(
    prices: str | Path, weather: str | Path, zones: str | Path | None = None, covariates: Sequence[str] | None = None,
    without: Iterable[str] = (), demand_seed: int = 0,
) -> Panel:  # fmt: skip
    """A panel from a table of prices (zone, date, hour, total) and one of weather (zone, date, covariates).

    ``zones`` is a table with each zone's lat and lon, and its demand where that is known. ``covariates`` names the columns
    of the weather to keep, or is ``["all"]``; by default those that the paper uses, if any is there, else all. The weekday
    is added where the weather has none.
    """
    notes, left_out = list[str](), set(without)
    hourly, daily = Rows.read(Path(prices)).without(left_out), Rows.read(Path(weather))
    daily = daily.without(left_out & set(daily.zones))
    table = daily_prices(hourly, notes)
    known = _weather(daily, covariates, notes)
    place = pd.MultiIndex.from_frame(known[KEY]).get_indexer(pd.MultiIndex.from_frame(table[KEY]))
    matched = table.loc[place >= 0].reset_index(drop=True)
    if matched.empty:
        raise ValueError(f"{prices} and {weather} have no zone and day in common; zones must have the same names in both")
    notes += _unmatched(table, known, matched)
    facts = matched[KEY]
    if zones is not None:
        facts = facts.merge(_zone_facts(Path(zones), set(matched["zone"]), notes), on="zone", how="left")
    values = known.drop(columns=KEY).iloc[place[place >= 0]]
    rows = Rows(Path(prices), facts, matched["line"].to_numpy())
    names = [str(name) for name in values.columns]
    return assemble(rows, matched[list(PRICES)].to_numpy(), values.to_numpy(float), names, demand_seed, notes)


def daily_prices(rows: Rows, notes: list[str]) -> pd.DataFrame:
    """A row a zone and day with 24 prices, from a row an hour; ``line`` is where the day begins in the file."""
    column = rows.first_of(PRICE)
    rows.require(["hour", *(PRICE[:1] if column is None else ())])
    values, hours = rows.numbers(str(column)), _hours(rows, notes)
    _check_components(rows, values, notes)
    values, hours, rows = _repeated(rows, values, hours, notes)
    (zone, _), day = pd.factorize(rows.zones, sort=True), rows.dates.astype(int)
    _, first, number = np.unique(zone * (np.ptp(day) + 1) + day - day.min(), return_index=True, return_inverse=True)
    grid = np.full((len(first), HOURS), np.nan)
    grid[number, hours] = values
    zones, dates = rows.zones[first], rows.dates[first]
    kept = _mended(rows, grid, zones, dates, notes)
    table = pd.DataFrame(grid, columns=list(PRICES))
    table.insert(0, "zone", zones)
    table.insert(1, "date", np.datetime_as_string(dates).astype(object))
    return table.assign(line=rows.lines[first]).loc[kept].reset_index(drop=True)


def _hours(rows: Rows, notes: list[str]) -> np.ndarray:
    """The hour of each row, 0 to 23."""
    hours = rows.numbers("hour")
    known = hours[~np.isnan(hours)]
    first = 1 if len(known) and known.min() >= 1 and known.max() >= HOURS else 0
    wrong = np.flatnonzero(~((hours >= first) & (hours < first + HOURS) & (hours == np.floor(hours))))
    if len(wrong):
        raise ValueError(
            f"{rows.at(wrong[0])}: hour must be a whole number from 0 to {HOURS - 1}, or from 1 to {HOURS} throughout, found "
            f"{told(hours[wrong[0]])}; number the hours of a day of 25 by the clock, the repeated one twice"
        )
    if first:
        notes.append(f"{rows.path}: hours are numbered 1 to {HOURS}: hour 1 was read as the one that begins at midnight")
    return hours.astype(int) - first


def _check_components(rows: Rows, values: np.ndarray, notes: list[str]) -> None:
    """Note a price that is not the sum of its components: a sign may be wrong."""
    if all(name in rows.table for name in COMPONENTS):
        gap = np.abs(values - sum(rows.numbers(name) for name in COMPONENTS))
        wrong = np.flatnonzero(gap > CENTS)
        if len(wrong):
            row = wrong[0]
            notes.append(
                f"{_at_hour(rows, row)}: the price is {gap[row]:.2f} off energy + congestion + loss "
                f"({len(wrong)} such rows in all); the price was taken as it is"
            )


def _at_hour(rows: Rows, row: int) -> str:
    """A row with its hour, as the file numbers it."""
    return f"{rows.at(row)}, hour {float(rows.table['hour'].iloc[row]):g}"


def _repeated(rows: Rows, values: np.ndarray, hours: np.ndarray, notes: list[str]) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Average the hour that the clocks repeat in autumn; any other second row for an hour is refused."""
    frame = pd.DataFrame({"zone": rows.zones, "date": rows.dates, "hour": hours})
    twin = frame.duplicated().to_numpy()
    again = np.flatnonzero(twin)
    if not len(again):
        return values, hours, rows
    dates = rows.dates[again]
    months = dates.astype("datetime64[M]").astype(int) % 12 + 1
    by_clock = (weekday(dates) == SUNDAY) & np.isin(months, AUTUMN) & (hours[again] < SMALL_HOURS)
    # Clocks are turned back once a year.
    by_clock &= ~pd.DataFrame({"zone": rows.zones[again], "year": dates.astype("datetime64[Y]")}).duplicated().to_numpy()
    if not by_clock.all():
        row = again[np.argmin(by_clock)]
        same = np.flatnonzero((rows.zones == rows.zones[row]) & (rows.dates == rows.dates[row]) & (hours == hours[row]))
        raise ValueError(f"{_at_hour(rows, row)}: a second row for this hour, after {rows.line(same[0])}; keep one of them")
    mean = pd.Series(values).groupby([frame["zone"], frame["date"], frame["hour"]], sort=False).transform("mean").to_numpy()
    count = f" ({len(again)} such hours in all)" if len(again) > 1 else ""
    notes.append(f"{_at_hour(rows, again[0])} stands there twice, as the clocks repeat it: averaged{count}")
    return mean[~twin], hours[~twin], rows.kept(~twin)


def _mended(rows: Rows, grid: np.ndarray, zones: np.ndarray, dates: np.ndarray, notes: list[str]) -> np.ndarray:
    """Interpolate single missing hours in place, within their day; which days are complete then."""
    lacking = np.isnan(grid).sum(axis=1)
    few, many = (lacking > 0) & (lacking <= MOST_MISSING), lacking > MOST_MISSING
    if many.all():
        found = f"zone {zones[0]}, {dates[0]} lacks {lacking[0]} of {HOURS}"
        raise ValueError(f"{rows.path}: no day has the price of at least {HOURS - MOST_MISSING} hours, found that {found}")
    for place in np.flatnonzero(few):
        day = grid[place]
        # From hours of the same day alone: one of the next day would tell what yesterday's prices must not know.
        there = np.flatnonzero(~np.isnan(day))
        day[:] = np.interp(np.arange(HOURS), there, day[there])
    for which, done in ((few, "interpolated within the day"), (many, "the day was left out")):
        if which.any():
            first, count = int(np.argmax(which)), int(which.sum())
            what = f"zone {zones[first]}, {dates[first]} lacks {lacking[first]} of {HOURS} hours: {done}"
            notes.append(f"{rows.path}: {what}{f' ({count} such zone-days in all)' if count > 1 else ''}")
    return ~many


def _weather(rows: Rows, wanted: Sequence[str] | None, notes: list[str]) -> pd.DataFrame:
    """The weather of each zone and day: the columns that are asked for, or those that the paper uses, and the weekday."""
    names = _covariate_names(rows, wanted, notes)
    table = pd.DataFrame({"zone": rows.zones, "date": np.datetime_as_string(rows.dates).astype(object)})
    rows.refuse_pairs()
    values = {name: rows.numbers(name) if name in rows.table else weekday(rows.dates).astype(float) for name in names}
    empty = np.isnan(np.stack(list(values.values()), axis=1))
    days = empty.any(axis=1)
    if days.any():
        first, count = int(np.argmax(days)), int(days.sum())
        lacks = f"{rows.at(first)}: {names[int(np.argmax(empty[first]))]} is missing"
        if days.all():
            raise ValueError(f"{lacks}, and something on every day; choose the covariates with --covariates")
        notes.append(f"{lacks}: the day was left out{f' ({count} such zone-days in all)' if count > 1 else ''}")
    return table.assign(**values).loc[~days].reset_index(drop=True)


def _covariate_names(rows: Rows, wanted: Sequence[str] | None, notes: list[str]) -> list[str]:
    """The columns of the weather to keep."""
    if wanted is not None and list(wanted) != ALL:
        return checked_covariates(rows, wanted)
    plain = [name for name in rows.table.columns if name not in NEITHER and name not in PRICES]
    numeric = [name for name in plain if mostly_numbers(rows.table[name])]
    if not numeric:
        raise ValueError(f"{rows.path}: must have at least one column of numbers beside zone and date, found none")
    names = numeric if wanted is not None else papers_covariates(numeric)
    if others := [name for name in numeric if name not in names]:
        notes.append(f"{rows.path}: left out {', '.join(others)}, which the paper does not use (--covariates all takes them)")
    if texts := [name for name in plain if name not in numeric]:
        notes.append(f"{rows.path}: left out {', '.join(texts)}, which hold no numbers")
    return names if set(names) & set(CALENDAR) else [*names, CALENDAR[0]]


def _unmatched(prices: pd.DataFrame, weather: pd.DataFrame, matched: pd.DataFrame) -> list[str]:
    """Zones and days that only one of the tables has, or that the tables have at different times."""
    priced, covered, both = set(prices["zone"]), set(weather["zone"]), set(matched["zone"])
    reasons = (
        (priced - covered, "without weather"),
        (covered - priced, "without prices"),
        ((priced & covered) - both, "with no day that has both prices and weather"),
    )
    notes = [f"left out: zone {some(zones)}, {why}" for zones, why in reasons if zones]
    alone = prices[prices["zone"].isin(both)].merge(matched[KEY], on=KEY, how="left", indicator=True)
    alone = alone[alone["_merge"] == "left_only"]
    if len(alone):
        more = f" ({len(alone)} such zone-days in all)" if len(alone) > 1 else ""
        notes.append(f"left out: zone {alone['zone'].iloc[0]}, {alone['date'].iloc[0]}, with prices and no weather{more}")
    return notes


def _zone_facts(path: Path, zones: set[str], notes: list[str]) -> pd.DataFrame:
    """What a table of zones tells of them: lat, lon and demand."""
    rows = ZoneRows.read(path)
    columns = {names[0]: column for names in (LATITUDE, LONGITUDE, DEMAND) if (column := rows.first_of(names)) is not None}
    if not columns:
        raise ValueError(f"{path}: must have the columns zone, lat and lon (or demand), found {', '.join(rows.table.columns)}")
    again = np.flatnonzero(pd.Series(rows.zones).duplicated().to_numpy())
    if len(again):
        first = int(np.argmax(rows.zones == rows.zones[again[0]]))
        raise ValueError(f"{rows.at(again[0])}: a second row for this zone, after {rows.line(first)}; keep one of them")
    facts = pd.DataFrame({"zone": rows.zones} | {name: rows.numbers(column) for name, column in columns.items()})
    absent = zones - set(rows.zones)
    if absent:
        notes.append(f"{path}: says nothing of zone {some(absent)}")
    if DEMAND[0] in facts and facts[DEMAND[0]].notna().any():
        for row in np.flatnonzero(facts["zone"].isin(zones)):
            check_demand(rows.at(int(row)), columns[DEMAND[0]], facts[DEMAND[0]].iloc[row])
        if absent:
            raise ValueError(f"{path}: must tell the demand of every zone or of none, found none of zone {some(absent)}")
    return facts
