"""A panel from its file, from a table of prices, or from a folder with the tables of a market."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from dffl.tables.sources import open_source
from dffl_studies.energy.data.columns import DATE, DEMAND, ZONE
from dffl_studies.energy.data.hourly import HOUR, PERIOD, build_panel
from dffl_studies.energy.data.layouts import published_prices
from dffl_studies.energy.data.money import AS_IN_FILE, Money
from dffl_studies.energy.data.panel import Panel
from dffl_studies.energy.data.reading import read_panel
from dffl_studies.energy.input_table import EVERY_DAY, Days, InputTable

PRICES, WEATHER, ZONES = "prices.csv.gz", "weather.csv.gz", "zones.csv"


def open_panel(
    path: str | Path, without: Iterable[str] = (), covariates: list[str] | None = None, demand_seed: int = 0,
    days: Days = EVERY_DAY, papers_only: bool = False, money: Money = AS_IN_FILE, forecast: str | None = None,
) -> Panel:  # fmt: skip
    """A panel from its file; from a table of prices by the hour; or from a folder with prices.csv.gz and, if there,
    weather.csv.gz and zones.csv.

    Of a file, ``papers_only`` takes the covariates that the paper uses, as is always done of a folder. ``forecast`` names the
    column of a published forecast, where a file of epftoolbox has several.
    """
    path = Path(path)
    if path.is_dir():
        prices = _tables(path)[0]
        weather, zones = (path / name if (path / name).is_file() else None for name in (WEATHER, ZONES))
        return build_panel(prices, weather, zones, covariates, without, demand_seed, days, money)
    if (published := published_prices(path, forecast)) is not None:
        return build_panel(published, None, None, None, without, demand_seed, days, money)
    rows = InputTable.read(path, ZONE, DATE)
    if rows.first_of((HOUR, PERIOD)) is not None:
        return build_panel(rows, None, None, None, without, demand_seed, days, money)
    return read_panel(rows, covariates, without, demand_seed, days, papers_only, money)


def panel_files(path: Path) -> list[Path]:
    """The files that `open_panel` reads, some of which need not be there."""
    return [path / name for name in (PRICES, WEATHER, ZONES)] if path.is_dir() else [path]


def digest(path: str | Path) -> str:
    """A digest of a panel's file, or of the tables in a folder that decisions depend on: a table of places does not count."""
    path, content = Path(path), hashlib.blake2b(digest_size=8)
    files = _tables(path) if path.is_dir() else [path]
    zones = path / ZONES
    if zones.is_file() and any(name in open_source(zones).columns for name in DEMAND):
        files.append(zones)
    for file in files:
        if not file.is_file():
            raise ValueError(f"{file}: there is no such file")
        content.update(file.read_bytes())
    return content.hexdigest()


def _tables(folder: Path) -> list[Path]:
    """The table of prices, and that of the weather where it is there."""
    if not (folder / PRICES).is_file():
        raise ValueError(f"{folder / PRICES}: there is no such file; the folder must hold {PRICES} (and {WEATHER})")
    return [folder / name for name in (PRICES, WEATHER) if (folder / name).is_file()]
