"""The engine of a federation whose rows stay on disk: the clients of an order are read, visited together and forgotten.

What outlives a visit is small: each client's units once they are known, and what a trainer keeps with a client.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dffl.federation import Client
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.training.engines.base import ClientAnswers, Fields, Note, Visitor
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.engines.vector import VectorEngine, ignore
from dffl.training.settings import Settings
from dffl.training.units import pooled


class UnitsOnDisk(Sequence[Normaliser]):
    """Each client's units, from its rows when they are first read."""

    def __init__(self, federation: ParquetFederation, settings: Settings, same: Normaliser | None = None):
        self._federation, self._settings = federation, settings
        self._known: dict[int, Normaliser] = {}
        self._same = same
        if settings.pooled_units and same is None:  # every row is read once
            self._same = pooled(self, federation.names, federation.counts, settings, federation.dim)

    def __len__(self) -> int:
        return len(self._federation)

    def __getitem__(self, place: Any) -> Any:
        if self._same is not None:
            return self._same
        place = range(len(self))[place]
        return self._known[place] if place in self._known else self.of(place, self._federation.client(place))

    def of(self, place: int, client: Client) -> Normaliser:
        """The units of a client that was read."""
        if self._same is not None:
            return self._same
        if place not in self._known:
            self._known[place] = self._settings.units(client.x, client.c)
        return self._known[place]


class ParquetEngine:
    """An `Engine` that reads the clients of each order."""

    in_process = True
    all_answer = True
    judges = False

    def __init__(
        self,
        federation: ParquetFederation,
        settings: Settings,
        noise: NoiseSource | None = None,
        same: Normaliser | None = None,
    ):
        """``same`` are the units of all clients, where they are pooled and known."""
        self.federation, self.settings, self._noise = federation, settings, noise
        self.names, self.counts = tuple(federation.names), np.array(federation.counts)
        self.units = UnitsOnDisk(federation, settings, same)
        with precision(settings):
            recipe, self.initial = starting_recipe(settings, federation.features, federation.dim)
        self.template = recipe.form.template
        self._kept: defaultdict[str, dict[str, Fields]] = defaultdict(dict)

    def ask(
        self,
        visitor: Visitor,
        members: np.ndarray | None = None,
        *,
        scope: str = "",
        note: Callable[[Note], None] | None = None,
        **sent: Any,
    ) -> Iterator[ClientAnswers]:
        asked = np.arange(len(self.names)) if members is None else np.asarray(members)
        for places in map(np.array, self.federation.stretches(asked.tolist())):
            some = self.federation.read(places.tolist())
            units = [self.units.of(place, client) for place, client in zip(places.tolist(), some, strict=True)]
            engine = VectorEngine(some, self.settings, None, units, self._noise)
            kept = self._kept[scope]
            engine.restore(scope, {name: kept[name] for name in some.names if name in kept})

            def passed_on(seen: Note, places: np.ndarray = places) -> None:
                (note or ignore)(replace(seen, members=places[seen.members]))

            for answer in engine.ask(visitor, None, scope=scope, note=passed_on, **sent):
                yield answer._replace(members=places[answer.members])
            kept |= engine.kept(scope)

    def kept(self, scope: str) -> dict[str, Fields]:
        return {name: dict(fields) for name, fields in self._kept[scope].items()}

    def restore(self, scope: str, kept: Mapping[str, Fields]) -> None:
        self._kept[scope].update({name: dict(fields) for name, fields in kept.items()})
