"""Files that markets publish, read as they are: ENTSO-E's CSV, Energy-Charts' JSON, and forecasts as epftoolbox has them.

Each becomes a table of prices by the hour and minute of the local day, which `daily_prices` makes days of. No key and no
network is needed: the user downloads the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl.named import listed
from dffl.tables.sources import Table
from dffl_studies.energy.data.columns import DATE, ZONE
from dffl_studies.energy.input_table import InputTable, read_table

CENTRAL = "Europe/Brussels"
"""The clock of the days of Energy-Charts' prices, which come in UTC."""
MTU, AREA, SEQUENCE = "MTU", "Area", "Sequence"
DAY_AHEAD = re.compile(r"Day-ahead Price [\[(](\w+)/(\w+)[\])]")
BEGIN = re.compile(r"(\d\d)[./](\d\d)[./](\d{4}) (\d\d):(\d\d)(?::\d\d)?")
NO_PRICE = ("", "-", "N/A", "n/e", "nan")
SINGLE = ("Without Sequence", "Sequence 1", "Sequence Sequence 1")
"""The auctions of ENTSO-E's table that are taken where there are several."""
EPF = ("Real price", "Price")


def published_prices(path: Path, forecast: str | None = None) -> InputTable | None:
    """The prices in a file of one of these layouts, or None where it is of another one.

    ``forecast`` names the column of a published forecast in the layout of epftoolbox.
    """
    if path.suffix == ".json":
        return _energy_charts(path)
    if not path.is_file() or path.suffix == ".parquet":
        return None
    names = _header(path)
    if any(name.startswith(MTU) for name in names) and any(DAY_AHEAD.match(name) for name in names):
        return _entsoe(path, read_table(path))
    if names[:1] == [""] and any(name in names for name in EPF):
        return _epf(path, forecast)
    return None


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV; none where it cannot be read, which is told when it is read as a table."""
    try:
        return [
            str(name) for name in pd.read_csv(path, nrows=1, header=None, dtype=str, encoding="utf-8-sig").iloc[0].fillna("")
        ]
    except (ValueError, OSError, EOFError, pd.errors.ParserError, UnicodeError):
        return []


def _entsoe(path: Path, read: Table) -> InputTable:
    """ENTSO-E's export of day-ahead prices, old (dots, one zone in a column's name) or new (slashes, a column of areas)."""
    table, names = read.frame, [str(name) for name in read.frame]
    mtu = next(name for name in names if name.startswith(MTU))
    column, (currency, unit) = next((name, match.groups()) for name in names if (match := DAY_AHEAD.match(name)))
    zone = next((name for name in names if name.startswith("BZN|")), None)
    used = ~table[column].astype(str).str.strip().isin(NO_PRICE).to_numpy()
    if SEQUENCE in table:
        used &= table[SEQUENCE].astype(str).isin(SINGLE).to_numpy()
    begin = table[mtu].astype(str).str.extract(BEGIN)
    if (row := first_true(begin.isna().any(axis=1) & used)) is not None:
        raise ValueError(f"{read.at(row)}: {mtu} must be as 31/01/2024 13:00 - ..., found {table[mtu].iloc[row]!r:.60}")
    if not used.any():
        raise ValueError(f"{path}: has no day-ahead price in {column!r}")
    name = (zone or path.stem).removeprefix("BZN|")
    areas = table[AREA].astype(str).str.removeprefix("BZN|") if AREA in table else pd.Series(name, table.index)
    day, month, year, hour, minute = (begin[place] for place in range(5))
    columns: dict[str, Any] = {
        "zone": areas,
        "date": year + "-" + month + "-" + day,
        "hour": hour,
        "minute": minute,
        "total": table[column],
    }
    columns |= {"currency": currency, "unit": unit}
    return InputTable(replace(read.take(np.flatnonzero(used)), frame=_timed(pd.DataFrame(columns)[used])), ZONE, DATE)


def _energy_charts(path: Path) -> InputTable:
    """A reply of Energy-Charts' `price`; the zone has the file's name, days are those of Central Europe."""
    fix = "save the reply of https://api.energy-charts.info/price?bzn=...&start=...&end=... as the zone's name and .json"
    try:
        reply: Any = json.loads(path.read_bytes())
        seconds, prices = np.array(reply["unix_seconds"], float), np.array(reply["price"], float)
        currency, unit = (part.strip() for part in str(reply.get("unit", "EUR / MWh")).replace("_", "/").split("/"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path}: cannot be read as prices of Energy-Charts ({type(error).__name__}: {error}); {fix}"
        ) from None
    if len(seconds) != len(prices) or not len(seconds):
        raise ValueError(f"{path}: must have as many prices as moments, found {len(prices)} and {len(seconds)}; {fix}")
    local = pd.Series(pd.to_datetime(seconds, unit="s", utc=True)).dt.tz_convert(CENTRAL)
    columns = {"zone": path.stem, "currency": currency, "unit": unit, "total": prices}
    table = pd.DataFrame(_moments(local.dt) | columns)
    used = ~np.isnan(prices)
    return _rows(path, table[used], np.flatnonzero(used) + 1)


def _epf(path: Path, forecast: str | None) -> InputTable:
    """Prices with published forecasts in the layout of epftoolbox: moments, the price, one column for each forecast."""
    table = pd.read_csv(path, encoding="utf-8-sig")
    price = next(name for name in EPF if name in table)
    others = [str(name) for name in table.columns[1:] if name != price]
    if forecast is not None and forecast not in others:
        raise ValueError(f"{path}: --forecast must be one of {listed(others)}, found {forecast!r:.60}")
    moments = pd.to_datetime(table.iloc[:, 0], errors="coerce")
    if (row := first_true(moments.isna())) is not None:
        raise ValueError(f"{path}, line {row + 2}: must begin with a moment, found {table.iloc[row, 0]!r:.60}")
    zone = path.name.split(".")[0].removeprefix("forecasts_")
    frame = pd.DataFrame(_moments(moments.dt) | {"zone": zone, "total": table[price]})
    if forecast is not None:
        frame["forecast"] = table[forecast]
    return _rows(path, frame, np.arange(len(frame)) + 2)


def _moments(when: Any) -> dict[str, pd.Series]:
    """The columns of moments."""
    columns = {"date": when.strftime("%Y-%m-%d"), "hour": when.hour}
    return columns if not when.minute.any() else columns | {"minute": when.minute}


def _rows(path: Path, table: pd.DataFrame, lines: np.ndarray) -> InputTable:
    """Prices as a table, with the line of each."""
    return InputTable.made(path, _timed(table), lines, ZONE, DATE)


def _timed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows; a column of minutes that are all 0 says nothing."""
    table = table.reset_index(drop=True)
    return table.drop(columns="minute") if "minute" in table and (pd.to_numeric(table["minute"]) == 0).all() else table
