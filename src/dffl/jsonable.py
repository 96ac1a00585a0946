"""Plain Python values for JSON, which has neither NaN nor infinity."""

from __future__ import annotations

import math
from typing import Any


def jsonable(value: Any) -> Any:
    """The value with NumPy scalars as plain numbers and numbers that are not finite as None, also in dictionaries and lists."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
