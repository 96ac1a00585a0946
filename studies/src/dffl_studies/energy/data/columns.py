"""The meaning of a panel's columns: prices, covariates, and what is neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from dffl.named import listed
from dffl_studies.energy.data.panel import HOURS, weekday
from dffl_studies.energy.input_table import InputTable, numbers_in

ZONE, DATE = ("zone", "client_name", "client_id"), "date"
"""The keys of a table: the zone, by our name or by those of the paper's authors, and the day."""
DEMAND = ("demand", "bess")
"""The paper's authors call a zone's demand bess."""
LATITUDE, LONGITUDE = ("lat", "latitude"), ("lon", "longitude")
PRICE = ("price", "total_lmp", "lmp", "total")
"""The names that the columns of prices may have, before the underscore and the number of the period."""
FORECAST = "forecast"
"""The same for a forecast of the prices that was published before the day."""
CLOCK_CHANGES = {23: 24, 25: 24, 46: 48, 50: 48, 92: 96, 100: 96}
"""Numbers of periods that only the days have on which clocks are changed, and those of other days."""
COMPONENTS = ("energy", "congestion", "loss")
"""The hourly components of a price: known together with the price, and not before."""
CALENDAR = ("day_of_week", "dow", "weekday")
PAPERS = (
    ("tmean", "temp_c_mean"), ("tmin", "temp_c_min"), ("tmax", "temp_c_max"), ("humidity", "humidity_mean"),
    ("wind", "wind_speed_mean"), ("solar_irradiance_mean",), ("solar_irradiance_max",), CALENDAR,
)  # fmt: skip
"""The covariates that the paper uses, by the names that they may have."""
MONEY = ("currency", "unit")
NEITHER = {*ZONE, DATE, *DEMAND, *LATITUDE, *LONGITUDE, "iso", "market", "filled", *MONEY}
"""Columns that are neither prices nor covariates."""
ALL = ["all"]
"""A request for every covariate that there is."""


def price_columns(rows: InputTable) -> list[str]:
    """The columns of prices in order of the periods: from 0 on, or from 1 on where they count periods that end."""
    families = _families(rows.table.columns)
    stems = [stem for stem in PRICE if stem in families]
    if not stems:
        named = listed(rows.table.columns, 8)
        raise ValueError(f"{rows.path}: must have a day's prices in columns price_0 to price_{HOURS - 1}, found {named}")
    stem = next((stem for stem in stems if _is_a_day(families[stem])), stems[0])
    family = families[stem]
    if not _is_a_day(family):
        first, last = min(family), max(family)
        missing = [f"{stem}_{hour}" for hour in range(first, last) if hour not in family]
        expected = CLOCK_CHANGES.get(len(family), last + 1 - min(first, 1))
        raise ValueError(
            f"{rows.path}: a day must have {expected} prices, {stem}_0 to {stem}_{expected - 1}, found {len(family)} columns, "
            f"{family[first]} to {family[last]}{f' without {missing[0]}' if missing else ''}; "
            "for days of 23 or 25 hours, build the panel with dffl energy panel"
        )
    return [family[hour] for hour in sorted(family)]


def forecast_columns(rows: InputTable, periods: int) -> list[str]:
    """The columns of a published forecast of the prices, in order of the periods; none where there is none."""
    family = _families(rows.table.columns).get(FORECAST, {})
    if not family:
        return []
    if len(family) != periods or not _is_a_day(family):
        wanted = f"{FORECAST}_0 to {FORECAST}_{periods - 1}"
        raise ValueError(f"{rows.path}: must have a forecast of every price, {wanted}, found {len(family)} such columns")
    return [family[hour] for hour in sorted(family)]


