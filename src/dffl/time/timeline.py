"""The moments of a backtest: when models are refitted, and which rows of each client are known by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dffl.cells import moment_of, shown_moment
from dffl.checks import require_whole
from dffl.federation import Client
from dffl.time.past import Past

FEWEST = 28
"""The rows with a full past that a first training needs."""
SECONDS, NANOSECONDS, NUMBERS = CLOCKS = ("seconds", "nanoseconds", "numbers")
"""The form of clients' times: dates as seconds or nanoseconds since 1970, or numbers without a calendar."""
SURELY_NANOSECONDS = 1e16
DAY = 86400.0


@dataclass(frozen=True, eq=False)
class Timeline:
    """All moments of all clients in order, and the origins: the moments at which models are refitted and rules are chosen."""

    times: tuple[np.ndarray, ...]
    """Each client's times, ascending, in seconds or as numbers."""
    moments: np.ndarray
    origins: tuple[int, ...]
    """Numbers of moments. The first ones are before ``start``, so that there is a past to choose by."""
    start: int
    """The number of the first moment that is reported; one of the origins."""
    refit: int
    known_after: int
    dates: bool

    @classmethod
    def of(
        cls, clients: Sequence[Client], refit: int, window: int, start: Any, past: Past, clock: str | None = None,
        record: int = 0,
    ) -> Timeline:  # fmt: skip
        """The timeline of a backtest from ``start`` on, with a refit every ``refit`` moments and choices by ``window`` rows.

        ``record``: from how many moments before ``start`` on rules are to be judged, if that is more than the window.
        """
        require_whole("refit", refit, least=1, most=10**6)
        require_whole("window", window, least=1, most=10**6)
        clock = _clock(clients, clock)
        times = tuple(times_in(client, clock) for client in clients)
        moments = np.unique(np.concatenate(times))
        dates = clock != NUMBERS
        first = _start(start, moments, dates)
        needed = past.longest + past.known_after + FEWEST
        earliest = max(_moment_of_row(client, when, moments, needed) for client, when in zip(clients, times, strict=True))
        left = len(moments) - first
        if refit > left:
            what = f"the {left} {'moment' if left == 1 else 'moments'} from {shown_moment(float(moments[first]), dates)} on"
            raise ValueError(f"refit must be at most {left}, {what}, found {refit}")
        if first < earliest:
            least = shown_moment(float(moments[earliest]), dates) if earliest < len(moments) else "a later row"
            why = f"{needed} rows of each client come before a first training ({past.longest} for lags and means)"
            raise ValueError(f"start must be {least} or later, found {shown_moment(float(moments[first]), dates)}: {why}")
        before = min(-(-max(window, record) // refit), (first - earliest) // refit)
        origins = tuple(range(first - before * refit, len(moments), refit))
        return cls(times, moments, origins, first, refit, past.known_after, dates)

    @property
    def days(self) -> list[np.ndarray | None]:
        """Days since 1970 of each client's rows; None if the order consists of numbers."""
        return [when / DAY if self.dates else None for when in self.times]

    @property
    def past_days(self) -> float:
        """Days from the first row to the first origin; 0 if the order consists of numbers."""
        return float(self.moments[self.origins[0]] - self.moments[0]) / DAY if self.dates else 0.0

    def known(self, origin: int) -> list[int]:
        """The number of rows of each client that are known at an origin."""
        return [max(int(np.searchsorted(when, self.moments[origin])) - self.known_after, 0) for when in self.times]

    def trained_once(self, origin: int) -> int:
        """The origin of the latest training of a candidate with ``once``: the first one, or that of the first reported row."""
        return self.start if origin >= self.start else self.origins[0]

    def block(self, origin: int) -> list[slice]:
        """The rows of each client from an origin to the next."""
        end = origin + self.refit
        last = np.inf if end >= len(self.moments) else self.moments[end]
        return [slice(*(int(n) for n in np.searchsorted(when, (self.moments[origin], last)))) for when in self.times]

    def shown(self, number: int) -> str:
        """A moment as text."""
        return shown_moment(float(self.moments[number]), self.dates)


def _clock(clients: Sequence[Client], clock: str | None) -> str:
    for client in clients:
        if client.times is None:
            fix = "pass dffl.Client(..., times=...), or name the column as `order` in the federation's file"
            raise ValueError(f"client {client.name!r}: a backtest needs an order of the rows, found none; {fix}")
    if clock is not None and clock not in CLOCKS:
        raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, found {clock!r:.40}")
    if clock is not None:
        return clock
    least = min(float(np.abs(client.times).min()) for client in clients if client.times is not None)
    return NANOSECONDS if least > SURELY_NANOSECONDS else NUMBERS


def times_in(client: Client, clock: str) -> np.ndarray:
    """A client's times in seconds, or as numbers. Two rows of one moment are refused."""
    assert client.times is not None, "it was checked"
    times = client.times / 1e9 if clock == NANOSECONDS else client.times
    same = np.flatnonzero(np.diff(client.times) <= 0)
    if len(same):
        row = int(same[0])
        fix = "a backtest needs one row for each moment; put the rows of one day into one row"
        moment = shown_moment(float(times[row]), clock != NUMBERS)
        raise ValueError(f"client {client.name!r}: rows {row} and {row + 1} have the same moment in the order, {moment}; {fix}")
    return times


def _start(start: Any, moments: np.ndarray, dates: bool) -> int:
    """The number of the first moment that is reported: the given one or the next after it; by default, the later half is."""
    if start is None:
        return len(moments) // 2
    value = start.item() if isinstance(start, np.generic) and not isinstance(start, np.datetime64) else start
    value = str(value) if isinstance(value, np.datetime64) else value
    wanted = moment_of(value)
    if wanted is None or isinstance(value, int | float) == dates:
        raise ValueError(f"start must be {'a date such as 2024-09-01' if dates else 'a number'}, found {start!r:.40}")
    number = int(np.searchsorted(moments, wanted))
    if number >= len(moments):
        last = shown_moment(float(moments[-1]), dates)
        raise ValueError(f"start must be at most {last}, the last row, found {shown_moment(wanted, dates)}")
    return number


def _moment_of_row(client: Client, when: np.ndarray, moments: np.ndarray, row: int) -> int:
    """The number of the first moment before which a client has this number of rows."""
    if row >= len(when):
        raise ValueError(f"client {client.name!r}: a backtest needs more than {row} rows, found {len(when)}")
    return int(np.searchsorted(moments, when[row]))
