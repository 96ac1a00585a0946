"""Daily weather of zones, from Open-Meteo's archive of hours, no key."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl_studies.energy.fetch.download import Cache
from dffl_studies.energy.fetch.fetched import Fetched
from dffl_studies.energy.fetch.open_meteo_days import COVARIATES, SPELLINGS, parse_open_meteo
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import Refused
from dffl_studies.energy.input_table import numbers_in

BASE = "https://archive-api.open-meteo.com/v1/archive"
BATCH = 10
"""Places in a request."""
NEAR = 1.0
"""Degrees between a place and the reply's; the archive's grid is much finer."""


def fetch_open_meteo(
    places: pd.DataFrame, span: Span, cache: Cache, base: str | None = None, timezone: str = "America/New_York",
    batch: int = BATCH,
) -> Fetched:  # fmt: skip
    """The weather of ``places`` (``zone``, ``lat``, ``lon``): one row per zone and day of the clock of ``timezone``.

    Columns are ``zone``, ``date``, the covariates under their names in the paper's panel, and ``day_of_week``, 0 for Monday.
    """
    _check_places(places)
    cache.progress.expect(span.days * len(places))
    tables, notes = [], []
    for piece in span.pieces(12):
        for start in range(0, len(places), batch):
            some = places.iloc[start : start + batch]
            path, replies = _fetch(some, piece, cache, base or BASE, timezone)
            for zone, lat, lon, reply in zip(some["zone"], some["lat"], some["lon"], replies, strict=True):
                where = f"{path}, zone {zone}"
                _check_near(lat, lon, reply, where)
                days = parse_open_meteo(reply, where)
                tables.append(days.table.assign(zone=zone))
                notes += days.notes
            cache.progress.advance(piece.days * len(some), f"Open-Meteo {piece.first.year}")
    table = span.of(pd.concat(tables))
    if table.empty:
        raise ValueError(f"Open-Meteo: no weather from {span.first} to {span.last}; choose other days")
    return _ordered(table, list(places["zone"]), span, list(dict.fromkeys(notes)))


def _check_places(places: pd.DataFrame) -> None:
    if missing := [name for name in ("zone", "lat", "lon") if name not in places]:
        raise ValueError(f"places must have columns zone, lat, lon; there is no {', '.join(missing)}")
    if places.empty or places["zone"].duplicated().any():
        raise ValueError(f"places must have one row per zone, found {', '.join(map(str, places['zone'])) or 'none'}")
    for name, most in (("lat", 90), ("lon", 180)):
        if (at := first_true(~(np.abs(numbers_in(places[name])[0]) <= most))) is not None:
            raise ValueError(f"places: zone {places['zone'].iloc[at]}: {name} must be degrees, found {places[name].iloc[at]!r}")


def _fetch(places: pd.DataFrame, span: Span, cache: Cache, base: str, timezone: str) -> tuple[Path, Any]:
    query = {
        "latitude": ",".join(f"{lat:g}" for lat in places["lat"]),
        "longitude": ",".join(f"{lon:g}" for lon in places["lon"]),
        "start_date": span.first,
        "end_date": span.last,
        "hourly": ",".join(SPELLINGS),
        "timezone": timezone,
    }
    asked = urlencode(query, safe=",/")
    name = f"open_meteo_{span.first}_{span.last}_{hashlib.sha256(asked.encode()).hexdigest()[:8]}.json"
    try:
        return cache.fetch_json(f"{base}?{asked}", name, lambda content, where: _replies(content, len(places), where))
    except Refused as error:
        raise ValueError(f"Open-Meteo refused the request ({error.said})") from None


def _replies(content: Any, places: int, where: str) -> list[dict[str, Any]]:
    """One reply per place: a list of them, or the only one."""
    replies = content if isinstance(content, list) else [content]
    if len(replies) != places or not all(isinstance(reply, dict) for reply in replies):
        raise ValueError(f"{where}: must have {places} places, found {len(replies)}; fetch it again")
    if refused := next((reply for reply in replies if reply.get("error")), None):
        raise ValueError(f"{where}: Open-Meteo refused the request ({refused.get('reason')}); fetch it again")
    return replies


def _check_near(lat: float, lon: float, reply: dict[str, Any], where: str) -> None:
    point = reply.get("latitude", "nowhere"), reply.get("longitude", "nowhere")
    off = pd.to_numeric(pd.Series(point), errors="coerce") - [lat, lon]
    if not off.abs().max(skipna=False) <= NEAR:
        raise ValueError(f"{where}: is at {lat}, {lon}, but the reply is for {point[0]}, {point[1]}; fetch it again")


def _ordered(table: pd.DataFrame, zones: list[str], span: Span, notes: list[str]) -> Fetched:
    """The rows in the order of the zones and days, with the day of the week, and notes on what is missing."""
    covariates = [name for name in COVARIATES if name in table]
    expected = pd.MultiIndex.from_product([zones, span.dates()], names=["zone", "date"])
    full = table.set_index(["zone", "date"])[covariates].reindex(expected)
    for name in covariates:
        gaps = full.index[full[name].isna()]
        if len(gaps):
            zone, day = gaps[0]
            notes.append(f"Open-Meteo: {name} is missing on {len(gaps)} days of zones, the first {zone}, {day}")
    rows = full.dropna(how="all").reset_index()
    rows["day_of_week"] = pd.to_datetime(rows["date"]).dt.day_of_week
    return Fetched(rows, notes)
