"""A panel from a table of hourly prices and one of daily weather."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl.named import listed
from dffl_studies.energy.data.clocks import weekday
from dffl_studies.energy.data.columns import CALENDAR, DATE, DEMAND, FORECAST, LATITUDE, LONGITUDE, ZONE, covariate_columns
from dffl_studies.energy.data.daily_prices import daily_prices, in_all
from dffl_studies.energy.data.days import EVERY_DAY, Days
from dffl_studies.energy.data.money import AS_IN_FILE, Money
from dffl_studies.energy.data.panel import Panel
from dffl_studies.energy.data.reading import assemble, zone_facts
from dffl_studies.energy.input_table import InputTable


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
        known, found, names = _weather(daily.without(left_out & set(daily.keys)), covariates, notes)
        place = _zone_days(known).get_indexer(_zone_days(days))
        if not (place >= 0).any():
            raise ValueError(
                f"{hourly.path} and {weather} have no zone and day in common; zones must have the same names in both"
            )
        notes += _unmatched(days, known, place)
        days, grid, values = days.kept(place >= 0), grid[place >= 0], found[place[place >= 0]]
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