def covariate_columns(
    rows: InputTable, asked: Sequence[str] | None, notes: list[str], prices: Sequence[str] = (), papers_only: bool = False
) -> list[str]:
    """The covariates that are asked for; else all columns of numbers, except prices, names, places, demands and hourly columns.

    Columns by the hour (``name_0`` to ``name_23``) are left out unless they are asked for, and price components, such as the
    market's congestion, even then: they are known only with the price. The weekday is always among the covariates: it follows
    from the date if it is not a column (see `covariate`). With ``papers_only``, covariates that the paper does not use are
    left out too, unless all are asked for.
    """
    if asked is not None and list(asked) != ALL:
        return checked_covariates(rows, asked)
    families = _families(rows.table.columns)
    hourly = {stem for stem, family in families.items() if len(family) >= HOURS - 1 or stem in (*PRICE, *COMPONENTS, FORECAST)}
    plain = [name for name in rows.table.columns if name not in NEITHER and _stem(name) not in hourly]
    numeric = [name for name in plain if mostly_numbers(rows.table[name])]
    names = papers_covariates(numeric) if papers_only and asked is None else numeric
    left_out = {
        "by the hour; prices' components are known only with the prices": [
            f"{stem}_*" for stem in sorted(hourly - {FORECAST} - {_stem(price) for price in prices})
        ],
        "which the paper does not use (--covariates all takes them)": [name for name in numeric if name not in set(names)],
        "which hold no numbers": [name for name in plain if name not in set(numeric)],
    }
    notes += [f"{rows.path}: left out {', '.join(columns)}, {why}" for why, columns in left_out.items() if columns]
    if doubtful := [name for name in names if name in (*PRICE, *COMPONENTS) or re.search("price|lmp", name)]:
        notes.append(f"covariate {', '.join(doubtful)} has the name of a price: leave it out unless it is known the day before")
    return names if set(names) & set(CALENDAR) else [*names, CALENDAR[0]]


def checked_covariates(rows: InputTable, asked: Sequence[str]) -> list[str]:
    """The covariates that are asked for, each once, if they can be."""
    names = list(dict.fromkeys(asked))
    if not names:
        raise ValueError(f"{rows.path}: --covariates must name at least one column, found none")
    rows.require([name for name in names if name not in CALENDAR])
    for name in names:
        if _stem(name) in (*PRICE, *COMPONENTS):
            raise ValueError(f"{rows.path}: {name} cannot be a covariate: it is known only with the prices")
        if name in NEITHER:
            raise ValueError(f"{rows.path}: {name} cannot be a covariate: it does not describe a day")
    return names


def covariate(rows: InputTable, name: str, fix: str = "") -> np.ndarray:
    """A covariate of every row; the weekday follows from the date where the table does not have it."""
    return weekday(rows.dates).astype(float) if name in CALENDAR and name not in rows.table else rows.complete(name, fix)


def papers_covariates(columns: Iterable[str]) -> list[str]:
    """The columns that are the paper's covariates, in its order; all columns if at most the weekday is among them."""
    columns = list(columns)
    covariates = [name for names in PAPERS for name in names if name in columns]
    return covariates if set(covariates) - set(CALENDAR) else columns


def mostly_numbers(values: pd.Series) -> bool:
    """Whether a column should hold numbers: then a text in it is an error, and no reason to ignore the column."""
    filled = values.dropna()
    return len(filled) > 0 and bool(np.isnan(numbers_in(filled)[0]).mean() < 0.5)


def _stem(column: str) -> str | None:
    """The part of a name before an underscore and a number at its end."""
    match = re.fullmatch(r"(.+)_\d+", column)
    return match[1] if match else None


def _families(columns: Iterable[str]) -> dict[str, dict[int, str]]:
    """The columns that end in an underscore and a number, by the part before it and by the number."""
    families: dict[str, dict[int, str]] = {}
    for column in columns:
        if stem := _stem(column):
            families.setdefault(stem, {}).setdefault(int(column.rpartition("_")[2]), column)
    return families


def _is_a_day(family: dict[int, str]) -> bool:
    count = len(family)
    is_complete = sorted(family) in (list(range(count)), list(range(1, count + 1)))
    return is_complete and count > 1 and count not in CLOCK_CHANGES
