"""Texts that look the same are the same: `ü` may be stored as one sign or as a `u` with dots, and programs differ in that.

All texts of cells, names of columns and names in a federation's file get one coding, the composed one (NFC). Paths and queries
stay as they are: a file is found under the name that it has.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

ELSEWHERE = ("table", "test", "path", "file", "query")
"""Keys of a federation's file whose texts are no names of its columns."""


def composed(text: str) -> str:
    """A text in the one coding."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def composed_name(text: Any) -> str:
    """A column's name in the one coding, without blanks around it."""
    return composed(str(text)).strip()


def composed_content(content: Any) -> Any:
    """What a federation's file says, with its names and texts in the one coding."""
    if isinstance(content, str):
        return composed(content)
    if isinstance(content, list):
        return [composed_content(one) for one in content]
    if not isinstance(content, Mapping) or content.get("type") == "file":  # a model file has names of its own
        return content
    return {
        composed(key): value if key in ELSEWHERE and not isinstance(value, list) else composed_content(value)
        for key, value in content.items()
    }
