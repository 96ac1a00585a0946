"""Prices and weather from the web, into a cache that resumes, and from there into tables.

Prices come from EIA (no key, every market) or from PJM's Data Miner (the user's key), weather from Open-Meteo, and a finished
panel from the paper's authors. Without a network, the error says which file to put where.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from dffl.cache import user_cache
from dffl.cases.energy.fetch.authors import fetch_panel
from dffl.cases.energy.fetch.download import Cache
from dffl.cases.energy.fetch.eia import fetch_eia
from dffl.cases.energy.fetch.eia_file import parse_eia as parse_eia
from dffl.cases.energy.fetch.fetched import Fetched as Fetched
from dffl.cases.energy.fetch.open_meteo import fetch_open_meteo
from dffl.cases.energy.fetch.pjm import fetch_pjm
from dffl.cases.energy.fetch.places import place as place
from dffl.cases.energy.fetch.places import places_of as places_of
from dffl.cases.energy.fetch.span import Span
from dffl.cases.energy.fetch.web import NoNetwork as NoNetwork
from dffl.cases.energy.fetch.web import Web as Web
from dffl.progress import Progress


def default_cache() -> Path:
    """Where fetched files are kept unless another folder is named: in the user's cache, beside compiled programs."""
    return user_cache() / "energy"


def fetch_prices(
    source: str,
    market: str,
    first: str,
    last: str,
    *,
    kind: str = "da",
    cache: str | os.PathLike[str] | None = None,
    refresh: bool = False,
    key: str | None = None,
    base: str | None = None,
    web: Web | None = None,
    progress: bool | None = None,
) -> Fetched:
    """A market's hourly prices from ``first`` to ``last``, a row a zone and hour.

    Columns are ``zone``, ``date``, ``hour``, ``total`` and, where known, its parts ``energy``, ``congestion`` and ``loss``.
    Days are in the market's standard time all year; an hour without a price has no row. ``source`` is eia, or pjm for PJM's
    own prices with a key; ``kind`` is da (day-ahead) or rt (real-time); ``base`` replaces the source's address.
    """
    span = Span.read(first, last)
    with Progress(progress) as bar:
        held = _cache(cache, web, refresh, bar)
        if source == "eia":
            return fetch_eia(market, kind, span, held, base)
        if (source, market) == ("pjm", "pjm"):
            return fetch_pjm(kind, span, held, key, base)
    raise ValueError(f"source must be eia, or pjm for the market pjm, found {source!r} for the market {market!r}")


def fetch_weather(
    places: pd.DataFrame,
    first: str,
    last: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    refresh: bool = False,
    base: str | None = None,
    web: Web | None = None,
    progress: bool | None = None,
    timezone: str = "America/New_York",
) -> Fetched:
    """The weather of ``places`` (``zone``, ``lat``, ``lon``; see ``places_of``), a row a zone and day.

    Columns are ``zone``, ``date``, the covariates under their names in the paper's panel, and ``day_of_week``, 0 for Monday.
    Days are those of the clock of ``timezone``.
    """
    with Progress(progress) as bar:
        return fetch_open_meteo(places, Span.read(first, last), _cache(cache, web, refresh, bar), base, timezone)


def fetch_authors(
    *,
    branch: str = "main",
    sha256: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    refresh: bool = False,
    base: str | None = None,
    web: Web | None = None,
    progress: bool | None = None,
) -> Path:
    """The panel that the paper's authors publish, as a file. Another ``branch``, tag or commit may be named."""
    with Progress(progress) as bar:
        return fetch_panel(_cache(cache, web, refresh, bar), branch, base, sha256)


def _cache(folder: str | os.PathLike[str] | None, web: Web | None, refresh: bool, progress: Progress) -> Cache:
    return Cache(default_cache() if folder is None else Path(folder), web or Web(), refresh, progress)
