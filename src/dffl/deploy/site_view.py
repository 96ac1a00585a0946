"""The coordinator's view of each site: whether it is connected, and what it has reported."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from dffl.predictor import Normaliser

PAUSE_SECONDS = 1.0
"""A wait that lasts this many seconds longer than intended counts as a pause of the coordinator."""


class ActiveClock:
    """A clock that stops while the coordinator cannot receive messages.

    Its process may be paused, or busy with a model or a disk. Messages of the sites then wait in a queue, so this time counts
    neither as silence of the sites nor towards a time-out of the plan.
    """

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


@dataclass
class SiteView:
    """The coordinator's view of one site."""

    name: str
    clock: ActiveClock
    connected: bool = False
    joined: bool = False
    """It is connected, and its join was accepted."""
    instance: str = ""
    """The process that joined under this name."""
    offer: dict[str, Any] | None = None
    """The join of another process of this site, until it is clear whether the joined process is still alive."""
    offered: float = 0.0
    seen: float = 0.0
    """The time of its last message."""
    away_since: float | None = None
    """The time of its last message before it was lost; None while it is connected, and before its first connection."""
    opened: str = ""
    """The run for which it has prepared its samples."""
    rows: int = 0
    columns: str = ""
    """The digest of its columns."""
    counts: dict[str, int] = field(default_factory=dict)
    """For each training, the number of its training samples."""
    units: dict[str, Normaliser] = field(default_factory=dict)
    """For each part of its samples, the units, if the plan pools statistics."""
    logged_dead: bool = False
    """Whether the log says that it is dead."""
    finished: str = ""
    """The run from which it has its own model."""
    results: dict[str, float] = field(default_factory=dict)

    def mark_alive(self) -> None:
        """Note that a message arrived."""
        self.seen = self.clock.now()

    def mark_lost(self) -> None:
        """Note that it is gone, until it joins again."""
        if self.joined or self.connected:
            self.away_since = self.seen
        self.connected = self.joined = False
        self.opened = ""

    def is_ready(self, run: str) -> bool:
        """Whether it can receive orders of a run."""
        return self.joined and self.opened == run

    @property
    def away(self) -> float:
        """The seconds since it was lost; infinite if it was never connected."""
        if self.joined:
            return 0.0
        return float("inf") if self.away_since is None else self.clock.now() - self.away_since
