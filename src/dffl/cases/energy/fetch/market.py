"""A panel of a market, fetched: prices, the weather at each zone's reference city, and both put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl.cases.energy.data.hourly import build_panel
from dffl.cases.energy.data.panel import Panel
from dffl.cases.energy.data.reading import read_panel
from dffl.cases.energy.fetch import default_cache, fetch_authors, fetch_prices, fetch_weather, place, places_of
from dffl.data.tables import read_table
from dffl.files import write_whole

SOURCES = ("eia", "pjm", "authors")
CLOCKS = {"miso": "EST", "ercot": "America/Chicago", "spp": "America/Chicago", "caiso": "America/Los_Angeles"}
"""By whose clock a market's weather has its days; New York's for the others."""


@dataclass(frozen=True)
class Wanted:
    """What to fetch, and how."""

    source: str
    market: str = "pjm"
    first: str = ""
    last: str = ""
    kind: str = "da"
    places: Path | None = None
    """A table with zone, lat and lon, for zones whose reference city is not known here."""
    cache: Path | None = None
    refresh: bool = False
    prices_from: str | None = None
    """The address of a mirror of the prices, instead of the source's own."""
    weather_from: str | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"SOURCE must be one of {', '.join(SOURCES)}, found {self.source!r}")


def fetch_panel(wanted: Wanted, progress: bool | None = None) -> Panel:
    """The panel of a market and a span of days; or the one that the paper's authors publish."""
    files: dict[str, Any] = {"cache": wanted.cache, "refresh": wanted.refresh, "progress": progress}
    if wanted.source == "authors":
        return with_places(read_panel(fetch_authors(base=wanted.prices_from, **files)))
    span = (wanted.first, wanted.last)
    prices = fetch_prices(wanted.source, wanted.market, *span, kind=wanted.kind, base=wanted.prices_from, **files)
    places = _places(prices.table["zone"].unique().tolist(), wanted.places)
    clock = CLOCKS.get(wanted.market, "America/New_York")
    weather = fetch_weather(places, *span, base=wanted.weather_from, timezone=clock, **files)
    folder, name = wanted.cache or default_cache(), f"{wanted.source}-{wanted.market}-{wanted.kind}-{'-'.join(span)}.csv"
    tables = {"prices": prices.table, "weather": weather.table, "zones": places}
    # The tables are kept, so that what the panel's notes and errors name can be looked up.
    paths = {kind: folder / f"{kind}-{name}" for kind in tables}
    for kind, table in tables.items():
        _write(table, paths[kind])
    panel = build_panel(paths["prices"], paths["weather"], paths["zones"])
    return replace(panel, notes=(*prices.notes, *weather.notes, *panel.notes))


def with_places(panel: Panel) -> Panel:
    """The panel with the places of the zones whose reference city is known, where it has none of its own."""
    known = [place(name) for name in panel.names]
    found = np.array([(np.nan, np.nan) if one is None else (one.lat, one.lon) for one in known])
    return replace(panel, places=np.where(np.isnan(panel.places), found, panel.places))


def _places(zones: list[str], table: Path | None) -> pd.DataFrame:
    """Where each zone is."""
    known = places_of([zone for zone in zones if place(zone)])
    if table is not None:
        own, _ = read_table(table, ("zone",))
        if not {"zone", "lat", "lon"} <= set(own.columns):
            raise ValueError(f"{table}: must have the columns zone, lat and lon, found {', '.join(own.columns)}")
        known = pd.concat([own[["zone", "lat", "lon"]], known]).drop_duplicates("zone")
    if lacking := [zone for zone in zones if zone not in set(known["zone"])]:
        raise ValueError(
            f"--places must name a table with the lat and lon of zone {', '.join(lacking)}, which is not known here"
        )
    return known[known["zone"].isin(zones)].reset_index(drop=True)


def _write(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda where: table.to_csv(where, index=False, lineterminator="\n"))
