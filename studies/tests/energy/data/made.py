"""Small panels and market tables, written where a test wants them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import Panel, read_panel

PRICES = [f"price_{hour}" for hour in range(24)]
FOLDER = Path(os.environ.get("DFFL_ENERGY_DATA", ""))
needs_real_files = pytest.mark.skipif(
    "DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the folder of real prices and weather"
)


def refused(message: str) -> Any:
    """Expects an error that says this and nothing else."""
    assert "\n" not in message
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def keys(zones: Sequence[str], days: int, start: str) -> pd.DataFrame:
    """One row per zone and day."""
    dates = np.datetime_as_string(np.datetime64(start) + np.arange(days))
    return pd.DataFrame({"zone": np.repeat(np.array(zones, object), days), "date": np.tile(dates, len(zones)).astype(object)})


def panel_table(zones: Sequence[str] = ("A", "B"), days: int = 3, start: str = "2021-01-01", seed: int = 0) -> pd.DataFrame:
    """A panel in dffl's layout: the first row is line 2 of its CSV."""
    rng, table = np.random.default_rng(seed), keys(zones, days, start)
    prices = pd.DataFrame(rng.normal(40, 5, (len(table), 24)).round(2), columns=PRICES)
    return table.join(prices).assign(tmean=rng.normal(10, 3, len(table)), wind=rng.normal(20, 3, len(table)))


def authors_table(zones: Sequence[str] = ("AECO", "PSEG"), days: int = 2) -> pd.DataFrame:
    """A panel as the paper's authors publish it; at each hour their congestion is the price less the mean over zones."""
    ours = panel_table(zones, days, "2025-01-01")
    own = ours[PRICES] - ours.groupby("date")[PRICES].transform("mean")
    prices = ours[PRICES].set_axis([f"total_lmp_{hour}" for hour in range(24)], axis=1)
    table = pd.DataFrame({"client_id": np.repeat(np.arange(len(zones)) + 1, days), "date": ours["date"]})
    table = table.join(prices).join(own.set_axis([f"congestion_{hour}" for hour in range(24)], axis=1))
    weather = ("temp_c_mean", "temp_c_min", "temp_c_max", "humidity_mean", "wind_speed_mean")
    for name in (*weather, "solar_irradiance_mean", "solar_irradiance_max"):
        table[name] = np.random.default_rng(len(name)).normal(size=len(table))
    return table.assign(
        day_of_week=np.tile((2 + np.arange(days)) % 7, len(zones)), bess=table["client_id"] + 5, client_name=ours["zone"]
    )


def hourly_table(zones: Sequence[str] = ("A", "B"), days: int = 2, start: str = "2021-11-06") -> pd.DataFrame:
    """Prices by the hour, 1000 a zone and 100 a day and the square of the hour; 6 November 2021 is a Saturday."""
    table = keys(zones, days, start)
    table = table.loc[np.repeat(table.index, 24)].reset_index(drop=True)
    zone, day, hour = np.indices((len(zones), days, 24)).reshape(3, -1)
    return table.assign(hour=hour, total=1000.0 * zone + 100.0 * day + hour**2)


def weather_table(zones: Sequence[str] = ("A", "B"), days: int = 2, start: str = "2021-11-06") -> pd.DataFrame:
    """Weather by the day: row r has tmean r and wind 10 r."""
    table = keys(zones, days, start)
    return table.assign(tmean=np.arange(len(table)) * 1.0, wind=np.arange(len(table)) * 10.0)


def write(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as its file's name says."""
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)
    return path


class ZoneDays(NamedTuple):
    """The rows of one zone of a panel."""

    dates: np.ndarray
    prices: np.ndarray
    covariates: np.ndarray


def zone_days(panel: Panel, zone: str) -> ZoneDays:
    """The days of one zone, in order."""
    rows = panel.rows(zone)
    return ZoneDays(panel.dates[rows], panel.prices[rows], panel.covariates[rows])


def made_panel(folder: Path, zones: Sequence[str] = ("A", "B"), days: int = 30, **changes: Any) -> Panel:
    """A panel that was written and read."""
    return read_panel(write(panel_table(zones, days).assign(**changes), folder / "made.parquet"))
