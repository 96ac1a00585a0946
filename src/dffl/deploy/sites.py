"""What the coordinator knows of each site: whether it is there, and what it has said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dffl.deploy.clock import LivedClock
from dffl.predictor import Normaliser


@dataclass
class SiteView:
    """One site, as the coordinator sees it."""

    name: str
    clock: LivedClock
    connected: bool = False
    joined: bool = False
    """It is connected, and its offer was accepted."""
    instance: str = ""
    """The process that joined under this name."""
    offer: dict[str, Any] | None = None
    """What another process under this name offers, until it is clear whether the one that joined is still there."""
    offered: float = 0.0
    seen: float = 0.0
    """When it last gave a sign of life."""
    away_since: float | None = None
    """When it last gave a sign of life before it was lost; None while it is there, and before it was ever there."""
    opened: str = ""
    """The run for which it has laid out its samples."""
    rows: int = 0
    columns: str = ""
    """The digest of its columns."""
    counts: dict[str, int] = field(default_factory=dict)
    """For each training the number of its samples that train."""
    units: dict[str, Normaliser] = field(default_factory=dict)
    """For each part of its samples their units, if the plan pools statistics."""
    told_dead: bool = False
    """The log says that it is dead."""
    finished: str = ""
    """The run of which it has a model of its own."""
    results: dict[str, float] = field(default_factory=dict)

    def alive(self) -> None:
        """It gave a sign of life."""
        self.seen = self.clock.now()

    def lost(self) -> None:
        """It is gone, until it joins again."""
        if self.joined or self.connected:
            self.away_since = self.seen
        self.connected = self.joined = False
        self.opened = ""

    def here(self, run: str) -> bool:
        """It can be sent orders of a run."""
        return self.joined and self.opened == run

    @property
    def away(self) -> float:
        """For how many seconds it has been gone; for ever if it was never there."""
        if self.joined:
            return 0.0
        return float("inf") if self.away_since is None else self.clock.now() - self.away_since
