"""HiGHS, loaded when it is first used, and runs of it that end.

The wheels of highspy and of OR-Tools each bring a library of the name libhighs.so.1, in different versions. The one that is
loaded first serves both in a process, and the other package cannot be imported any more. So a process that uses no HiGHS of
ours can still use OR-Tools, and the other way round the user gets a line that says what to do.

Each run ends within its own seconds, and all that make a set ready within a deadline.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

LINEAR_SECONDS = 600.0
"""The limit of one linear program: a safety net, which cuts no search that could be of use."""
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class _Lazily:
    def __getattr__(self, name: str) -> Any:
        value = getattr(_loaded(), name)
        setattr(self, name, value)
        return value


def _loaded() -> Any:
    try:
        return import_module("highspy")
    except ImportError as error:
        if not any(name.partition(".")[0] == "ortools" for name in sys.modules):
            raise
        fix = "import highspy before pyepo and ortools, and pass PyEPO's models by class, as dffl.sets.pyepo(Model, ...)"
        reason = " ".join(str(error).split())[-120:]
        why = "HiGHS cannot be loaded together with OR-Tools, which brings its own HiGHS"
        raise ValueError(f"{why}; {fix} ({reason})") from None


highspy: Any = _Lazily()


def set_options(highs: Any, options: dict[str, Any]) -> None:
    """Set options; one that this version of HiGHS does not know is left out."""
    for name, value in options.items():
        highs.setOptionValue(name, value)


@contextmanager
def solving_within(seconds: float) -> Iterator[None]:
    """All runs inside end within this many seconds together, or with a ValueError."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


def limit(highs: Any, seconds: float) -> None:
    """Let the next run of HiGHS end within this many seconds."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise ValueError("its sets take too long to be made ready; if you trust the file, raise limits={'seconds': ...}")
    # HiGHS counts the seconds of all runs of an instance: the limit is for one call.
    highs.setOptionValue("time_limit", highs.getRunTime() + min(seconds, left))


def run(highs: Any, seconds: float = LINEAR_SECONDS) -> None:
    """Run HiGHS for at most this many seconds."""
    limit(highs, seconds)
    highs.run()
