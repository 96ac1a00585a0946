"""Runs of HiGHS that end: each within its own seconds, and all that make a set ready within a deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import highspy

LINEAR_SECONDS = 600.0
"""The limit of one linear program: a safety net, which cuts no search that could be of use."""
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def solving_within(seconds: float) -> Iterator[None]:
    """All runs inside end within this many seconds together, or with a ValueError."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


def limit(highs: highspy.Highs, seconds: float) -> None:
    """Let the next run of HiGHS end within this many seconds."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise ValueError("its sets take too long to be made ready; if you trust the file, raise limits={'seconds': ...}")
    # HiGHS counts the seconds of all runs of an instance: the limit is for one call.
    highs.setOptionValue("time_limit", highs.getRunTime() + min(seconds, left))


def run(highs: highspy.Highs, seconds: float = LINEAR_SECONDS) -> None:
    """Run HiGHS for at most this many seconds."""
    limit(highs, seconds)
    highs.run()
