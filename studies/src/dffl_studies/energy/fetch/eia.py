"""Hourly prices of every wholesale market, from the U.S. Energy Information Administration: one file per year, no key."""

from __future__ import annotations

from dffl_studies.energy.fetch.download import Cache
from dffl_studies.energy.fetch.eia_file import parse_eia
from dffl_studies.energy.fetch.fetched import Fetched, join_prices
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import Refused

BASE = "https://www.eia.gov/electricity/wholesalemarkets/csv"
MARKETS = dict.fromkeys(("pjm", "nyiso", "isone", "caiso"), "zones") | dict.fromkeys(("miso", "ercot", "spp"), "hubs")
"""What each market's file has prices for; part of the file's name."""
KINDS = {"da": "day-ahead", "rt": "real-time"}


def file_name(market: str, kind: str, year: int) -> str:
    """The name of a market's file of one year: ``kind`` is da (day-ahead) or rt (real-time)."""
    if market not in MARKETS:
        raise ValueError(f"market must be one of {', '.join(MARKETS)}, found {market!r}")
    if kind not in KINDS:
        raise ValueError(f"kind must be da (day-ahead) or rt (real-time), found {kind!r}")
    return f"{market}_lmp_{kind}_hr_{MARKETS[market]}_{year}.csv"


def fetch_eia(market: str, kind: str, span: Span, cache: Cache, base: str | None = None) -> Fetched:
    """A market's prices, from one file per year. ``base`` replaces EIA's address."""
    parts = []
    for year in range(span.first.year, span.last.year + 1):
        name = file_name(market, kind, year)
        try:
            path = cache.fetch(f"{base or BASE}/{name}", name, progress=cache.progress)
        except Refused as error:
            if error.status != 404:
                raise
            raise ValueError(
                f"EIA has no hourly {KINDS[kind]} prices of {market} for {year} ({error}); choose another year, kind or market"
            ) from None
        parts.append(parse_eia(path))
    return join_prices(parts, span, f"{market} {KINDS[kind]}")
