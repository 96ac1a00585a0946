"""Checks of arguments that several modules use."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Require a whole number of at least ``least`` and, if it is given, at most ``most``."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, found {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}, found {value!r:.40}")


def require_number(name: str, value: Any, low: float, high: float, allowed: str, closed: bool = False) -> None:
    """Require a number strictly between two numbers; ``closed`` allows the upper one."""
    try:
        fits = low < float(value) < high or (closed and float(value) == high)
    except (TypeError, ValueError):
        fits = False
    if not fits or isinstance(value, bool):
        raise ValueError(f"{name} must be {allowed}, found {value!r}")


def first_true(mask: Any) -> int | None:
    """The position of the first true value, or None."""
    places = np.flatnonzero(np.asarray(mask, bool))
    return int(places[0]) if len(places) else None
