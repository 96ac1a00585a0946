"""What a backtest trains: each candidate at each origin, from nothing. So trainings run side by side, to the same bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dffl.cores import core_count, one_blas_thread, side_by_side
from dffl.federation import Client
from dffl.progress import Progress
from dffl.time.bases import FORECAST, MEANS, STEADY, SteadyAverage, plain_mean
from dffl.time.kept import Kept
from dffl.time.own import Views
from dffl.time.past import Past
from dffl.time.refits import Candidate
from dffl.time.timeline import Timeline

VIEWS = 3
"""Views of the clients that are held at once, one for each base: they are large."""

Tables = list[np.ndarray]
"""What a rule expects of some rows, (rows, d), of each client."""


class Training(NamedTuple):
    """One training of a candidate, and the origins after which it is used."""

    candidate: Candidate
    since: int
    origins: tuple[int, ...]


@dataclass(frozen=True)
class Ground:
    """What rules and models of a backtest start from: the clients in their order, and one base for all models."""

    clients: Sequence[Client]
    timeline: Timeline
    base: str
    past: Past
    settings: Mapping[str, Any]
    average: SteadyAverage
    _weights: dict[int, float] = field(default_factory=dict)
    _views: dict[float, Views] = field(default_factory=dict)
    _tables: dict[float, Tables] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, clients: Sequence[Client], timeline: Timeline, base: str, past: Past, settings: Mapping[str, Any]) -> Ground:
        return cls(clients, timeline, base, past, settings, SteadyAverage(clients, timeline.days, past.known_after))

    def naive(self, origin: int) -> dict[str, Tables]:
        """What the rules that need no training expect of all rows, as it is known at an origin."""
        found = self._means | {STEADY: self._steady(self._weight(origin))}
        return found | ({FORECAST: self._brought} if self._brought else {})

    @cached_property
    def _means(self) -> dict[str, Tables]:
        return {rule: [plain_mean(rule, client.c, self.past.known_after) for client in self.clients] for rule in MEANS}

    @cached_property
    def _brought(self) -> Tables:
        return [client.forecast for client in self.clients if client.forecast is not None]

    def _weight(self, origin: int) -> float:
        if origin not in self._weights:
            self._weights[origin] = self.average.weight(self.timeline.known(origin))
        return self._weights[origin]

    def _steady(self, weight: float) -> Tables:
        if weight not in self._tables:
            self._tables[weight] = self.average.forecasts(weight)
        return self._tables[weight]

    def views(self, origin: int) -> Views:
        """The clients as models see them at an origin: they differ where the base does."""
        with self._lock:
            weight = 0.0 if self.base == FORECAST else self._weight(origin)
            if weight not in self._views:
                base = self._brought if self.base == FORECAST else self._steady(weight)
                while len(self._views) >= VIEWS:
                    del self._views[next(iter(self._views))]
                self._views[weight] = Views(self.clients, self.timeline.days, base, self.past, self.base == FORECAST)
            return self._views[weight]

    def predicted(self, training: Training) -> list[Tables]:
        """Train, and say what the model expects of the rows after each of its origins."""
        candidate, known = training.candidate, self.timeline.known(training.since)
        model = self.views(training.since).of(candidate.features).trained(candidate, known, self.settings)
        return [self.views(origin).predictions(model, self.timeline.block(origin)) for origin in training.origins]


def trainings(trained: Sequence[Candidate], timeline: Timeline) -> list[Training]:
    """All trainings of a backtest, in the order of time."""
    found: dict[tuple[int, str], list[int]] = {}
    by_label = {one.label: one for one in trained}
    for origin in timeline.origins:
        for one in trained:
            since = timeline.trained_once(origin) if one.once else origin
            found.setdefault((since, one.label), []).append(origin)
    return [Training(by_label[label], since, tuple(origins)) for (since, label), origins in found.items()]


def forecasts_of(
    ground: Ground, trained: Sequence[Candidate], bar: Progress, kept: Kept | None = None, jobs: int | None = None
) -> dict[tuple[int, str], Tables]:
    """What each candidate expects of the rows after each origin; ``jobs`` trainings run at once, by default one per core."""
    found: dict[tuple[int, str], Tables] = {}
    todo: list[Training] = []
    for training in trainings(trained, ground.timeline):
        label = training.candidate.label
        read = {} if kept is None else {one: kept.stored(one, label, len(ground.clients)) for one in training.origins}
        there = {(origin, label): tables for origin, tables in read.items() if tables is not None}
        if len(there) < len(training.origins):
            todo.append(training)
        else:
            found |= there
    bar.expect(sum(len(one.origins) for one in todo))
    for training, made in zip(todo, _in_order(ground, todo, jobs or core_count()), strict=True):
        label = training.candidate.label
        for origin, tables in zip(training.origins, made, strict=True):
            found[origin, label] = tables
            if kept is not None:
                kept.keep(origin, label, tables)
        bar.advance(len(training.origins), f"{label} at {ground.timeline.shown(training.origins[-1])}")
    return found


class _Ended(Exception):
    """Another training has failed, or somebody has pressed Ctrl-C."""


def _in_order(ground: Ground, todo: Sequence[Training], jobs: int) -> Iterator[list[Tables]]:
    ended = threading.Event()

    def work(training: Training) -> list[Tables]:
        if ended.is_set():
            raise _Ended
        return ground.predicted(training)

    with one_blas_thread():
        yield from side_by_side(work, todo, min(jobs, max(len(todo), 1)), lambda: None, ended.set)
