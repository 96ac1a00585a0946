"""A panel of a market, fetched: prices, the weather at each zone's reference city, and both put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.cache import user_cache
from dffl.cells import safe_csv
from dffl.files import write_whole
from dffl.named import listed
from dffl.progress import Progress
from dffl_studies.energy.data.hourly import build_panel
from dffl_studies.energy.data.panel import HOURS, Panel
from dffl_studies.energy.data.reading import read_panel
from dffl_studies.energy.fetch.download import Cache
from dffl_studies.energy.fetch.eia import fetch_eia
from dffl_studies.energy.fetch.open_meteo import fetch_open_meteo
from dffl_studies.energy.fetch.open_meteo_days import COVARIATES
from dffl_studies.energy.fetch.pjm import fetch_pjm
from dffl_studies.energy.fetch.places import place
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import Web, require_address
from dffl_studies.energy.input_table import InputTable, read_table

SOURCES = ("eia", "pjm", "authors")
AUTHORS = "https://raw.githubusercontent.com/kziliask/RSPO_Plus"
AUTHORS_FILE = "main/src/data/exp3/pjm_data.csv"
AUTHORS_COLUMNS = (
    "client_id", "date", *(f"{name}_{hour}" for name in ("total_lmp", "congestion") for hour in range(HOURS)), *COVARIATES,
    "day_of_week", "bess", "client_name",
)  # fmt: skip
"""What the authors' file must have. ``bess`` is the number of hours that a zone buys per day."""
NEW_YORK = "America/New_York"
DOLLARS = "USD"
"""The currency of all markets that are fetched."""
CLOCKS = {"miso": "EST", "ercot": "America/Chicago", "spp": "America/Chicago", "caiso": "America/Los_Angeles"}
"""The clocks by which a market's weather has its days; New York's for the others."""


@dataclass(frozen=True)
class FetchRequest:
    """What to fetch, and how."""

    source: str
    """eia; pjm, for PJM's own prices with a key; or authors, for the panel that the paper's authors publish."""
    market: str = "pjm"
    first: str = ""
    last: str = ""
    kind: str = "da"
    """da (day-ahead) or rt (real-time)."""
    places: Path | None = None
    """A table with zone, lat and lon, for zones whose reference city is not known here."""
    cache: Path | None = None
    """Where downloads are kept. None: in the cache of the user, next to compiled programs."""
    refresh: bool = False
    """Ask again for files that may have changed."""
    prices_from: str | None = None
    """The address of a mirror of the prices, instead of the source's own."""
    weather_from: str | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"SOURCE must be one of {', '.join(SOURCES)}, found {self.source!r}")
        if self.source == "pjm" and self.market != "pjm":
            raise ValueError(f"source pjm has prices of the market pjm only, found {self.market!r}; use eia")
        for option, address in (("--prices-from", self.prices_from), ("--weather-from", self.weather_from)):
            if address is not None:
                require_address(option, address)
        if self.places is not None and not self.places.is_file():
            raise ValueError(f"--places must name a table with zone, lat and lon, found no file {str(self.places)!r}")

    @property
    def folder(self) -> Path:
        """Where downloads are kept."""
        return self.cache or user_cache() / "energy"

    @property
    def inputs(self) -> list[Path]:
        """The files that are read and must stay: the table of places, and what was downloaded before."""
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        return files if self.places is None else [self.places, *files]


def fetch_panel(request: FetchRequest, progress: bool | None = None, web: Web | None = None) -> Panel:
    """The panel of a market and a span of days; or the one that the paper's authors publish."""
    with Progress(progress) as bar:
        cache = Cache(request.folder, web or Web(), request.refresh, bar)
        if request.source == "authors":
            return replace(with_places(read_panel(_authors_file(cache, request.prices_from or AUTHORS))), currency=DOLLARS)
        span = Span.read(request.first, request.last)
        if request.source == "pjm":
            prices = fetch_pjm(request.kind, span, cache, base=request.prices_from)
        else:
            prices = fetch_eia(request.market, request.kind, span, cache, request.prices_from)
        places = _places(prices.table["zone"].unique().tolist(), request.places)
        weather = fetch_open_meteo(places, span, cache, request.weather_from, CLOCKS.get(request.market, NEW_YORK))
    # The tables are kept, so that what the panel's notes and errors name can be looked up.
    name = f"{request.source}-{request.market}-{request.kind}-{request.first}-{request.last}.csv"
    tables = {"prices": prices.table, "weather": weather.table, "zones": places}
    paths = {kind: _written(table, request.folder / f"{kind}-{name}") for kind, table in tables.items()}
    panel = build_panel(paths["prices"], paths["weather"], paths["zones"])
    return replace(panel, notes=(*prices.notes, *weather.notes, *panel.notes), currency=DOLLARS)


def with_places(panel: Panel) -> Panel:
    """The panel with the places of the zones whose reference city is known, where it has none of its own."""
    known = [place(name) for name in panel.names]
    coordinates = np.array([(np.nan, np.nan) if location is None else (location.lat, location.lon) for location in known])
    return replace(panel, places=np.where(np.isnan(panel.places), coordinates, panel.places))


def _authors_file(cache: Cache, base: str) -> Path:
    """The authors' panel in the cache, with its columns checked."""
    path = cache.fetch(f"{base}/{AUTHORS_FILE}", "pjm_data.csv", progress=cache.progress)
    table = read_table(path).frame
    if missing := [name for name in AUTHORS_COLUMNS if name not in table]:
        raise ValueError(f"{path}: is not the authors' panel (no column {listed(missing, 5)}); remove it and run again")
    return path


def _written(table: pd.DataFrame, path: Path) -> Path:
    write_whole(path, lambda where: safe_csv(table).to_csv(where, index=False, lineterminator="\n"))
    return path


def _places(zones: list[str], path: Path | None) -> pd.DataFrame:
    """The lat and lon of each zone: those in the user's table, and those that are known here."""
    known = {zone: (location.lat, location.lon) for zone in zones if (location := place(zone)) is not None}
    if path is not None:
        rows = InputTable.read(path, ("zone",))
        rows.refuse_repeats()
        known |= dict(zip(rows.keys, zip(rows.complete("lat"), rows.complete("lon"), strict=True), strict=True))
    if missing := [zone for zone in zones if zone not in known]:
        raise ValueError(f"--places must name a table with the lat and lon of zone {listed(missing)}, which is not known here")
    return pd.DataFrame([(zone, *known[zone]) for zone in zones], columns=["zone", "lat", "lon"])
