"""Hourly prices from PJM's Data Miner 2, with the user's own key, in pages."""

from __future__ import annotations

import json
import os
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from dffl_studies.energy.fetch.download import Cache
from dffl_studies.energy.fetch.fetched import Fetched, join_prices
from dffl_studies.energy.fetch.pjm_rows import EASTERN, UTC, ZONE, parse_pjm, price_fields
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import Refused

BASE = "https://api.pjm.com/api/v1"
FEEDS = {"da": "da_hrl_lmps", "rt": "rt_hrl_lmps"}
KEY_VARIABLE = "PJM_API_KEY"
KEY_ADVICE = "a key is free of charge: see dataminer2.pjm.com, or register at apiportal.pjm.com"
ROWS = 50_000
"""In a page, at most; PJM's limit."""
MONTHS = 6
"""In a request; PJM's limit is just under 366 days."""


def fetch_pjm(
    kind: str, span: Span, cache: Cache, key: str | None = None, base: str | None = None, rows: int = ROWS
) -> Fetched:
    """PJM's zone prices: ``kind`` is da (day-ahead) or rt (real-time). The key is that of the environment unless given."""
    if kind not in FEEDS:
        raise ValueError(f"kind must be da (day-ahead) or rt (real-time), found {kind!r}")
    feed = _Feed(kind, cache, key, _safe(base or BASE), rows)
    cache.progress.expect(span.days)
    parts = []
    for piece in span.pieces(MONTHS):
        # The last standard day ends an hour into the next day of the summer clock.
        hours = 24 if piece.last == span.last else 23
        items = feed.items(piece, datetime.combine(piece.last, time()) + timedelta(hours=hours))
        if items:
            parts.append(parse_pjm(items, kind, f"PJM, {piece.first} to {piece.last}"))
    return join_prices(parts, span, f"PJM {FEEDS[kind]}")


class _Feed(NamedTuple):
    """A feed of Data Miner, its pages kept in the cache."""

    kind: str
    cache: Cache
    key: str | None
    base: str
    rows: int

    def items(self, piece: Span, end: datetime) -> list[dict[str, Any]]:
        """All rows of some days, up to an hour of the Eastern clock."""
        items: list[dict[str, Any]] = []
        total: int | None = None
        while total is None or len(items) < total:
            path, (rows, promised) = self.page(piece, end, len(items) + 1)
            items += rows
            advice = f"remove {self.name(piece, end, '*')} in {self.cache.folder} and run again"
            if total not in (None, promised):
                raise ValueError(f"{path}: totalRows was {total} in the page before and is {promised} here; {advice}")
            total = promised
            if len(items) > total or (not rows and total):
                raise ValueError(f"{path}: totalRows is {total}, but the pages have {len(items)} rows; {advice}")
            self.cache.progress.advance(piece.days * (len(rows) / total if total else 1.0), f"PJM {piece.first:%Y-%m}")
        return items

    def page(self, piece: Span, end: datetime, start: int) -> tuple[Path, tuple[list[dict[str, Any]], int]]:
        """The page that begins with this row, fetched if need be: its file, its rows and how many rows all pages have."""
        query = {
            "rowCount": self.rows,
            "startRow": start,
            "type": "ZONE",
            "row_is_current": "TRUE",
            "datetime_beginning_ept": f"{piece.first:%m/%d/%Y} 00:00 to {end:%m/%d/%Y %H:%M}",
            "fields": ",".join((UTC, EASTERN, ZONE, *price_fields(self.kind).values())),
            "sort": EASTERN,
            "order": "Asc",
        }
        try:
            return self.cache.fetch_json(
                f"{self.base}/{FEEDS[self.kind]}?{urlencode(query, quote_via=quote, safe=',/:')}",
                self.name(piece, end, str(start)),
                _page,
                secrets=lambda: {"Ocp-Apim-Subscription-Key": _key(self.key)},
                advice=f"the pages so far are kept in {self.cache.folder}; run the same command again when it can be reached",
            )
        except Refused as error:
            if error.status in (401, 403):
                raise ValueError(
                    f"PJM refused the key ({error.status}); put your own in {KEY_VARIABLE}: {KEY_ADVICE}"
                ) from None
            raise ValueError(f"PJM refused the request ({error.said}); EIA's files have older years, without a key") from None

    def name(self, piece: Span, end: datetime, start: str) -> str:
        """A page's file."""
        return f"pjm_{FEEDS[self.kind]}_{piece.first}_{end:%Y-%m-%dT%H}_row_{start}.json"


def _key(option: str | None) -> str:
    key = (option or os.environ.get(KEY_VARIABLE, "")).strip()
    if not key:
        raise ValueError(f"Data Miner needs a key in {KEY_VARIABLE}: {KEY_ADVICE}; EIA's files need none")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError(f"{KEY_VARIABLE} must be one word of plain letters and digits; copy the key again")
    return key


def _page(page: Any, where: str) -> tuple[list[dict[str, Any]], int]:
    """A page's rows, and how many rows all pages have."""
    if isinstance(page, dict) and isinstance(page.get("items"), list) and isinstance(page.get("totalRows"), int):
        return page["items"], page["totalRows"]
    errors = json.dumps(page.get("errors", page) if isinstance(page, dict) else page)
    raise ValueError(f"{where}: must have items and totalRows, found {errors[:200]}")


def _safe(base: str) -> str:
    """Refuse to send a key without encryption, except to this machine."""
    parts = urlsplit(base)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(f"the address of Data Miner or its mirror must begin with https: a key goes there; found {base!r}")
    return base
