"""Moments of an order, such as the one at which the test begins: numbers, or dates as seconds since 1970."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from dffl.data.cells import instants_of

MOMENT = "a date such as 2024-09-01 or a number, as the column under order has them"


def moment_of(value: Any) -> float | None:
    """A moment as the rows' order has it: a number, or seconds since 1970 for a date; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if np.isfinite(value) else None
    if not isinstance(value, str | date | datetime):
        return None
    moment = instants_of(pd.Series([value], dtype=object))[0]
    return None if np.isnat(moment) else float(moment.astype(np.int64))


def shown_moment(moment: float, dates: bool) -> str:
    """A moment in a message."""
    if not dates:
        return f"{moment:g}"
    return str(moment_value(moment, dates))


def moment_value(moment: float, dates: bool) -> int | float | date:
    """A moment as a file writes it."""
    if not dates:
        return int(moment) if moment.is_integer() else moment
    clock = datetime.fromisoformat(str(np.datetime64(int(moment), "s")))
    return clock.date() if clock.time() == datetime.min.time() else clock
