"""Zones of an electricity market as clients: each buys some of the next 24 hours, knowing the weather and the weekday."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.federation import Client, Federation
from dffl.sets import TopK

HOURS = 24
FILES = ("prices.csv.gz", "weather.csv.gz")
WEATHER = ("tmean", "tmin", "tmax", "humidity", "wind", "dow")
"""The covariates of a zone and day, of those that the paper uses and the table has."""


def zones(folder: str | Path, first: str | None = None, last: str | None = None, demand_seed: int = 0) -> Federation:
    """The zones in ``folder``'s prices.csv.gz and weather.csv.gz, a sample a day from ``first`` to ``last``, in order of time.

    Prices have a row a zone, date and hour (``zone``, ``date``, ``hour``, ``total``), weather a row a zone and date. Each zone
    buys a whole number of hours a day, drawn once from 4 to 12. A neighbouring market's hub (NE_INTERNAL_HUB) is left out.
    """
    prices = _read(Path(folder) / FILES[0], ("zone", "date", "hour"), ("total",))
    weather = _read(Path(folder) / FILES[1], ("zone", "date"), WEATHER)
    names = sorted(set(prices["zone"]) & set(weather["zone"]) - {"NE_INTERNAL_HUB"})
    if not names:
        raise ValueError(f"{folder}: prices and weather have no zone in common")
    demands = np.random.default_rng(demand_seed).integers(4, 13, size=len(names))
    clients = []
    for name, demand in zip(names, demands, strict=True):
        hourly = prices[prices["zone"] == name].pivot_table(index="date", columns="hour", values="total")
        daily = weather[weather["zone"] == name].set_index("date")[list(WEATHER)]
        days = hourly.index.intersection(daily.index).sort_values()
        days = days[(days >= (first or "")) & (days <= (last or "9999"))]
        if days.empty:
            raise ValueError(
                f"{folder}: zone {name}: no day has prices and weather between {first or 'any'} and {last or 'any'}"
            )
        costs = hourly.loc[days]
        short = costs.index[costs.isna().any(axis=1)] if costs.shape[1] == HOURS else days
        if len(short):
            raise ValueError(f"{folder}: zone {name}, {short[0]}: every day must have {HOURS} prices, found fewer or more")
        clients.append(Client(name, daily.loc[days], costs.to_numpy(), TopK(HOURS, float(demand))))
    return Federation(clients)


def digest(folder: str | Path) -> str:
    """A fingerprint of the two tables in ``folder``."""
    content = hashlib.blake2b(digest_size=8)
    for name in FILES:
        content.update(_found(Path(folder) / name).read_bytes())
    return content.hexdigest()


def _found(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file; the folder must hold {' and '.join(FILES)}")
    return path


def _read(path: Path, keys: tuple[str, ...], values: tuple[str, ...]) -> pd.DataFrame:
    """A table with these columns, a row for each combination of the keys."""
    table = pd.read_csv(_found(path))
    for column in (*keys, *values):
        if column not in table:
            raise ValueError(f"{path}: must have a column {column!r}, found {', '.join(table.columns)}")
    again = table[table.duplicated(list(keys))]
    if len(again):
        which = ", ".join(f"{key} {again.iloc[0][key]}" for key in keys)
        raise ValueError(f"{path}: two rows for {which}; keep one of them")
    return table
