"""Answers for programs: plain Python values without NaN or infinity, which are not JSON."""

from __future__ import annotations

import math
from typing import Any


def jsonable(value: Any) -> Any:
    """The value with NumPy scalars made plain and numbers that are not finite made null, in dictionaries and lists too."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
