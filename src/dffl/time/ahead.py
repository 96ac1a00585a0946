"""Rows after those of a model: rows whose costs are known by now, and rows to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dffl.cells import shown_moment
from dffl.federation import Client

USUAL = 0.95
"""Gaps between rows up to this quantile are usual: a weekend is, an outage is not."""
OTHER_UNIT = 30.0
"""Costs whose median differs by more than this factor from that of the known rows are in another unit."""


@dataclass(frozen=True, eq=False)
class TimedRows:
    """Rows of a client in their order. Unknown costs are NaN."""

    times: np.ndarray
    x: np.ndarray
    c: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    @property
    def filled(self) -> np.ndarray:
        """Which rows have their costs."""
        return ~np.isnan(self.c).any(axis=1)

    def take(self, index: Any) -> TimedRows:
        return TimedRows(self.times[index], self.x[index], self.c[index])

    @classmethod
    def of(cls, client: Client) -> TimedRows:
        assert client.times is not None, "what is decided over time has times"
        return cls(client.times, client.x, client.c)

    @classmethod
    def joined(cls, parts: Sequence[TimedRows]) -> TimedRows:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("times", "x", "c")))


class Clock(NamedTuple):
    """The usual distance between a client's rows, and the form of its moments."""

    step: float
    """The median gap between two rows."""
    usual: float
    """The largest gap that is usual, such as a weekend."""
    dates: bool

    @classmethod
    def of(cls, times: np.ndarray, dates: bool) -> Clock:
        gaps = np.diff(times)
        if not len(gaps):
            return cls(1.0, 1.0, dates)
        return cls(float(np.median(gaps)), float(np.quantile(gaps, USUAL, method="higher")), dates)

    def shown(self, moment: float) -> str:
        return shown_moment(float(moment), self.dates)

    def long(self, gap: float) -> str:
        """A gap in words."""
        return f"{gap / 86400:.3g} days" if self.dates else f"{gap:g}"


def newer(client: str, known: TimedRows, rows: TimedRows, clock: Clock, known_after: int) -> TimedRows:
    """The rows that follow the known ones, in their order, without those that are known already.

    Refused, each with one line: two rows of the same moment, a row to decide that is not later than all known ones, and a
    row for which more than ``known_after`` rows before it are unknown.
    """
    order = np.argsort(rows.times, kind="stable")
    rows, who, last = rows.take(order), f"client {client!r}", known.times[-1]
    require_moments(client, rows, clock)
    half = ~rows.filled & ~np.isnan(rows.c).all(axis=1)
    if half.any():
        what = f"the row of {clock.shown(rows.times[np.argmax(half)])} has some of its costs and lacks others"
        raise ValueError(f"{who}: {what}; fill all of them, or none where the row is to be decided")
    rows = rows.take(~(rows.filled & (rows.times <= last)))  # known already
    open_ = np.flatnonzero(~rows.filled)
    if not open_.size:
        return rows
    past = rows.times[rows.filled]
    newest = max(last, past[-1]) if past.size else last
    if rows.times[open_[0]] <= newest:
        what = (
            f"the row of {clock.shown(rows.times[open_[0]])} is to be decided, but costs are known up to {clock.shown(newest)}"
        )
        raise ValueError(f"{who}: {what}; rows to decide must be later than all rows with costs")
    _require_near(who, TimedRows.joined([known.take(slice(-1, None)), rows]), clock, known_after)
    return rows


def require_moments(client: str, rows: TimedRows, clock: Clock) -> None:
    """Refuse two rows of one moment; the rows are in their order."""
    if (same := np.flatnonzero(np.diff(rows.times) <= 0)).size:
        what = f"two rows are of {clock.shown(rows.times[same[0]])}"
        raise ValueError(f"client {client!r}: {what}; keep one row for each moment")


def require_same_as_known(client: str, known: TimedRows, rows: TimedRows, clock: Clock) -> None:
    """Refuse rows of known moments with other costs, and rows between known ones that were never decided."""
    who = f"client {client!r}"
    old = rows.take((rows.times >= known.times[0]) & (rows.times <= known.times[-1]) & rows.filled)
    places = np.searchsorted(known.times, old.times)
    if (never := known.times[places] != old.times).any():
        what = f"the row of {clock.shown(old.times[np.argmax(never)])} was never decided: rows after it are known already"
        raise ValueError(f"{who}: {what}; leave it out, or begin again with dffl update")
    if (other := ~np.isclose(old.c, known.c[places], rtol=1e-9, atol=1e-12).all(axis=1)).any():
        what = f"the row of {clock.shown(old.times[np.argmax(other)])} has other costs than those that are known already"
        raise ValueError(f"{who}: {what}; correct it, or begin again with dffl update")


def require_decided(client: str, rows: TimedRows, clock: Clock, known_after: int) -> None:
    """Refuse a gap between rows with costs after which nothing could be decided; see `newer`."""
    gaps = np.diff(rows.times)
    if (wide := gaps > known_after * clock.step + clock.usual * (1 + 1e-9)).any():
        row = int(np.argmax(wide))
        first, last = clock.shown(rows.times[row]), clock.shown(rows.times[row + 1])
        what = f"the row of {last} was never decided: the one before it is of {first}, {clock.long(gaps[row])} earlier"
        raise ValueError(
            f"client {client!r}: {what}; add the rows in between with their costs, or begin again with dffl update"
        )


def require_same_unit(client: str, known: TimedRows, rows: TimedRows, clock: Clock) -> None:
    """Refuse rows whose costs are all far larger, or all far smaller, than every known row: they are in another unit."""
    before, now = (np.abs(some.c).mean(axis=1) for some in (known, rows))
    usual, found = float(np.median(before)), float(np.median(now))
    if not (min(usual, found) > 0 and (now.min() > before.max() or now.max() < before.min())):
        return
    factor = max(usual, found) / min(usual, found)
    if factor > OTHER_UNIT:
        size = "large" if found > usual else "small"
        what = f"the costs from {clock.shown(rows.times[0])} on are about {float(f'{factor:.2g}'):,.0f} times as {size}"
        fix = "bring them to the unit of the model, or fit again with rows of the new unit"
        raise ValueError(f"client {client!r}: {what} as those that the model knows, as in another unit; {fix}")


def _require_near(who: str, rows: TimedRows, clock: Clock, known_after: int) -> None:
    """Refuse rows to decide that are further from the last known row than ``known_after`` allows."""
    filled = rows.filled
    newest = int(np.flatnonzero(filled)[-1])
    reach = rows.times[newest] + known_after * clock.step + clock.usual * (1 + 1e-9)
    beyond = np.flatnonzero((np.arange(len(rows)) > newest + known_after + 1) | (rows.times > reach) & ~filled)
    if beyond.size:
        row = int(beyond[0])
        gap = max(round((rows.times[row] - rows.times[newest]) / clock.step), row - newest)
        last = clock.shown(rows.times[newest])
        known = f"its last row with known costs is of {last}, and known_after = {known_after} allows a row to decide at most"
        what = f"{known_after + 1} {'row' if known_after == 0 else 'rows'} later, found {clock.shown(rows.times[row])}"
        fix = f"add the rows in between with their costs, or fit with known_after = {gap - 1} under [time]"
        raise ValueError(f"{who}: {known} {what}; {fix}")
