"""Checks of arguments that several modules make."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, found {value!r}")
