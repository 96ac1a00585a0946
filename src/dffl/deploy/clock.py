"""Time as the coordinator has lived it.

While its process is paused, or busy with a model or a disk, it hears nobody: that is no silence of the sites, and none of
the waits of the plan runs on. What the sites have sent meanwhile is still to be read.
"""

from __future__ import annotations

import time

ABSENT = 1.0
"""Seconds beyond those it meant to wait after which the coordinator has been away itself."""


class LivedClock:
    """Seconds that pass while the coordinator is there."""

    def __init__(self) -> None:
        self._looked, self._away = time.monotonic(), 0.0

    def now(self) -> float:
        """A moment, to be compared with others of this clock only. Between two looks at it nobody is heard."""
        self.waited(0.0)
        return self._looked - self._away

    def waited(self, seconds: float) -> None:
        """The coordinator meant to wait so long at most since it last said so; what is far beyond that does not count."""
        now = time.monotonic()
        if (absent := now - self._looked - seconds) > ABSENT:
            self._away += absent
        self._looked = now
