"""Files in which any damage is noticed: each contains a digest of its own content."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SIZE = 16
"""Bytes of a digest."""


def seal_table(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file with its digest; ``options`` are those of ``pyarrow.parquet.write_table``."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    content = stream.getvalue()
    footer = _footer(content)
    return content[:footer] + _digest(content) + content[footer:]


def check_table(content: bytes) -> None:
    """Refuse a Parquet file in which any bit has changed."""
    footer = _footer(content)
    start = footer - SIZE
    if start < 0 or content[start:footer] != _digest(content[:start] + content[footer:]):
        raise ValueError("its content does not match its digest")


def seal_json(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` and, as the last field, the digest of their content (spaces and line breaks may change)."""
    values = {name: value for name, value in values.items() if name != "digest"}
    return values | {"digest": _digest(json.dumps(values, sort_keys=True).encode()).hex()}


def _footer(content: bytes) -> int:
    """The start of the footer: its length is stored before the last four bytes."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=SIZE).digest()
