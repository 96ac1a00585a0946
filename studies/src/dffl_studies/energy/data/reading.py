"""Reading a panel. Messages on what is wrong with it name the file, line, zone and date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl.randomness import Purpose, checked_seed, stream
from dffl_studies.energy.data.columns import (
    DATE,
    DEMAND,
    LATITUDE,
    LONGITUDE,
    MONEY,
    ZONE,
    covariate,
    covariate_columns,
    forecast_columns,
    price_columns,
)  # fmt: skip
from dffl_studies.energy.data.money import AS_IN_FILE, Money
from dffl_studies.energy.data.panel import HOURS, Panel, filled, is_skipped_hour
from dffl_studies.energy.input_table import EVERY_DAY, Days, InputTable, shown

LEAST, MOST = 4, 12
"""The range of random demands, in whole hours of 24, for panels without demands: the paper's."""


def read_panel(
    path: str | Path | InputTable, covariates: Sequence[str] | None = None, without: Iterable[str] = (), demand_seed: int = 0,
    days: Days = EVERY_DAY, papers_only: bool = False, money: Money = AS_IN_FILE,
) -> Panel:  # fmt: skip
    """Read a panel from CSV or Parquet, in dffl's layout or in the one of the paper's authors.

    Every column of numbers that is no price, name, place or demand is a covariate, unless ``covariates`` names them (or is
    ``["all"]``); the weekday is added where the panel has none. Zones in ``without`` are left out. Where the panel has no
    demands, they are random numbers from ``demand_seed``. Only the rows of ``days`` are read; with ``papers_only``, only the
    covariates that the paper uses.
    """
    rows = path if isinstance(path, InputTable) else InputTable.read(Path(path), ZONE, DATE)
    rows, notes = days.of(rows.without(set(without))), list[str]()
    columns = price_columns(rows)
    names = covariate_columns(rows, covariates, notes, columns, papers_only)
    forecasts = forecast_columns(rows, len(columns))
    rows = rows.only({*columns, *names, *forecasts, *DEMAND, *LATITUDE, *LONGITUDE, *MONEY})
    rows, prices = _whole_days(rows, columns, notes)
    rate, currency, unit = money.of(rows, notes)
    prices *= rate if isinstance(rate, float) else rate[:, None]
    values = np.empty((len(rows), len(names)))
    for place, name in enumerate(names):
        values[:, place] = covariate(rows, name, ", or choose the covariates with --covariates")
    forecast = np.stack([rows.complete(name) * rate for name in forecasts], axis=1) if forecasts else None
    rows.refuse_repeats()
    notes += _out_of_order(rows)
    facts = zone_facts(rows, len(columns))
    panel = assemble(rows, prices, values, names, facts, demand_seed, notes, forecast)
    return replace(panel, currency=currency, unit=unit)


