"""A panel from its file, or from a folder with the tables of a market."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from dffl_studies.energy.data.columns import DEMAND
from dffl_studies.energy.data.days import EVERY_DAY, Days
from dffl_studies.energy.data.hourly import build_panel
from dffl_studies.energy.data.panel import Panel
from dffl_studies.energy.data.reading import read_panel
from dffl_studies.energy.input_table import read_table

FILES = ("prices.csv.gz", "weather.csv.gz")
ZONES = "zones.csv"


def open_panel(
    path: str | Path, without: Iterable[str] = (), covariates: list[str] | None = None, demand_seed: int = 0,
    days: Days = EVERY_DAY, papers_only: bool = False,
) -> Panel:  # fmt: skip
    """A panel from its file, or from a folder with prices.csv.gz, weather.csv.gz and, if there, zones.csv.

    Of a file, ``papers_only`` takes the covariates that the paper uses, as is always done of a folder.
    """
    path = Path(path)
    if not path.is_dir():
        return read_panel(path, covariates, without, demand_seed, days, papers_only)
    prices, weather = _tables(path)
    zones = path / ZONES
    return build_panel(prices, weather, zones if zones.is_file() else None, covariates, without, demand_seed, days)


def panel_files(path: Path) -> list[Path]:
    """The files that `open_panel` reads, some of which need not be there."""
    return [path / name for name in (*FILES, ZONES)] if path.is_dir() else [path]


def digest(path: str | Path) -> str:
    """A digest of a panel's file, or of the tables in a folder that decisions depend on: a table of places does not count."""
    path, content = Path(path), hashlib.blake2b(digest_size=8)
    files = _tables(path) if path.is_dir() else [path]
    zones = path / ZONES
    if zones.is_file() and any(name in read_table(zones)[0] for name in DEMAND):
        files.append(zones)
    for file in files:
        if not file.is_file():
            raise ValueError(f"{file}: there is no such file")
        content.update(file.read_bytes())
    return content.hexdigest()


def _tables(folder: Path) -> list[Path]:
    for name in FILES:
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name}: there is no such file; the folder must hold {' and '.join(FILES)}")
    return [folder / name for name in FILES]
