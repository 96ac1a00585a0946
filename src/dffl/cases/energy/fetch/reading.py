"""Text files as they lie in a cache: plain or compressed, with one line for what cannot be read."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """A file's text. Whether it is compressed is told by its content, whatever its name says."""
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"{path}: the compressed file is cut short or damaged; fetch it again") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not a text file (byte {error.start}); fetch it again") from None


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    return as_json(read_text(path), str(path))


def as_json(content: str | bytes, where: str) -> Any:
    """What a JSON text says."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise ValueError(f"{where}: is not JSON ({error}); fetch it again") from None
