"""A clock that stops while the coordinator cannot receive messages.

The coordinator's process may be paused, or busy with a model or a disk. Messages of the sites then wait in a queue, so this
time does not count as silence of the sites, nor towards any time-out of the plan.
"""

from __future__ import annotations

import time

PAUSE_SECONDS = 1.0
"""A wait that lasts this many seconds longer than intended counts as a pause of the coordinator."""


class ActiveClock:
    """Seconds during which the coordinator could receive messages."""

    def __init__(self) -> None:
        self._last_read, self._paused = time.monotonic(), 0.0

    def now(self) -> float:
        """The current time, comparable with other times of this clock only. No message is received between two calls."""
        self.waited(0.0)
        return self._last_read - self._paused

    def waited(self, seconds: float) -> None:
        """Report a wait of at most this many seconds since the last call; time far beyond that does not count."""
        now = time.monotonic()
        if (pause := now - self._last_read - seconds) > PAUSE_SECONDS:
            self._paused += pause
        self._last_read = now