def _whole_days(rows: InputTable, columns: list[str], notes: list[str]) -> tuple[InputTable, np.ndarray]:
    """The rows with their prices. The hour that clocks leave out is filled, and a last day that is not complete left out."""
    prices = np.empty((len(rows), len(columns)))
    for place, name in enumerate(columns):
        prices[:, place] = rows.numbers(name)
    empty = np.isnan(prices)
    if not empty.any():
        return rows, prices
    used = np.ones(len(rows), bool)
    newest = pd.Series(rows.dates).groupby(rows.keys).transform("max").to_numpy()
    for row in np.flatnonzero(empty.any(axis=1)).tolist():
        has_value = ~empty[row]
        if is_skipped_hour(rows.dates[row], empty[row]):
            prices[row] = filled(prices[row])
            notes.append(f"{rows.at(row)}: the hour that the clocks leave out was filled by its neighbours")
        elif (
            len(columns) > HOURS
            and has_value.sum() == HOURS
            and (has_value[:HOURS].all() or has_value[:: len(columns) // HOURS].all())
        ):
            fix = "use days of one kind (--from, --to), or write each hour's price into all of its periods"
            raise ValueError(f"{rows.at(row)}: has {HOURS} prices where other days have {len(columns)}; {fix}")
        elif rows.dates[row] == newest[row] and (rows.dates < newest[row]).any():
            used[row] = False
            notes.append(f"{rows.at(row)}: the last day has {has_value.sum()} of {len(columns)} prices, and was left out")
        else:
            rows.complete(columns[int(np.argmax(empty[row]))])
    return rows.kept(used), prices[used]


def assemble(
    rows: InputTable, prices: np.ndarray, covariates: np.ndarray, names: Sequence[str], facts: pd.DataFrame,
    demand_seed: int, notes: list[str], forecast: np.ndarray | None = None,
) -> Panel:  # fmt: skip
    """A panel of prices and covariates, one line for each of the rows, and of what is known of the zones."""
    numbers, zones = pd.factorize(rows.keys, sort=True)
    order = np.lexsort((rows.dates, numbers))
    if (np.diff(order) != 1).any():  # else a large panel would be copied for nothing
        prices, covariates = prices[order], covariates[order]
        forecast = None if forecast is None else forecast[order]
    facts = facts.reindex(zones)
    known = DEMAND[0] in facts
    panel = Panel(
        source=str(rows.path),
        names=tuple(str(zone) for zone in zones),
        starts=np.searchsorted(numbers[order], np.arange(len(zones) + 1)),
        dates=rows.dates[order],
        prices=prices,
        covariates=covariates,
        covariate_names=tuple(names),
        demands=facts[DEMAND[0]].to_numpy(float) if known else random_demands(zones, demand_seed, prices.shape[1]),
        places=facts.reindex(columns=[LATITUDE[0], LONGITUDE[0]]).to_numpy(float),
        demand_known=known,
        forecast=forecast,
        notes=tuple(notes),
    )
    return panel.noted([*_gaps(panel), *_constants(panel)])


def zone_facts(rows: InputTable, periods: int = HOURS) -> pd.DataFrame:
    """One row per zone: its lat, lon and demand, if the table has them; each must be the same in all rows of a zone."""
    codes, zones = pd.factorize(rows.keys)
    first, facts = np.unique(codes, return_index=True)[1], pd.DataFrame(index=zones)
    for names in (LATITUDE, LONGITUDE, DEMAND):
        column = rows.first_of(names)
        values = np.full(len(rows), np.nan) if column is None else rows.numbers(column)
        if np.isnan(values).all():
            continue
        expected = values[first][codes]
        if (row := first_true((values != expected) & ~(np.isnan(values) & np.isnan(expected)))) is not None:
            shown_values = f"found {shown(values[row])} after {shown(expected[row])}"
            raise ValueError(f"{rows.at(row)}: {column} must be the same on all days of a zone, {shown_values}")
        if names is DEMAND and (row := first_true(~((values >= 0) & (values <= periods)))) is not None:
            kind = "hours" if periods == HOURS else "periods"
            raise ValueError(f"{rows.at(row)}: {column} must be from 0 to {periods} {kind} a day, found {shown(values[row])}")
        facts[names[0]] = values[first]
    return facts


def random_demands(zones: Iterable[str], seed: int, periods: int = HOURS) -> np.ndarray:
    """A whole number of periods for each zone, drawn by its name: it does not depend on the other zones."""
    checked_seed(seed, "demand_seed")
    least, most = (max(1, round(hours * periods / HOURS)) for hours in (LEAST, MOST))
    draws = [stream(seed, Purpose.EXAMPLE, f"demand of {zone}").integers(least, most + 1) for zone in zones]
    return np.array(draws, float)


def demands_in_order(count: int, seed: int) -> np.ndarray:
    """The random demands of the paper's protocol, as version 0.2.0 drew them: in the order of the zones."""
    return np.random.default_rng(seed).integers(LEAST, MOST + 1, size=count).astype(float)


def _out_of_order(rows: InputTable) -> list[str]:
    order = np.argsort(pd.factorize(rows.keys)[0], kind="stable")
    zones, dates = rows.keys[order], rows.dates[order]
    back = first_true((zones[1:] == zones[:-1]) & (dates[1:] < dates[:-1]))
    return [] if back is None else [f"{rows.at(order[back + 1])} follows a later day, {dates[back]}: the days were sorted"]


def _gaps(panel: Panel) -> list[str]:
    """Days that are missing between the first and the last day of a zone."""
    gaps = []
    for name, rows in panel.zones.items():
        dates = panel.dates[rows]
        steps = np.diff(dates).astype(int)
        if (steps > 1).any():
            missing = int((steps - 1).sum())
            days = "a day is missing," if missing == 1 else f"{missing} days are missing, the first"
            gaps.append(f"zone {name}: {days} {dates[np.argmax(steps > 1)] + 1}")
    if not gaps:
        return []
    more = f" ({len(gaps)} zones have gaps)" if len(gaps) > 1 else ""
    return [f"{gaps[0]}{more}; the last day before a gap is used as yesterday"]


def _constants(panel: Panel) -> list[str]:
    """Covariates that are the same on all days of a zone, and so cannot distinguish its days."""
    notes = []
    parts = [panel.covariates[rows] for rows in panel.zones.values()]
    flat = np.stack([(np.ptp(part, axis=0) == 0) & (len(part) > 1) for part in parts])
    for name, column in zip(panel.covariate_names, flat.T, strict=True):
        zones = [zone for zone, is_flat in zip(panel.names, column, strict=True) if is_flat]
        if zones:
            where = "every zone" if len(zones) == len(panel.names) else f"zone {', '.join(zones[:3])}"
            more = " and more" if 3 < len(zones) < len(panel.names) else ""
            notes.append(f"covariate {name} is constant at {where}{more}: it has no effect there")
    return notes
