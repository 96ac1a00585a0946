"""Reading a panel, and everything that can be wrong with one: named by file, line, zone and date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.cases.energy.data.columns import DEMAND, LATITUDE, LONGITUDE, covariate, covariate_columns, price_columns
from dffl.cases.energy.data.panel import HOURS, Panel
from dffl.cases.energy.data.rows import Rows
from dffl.randomness import checked_seed

LEAST, MOST = 4, 12
"""Demands that are drawn, where a panel has none, are whole hours from the least to the most: the paper's."""


def read_panel(
    path: str | Path, covariates: Sequence[str] | None = None, without: Iterable[str] = (), demand_seed: int = 0
) -> Panel:
    """Read a panel from CSV or Parquet, in dffl's layout or in the one of the paper's authors.

    Every column of numbers that is no price, name, place or demand is a covariate, unless ``covariates`` names them (or is
    ``["all"]``); the weekday is added where the panel has none. Zones in ``without`` are left out. Where the panel has no
    demands, they are drawn once by ``demand_seed``.
    """
    rows, notes = Rows.read(Path(path)).without(set(without)), list[str]()
    columns, names = price_columns(rows), covariate_columns(rows, covariates, notes)
    rows = rows.only({*columns, *names, *DEMAND, *LATITUDE, *LONGITUDE})
    prices, values = np.empty((len(rows), len(columns))), np.empty((len(rows), len(names)))
    for place, name in enumerate(columns):
        prices[:, place] = rows.complete(name)
    for place, name in enumerate(names):
        values[:, place] = covariate(rows, name, ", or choose the covariates with --covariates")
    notes += _out_of_order(rows)
    return assemble(rows, prices, values, names, demand_seed, notes)


def assemble(
    rows: Rows, prices: np.ndarray, covariates: np.ndarray, names: Sequence[str], demand_seed: int, notes: list[str]
) -> Panel:
    """A panel of these prices and covariates, a line for each of the rows, and of the rows' demands and places."""
    numbers, zones = pd.factorize(rows.zones, sort=True)
    order = np.lexsort((rows.dates, numbers))
    rows.refuse_pairs()
    if (np.diff(order) != 1).any():  # else a large panel would be copied for nothing
        prices, covariates = prices[order], covariates[order]
    owners = np.searchsorted(numbers[order], np.arange(len(zones) + 1))
    demands = _once_a_zone(rows, DEMAND, order, owners)
    for demand, start in zip(() if demands is None else demands, owners, strict=False):
        check_demand(rows.at(order[start]), str(rows.first_of(DEMAND)), demand)
    unknown = np.full(len(zones), np.nan)
    places = [_once_a_zone(rows, column, order, owners) for column in (LATITUDE, LONGITUDE)]
    panel = Panel(
        source=str(rows.path),
        names=tuple(str(zone) for zone in zones),
        starts=owners,
        dates=rows.dates[order],
        prices=prices,
        covariates=covariates,
        covariate_names=tuple(names),
        demands=drawn_demands(len(zones), demand_seed) if demands is None else demands,
        places=np.stack([unknown if one is None else one for one in places], axis=1),
        demand_known=demands is not None,
        notes=tuple(notes),
    )
    return panel.noted([*_gaps(panel), *_constants(panel)])


def drawn_demands(count: int, seed: int) -> np.ndarray:
    """Whole hours, one number for each zone in order of their names."""
    return np.random.default_rng(checked_seed(seed, "demand_seed")).integers(LEAST, MOST + 1, size=count).astype(float)


def _once_a_zone(rows: Rows, names: Sequence[str], order: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
    """The number that each zone has of its own, the same in all its rows; None where the table does not tell."""
    column = rows.first_of(names)
    values = None if column is None else rows.numbers(column)[order]
    if values is None or np.isnan(values).all():
        return None
    first = np.repeat(values[starts[:-1]], np.diff(starts))
    other = np.flatnonzero((values != first) & ~(np.isnan(values) & np.isnan(first)))
    if len(other):
        found = f"found {told(values[other[0]])} after {told(first[other[0]])}"
        raise ValueError(f"{rows.at(order[other[0]])}: {column} must be the same on all days of a zone, {found}")
    return values[starts[:-1]]


def told(value: float) -> str:
    """A number for a message."""
    return "nothing" if np.isnan(value) else f"{value:.10g}"


def check_demand(where: str, column: str, demand: float) -> None:
    """Refuse what cannot be bought in a day."""
    if not 0 <= demand <= HOURS:
        raise ValueError(f"{where}: {column} must be from 0 to {HOURS} hours a day, found {told(demand)}")


def _out_of_order(rows: Rows) -> list[str]:
    order = np.argsort(pd.factorize(rows.zones)[0], kind="stable")
    zones, dates = rows.zones[order], rows.dates[order]
    back = np.flatnonzero((zones[1:] == zones[:-1]) & (dates[1:] < dates[:-1]))
    if not len(back):
        return []
    return [f"{rows.at(order[back[0] + 1])} stands behind a later day, {dates[back[0]]}: the days were put in order"]


def _gaps(panel: Panel) -> list[str]:
    """Days that a zone lacks between its first and its last."""
    found = []
    for zone in panel:
        steps = np.diff(zone.dates).astype(int)
        if (steps > 1).any():
            lacking = int((steps - 1).sum())
            days = "a day," if lacking == 1 else f"{lacking} days, the first"
            found.append(f"zone {zone.name} lacks {days} {zone.dates[np.argmax(steps > 1)] + 1}")
    if not found:
        return []
    more = f" ({len(found)} zones have gaps)" if len(found) > 1 else ""
    return [f"{found[0]}{more}: the last day before a gap stands for yesterday"]


def _constants(panel: Panel) -> list[str]:
    """Covariates that are the same on all days of a zone, and so tell its days apart by nothing."""
    notes = []
    flat = np.stack([(np.ptp(zone.covariates, axis=0) == 0) & (len(zone.dates) > 1) for zone in panel])
    for name, column in zip(panel.covariate_names, flat.T, strict=True):
        zones = [zone for zone, is_flat in zip(panel.names, column, strict=True) if is_flat]
        if zones:
            where = "every zone" if len(zones) == len(panel.names) else f"zone {', '.join(zones[:3])}"
            more = " and more" if 3 < len(zones) < len(panel.names) else ""
            notes.append(f"covariate {name} is constant at {where}{more}: it says nothing there")
    return notes
