"""The values of a report about money and about decisions by day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Saving:
    """The saving of the main method against another one: the mean of a sample, with the ends of its interval."""

    client: str
    """Empty: all clients together."""
    against: str
    value: float
    low: float | None
    """None: not judged."""
    high: float | None
    lost: float
    """The mean loss of a sample under the main method."""
    other: float
    """The mean loss under the other method."""
    unit: str = ""
    """The unit of the costs; empty: shares of the best possible result."""
    a_year: float | None = None
    """The samples in a year; None if unknown."""

    @property
    def judged(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def clear(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Course:
    """The losses of one client's decisions, stretch by stretch of the test rows."""

    client: str
    """Empty: all clients together."""
    main: tuple[float | None, ...]
    """The sum of regrets in each stretch; None if the client has no row in it."""
    now: tuple[float | None, ...]
    """The same under today's rule."""
    unit: str = ""


@dataclass(frozen=True)
class RefitTime:
    """When models were trained and rules chosen again, and each client's rule from then on."""

    time: str
    rules: dict[str, str]


@dataclass(frozen=True)
class DecidedRows:
    """The last test rows of a client: the decisions, and the best ones."""

    client: str
    items: tuple[str, ...]
    times: tuple[str, ...]
    chosen: tuple[tuple[float, ...], ...]
    best: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class OverTime:
    """The test rows in their order."""

    first: str
    last: str
    rows: int
    """The number of moments from the first to the last."""
    days: float | None = None
    """Days from the first to the last moment; None if the order consists of numbers."""
    ends: tuple[str, ...] = ()
    """The last moment of each stretch of the courses."""
    courses: tuple[Course, ...] = ()
    refits: tuple[RefitTime, ...] = ()
    decided: tuple[DecidedRows, ...] = ()
    rules: dict[str, str] = field(default_factory=dict)
    """Each client's rule from now on."""
    held: dict[str, float] = field(default_factory=dict)
    """For each client the share of its costs that were inside their range."""
    share: float | None = None
    """The share that ranges state."""

    def course(self, client: str) -> Course | None:
        """The course of a client, or of all together."""
        return next((course for course in self.courses if course.client == client), None)


def over_time_of(plain: dict[str, Any] | None) -> OverTime | None:
    """The inverse of the JSON form."""
    if plain is None:
        return None
    read: dict[str, Any] = {
        "ends": tuple,
        "courses": lambda many: tuple(
            Course(**entry | {name: tuple(entry[name]) for name in ("main", "now")}) for entry in many
        ),
        "refits": lambda many: tuple(RefitTime(**entry) for entry in many),
        "decided": lambda many: tuple(map(_decided, many)),
    }
    return OverTime(**{name: read[name](value) if name in read else value for name, value in plain.items()})


def _decided(plain: dict[str, Any]) -> DecidedRows:
    rows = {name: tuple(map(tuple, plain[name])) for name in ("chosen", "best")}
    return DecidedRows(**plain | {"items": tuple(plain["items"]), "times": tuple(plain["times"])} | rows)
