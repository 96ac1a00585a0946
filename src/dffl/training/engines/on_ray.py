"""The engine of a Ray cluster: clients live in actors, one on each node, and only orders and answers cross.

This process keeps a copy of what trainers keep with the clients. When a node is lost, its clients are made again on another
one, are given what they kept, and are sent the order again: a visit follows from these alone, so the numbers stay the same.
"""

from __future__ import annotations

import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from dffl import __version__
from dffl.cache import keep_compiled_programs
from dffl.federation import Federation
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.ray_cluster import RayCluster, one_line, wanted_address
from dffl.training.engines.base import ClientAnswers, Engine, Fields, Note, Visitor
from dffl.training.engines.parquet import ParquetEngine, UnitsOnDisk
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.engines.vector import VectorEngine, ignore
from dffl.training.settings import Settings
from dffl.training.units import client_units

TRIES = 5
"""How often the clients of an actor are made again before a run gives up."""
STARTING = 120.0
"""Seconds that an actor may take to start."""
Kept = dict[str, dict[str, Fields]]
"""What clients keep, by scope and name."""


def versions() -> dict[str, str]:
    """What must be the same on all nodes, or the numbers are not."""
    return {"dffl": __version__, "Python": platform.python_version(), "JAX": jax.__version__, "NumPy": np.__version__}


class Visited(NamedTuple):
    """What comes back from an actor: the answers, what was noted, and what the clients newly keep."""

    answers: list[ClientAnswers]
    notes: list[Note]
    kept: dict[str, Fields]


class ClientsActor:
    """Some clients of a run, on a node: for each part of the samples an engine of one process."""

    def __init__(self) -> None:
        keep_compiled_programs()
        self._engines: dict[str, Any] = {}

    def versions(self) -> dict[str, str]:
        return versions()

    def hold(self, part: str, make: Callable[[], Engine], kept: Kept) -> None:
        """Lay out the clients' samples of a part, with what the clients kept."""
        engine = make()
        for scope, own in kept.items():
            engine.restore(scope, own)
        self._engines[part] = engine

    def ask(
        self, part: str, visitor: Visitor, members: np.ndarray, scope: str, sent: Mapping[str, Any], held: None = None
    ) -> Visited:
        """Visit the clients at these positions of this actor; ``held`` is what `hold` gave, so that its error is seen."""
        engine = self._engines[part]
        notes: list[Note] = []
        before = _identities(engine.kept(scope))
        answers = list(engine.ask(visitor, members, scope=scope, note=notes.append, **sent))
        after = engine.kept(scope)
        changed = {name for name, own in _identities(after).items() if own != before.get(name)}
        plain = [replace(one, seen=type(one.seen)(*map(np.asarray, one.seen))) for one in notes]
        return Visited(answers, plain, {name: after[name] for name in changed})


def _identities(kept: Mapping[str, Fields]) -> dict[str, dict[str, int]]:
    return {name: {field: id(value) for field, value in own.items()} for name, own in kept.items()}


class RayActors:
    """An actor on each node of a cluster; a run has them once, for all parts of the samples."""

    def __init__(self) -> None:
        try:
            import ray
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
        except ImportError:
            raise ValueError("engine 'ray' needs the extra: pip install 'dffl[ray]'") from None
        self.ray: Any = ray
        self._on = NodeAffinitySchedulingStrategy
        self._cluster = RayCluster(ray, wanted_address(ray), "engine 'ray':")
        self._remote = ray.remote(num_cpus=0, max_restarts=0)(ClientsActor)
        self._nodes = [node["NodeID"] for node in self._alive()]
        self._losses = Counter[int]()
        self.actors = [self._started(node) for node in self._nodes]
        self.made = [0] * len(self.actors)
        """How often each actor was made again."""
        for place in range(len(self.actors)):
            self._require_versions(place)

    def __len__(self) -> int:
        return len(self.actors)

    def ready(self, pending: list[Any]) -> list[Any]:
        """The first of these that are done, or failed."""
        while True:
            if self._cluster.answers("nothing of the round under way is saved"):
                done, _ = self.ray.wait(pending, num_returns=1, timeout=1.0)
                if done:
                    return list(done)
            else:
                time.sleep(1.0)  # Ray's own calls may not come back

    def again(self, place: int, error: Exception) -> None:
        """Make a lost actor again, on another node if there is one."""
        while True:
            self._losses[place] += 1
            if self._losses[place] > TRIES:
                raise OSError(f"engine 'ray': the clients of a node were lost {TRIES} times ({one_line(error)})") from None
            alive = [node["NodeID"] for node in self._alive()]
            others = [node for node in alive if node != self._nodes[place]] or alive
            self._nodes[place] = min(others, key=self._nodes.count)
            self.actors[place] = self._started(self._nodes[place])
            self.made[place] += 1
            try:
                return self._require_versions(place)
            except self.ray.exceptions.RayError as another:
                error = another
                time.sleep(1.0)

    def _alive(self) -> list[Any]:
        return sorted((node for node in self.ray.nodes() if node["Alive"]), key=lambda node: node["NodeID"])

    def _started(self, node: str) -> Any:
        return self._remote.options(scheduling_strategy=self._on(node, soft=False)).remote()

    def _require_versions(self, place: int) -> None:
        """Refuse a node where other numbers would be computed."""
        where = next((node["NodeManagerAddress"] for node in self.ray.nodes() if node["NodeID"] == self._nodes[place]), "?")
        try:
            theirs = self.ray.get(self.actors[place].versions.remote(), timeout=STARTING)
        except (self.ray.exceptions.RayTaskError, AttributeError, ImportError, RuntimeError) as error:
            if isinstance(error, self.ray.exceptions.ActorDiedError | self.ray.exceptions.ActorUnavailableError):
                raise
            raise ValueError(f"engine 'ray': node {where} cannot run dffl ({one_line(error)})") from None
        for name, mine in versions().items():
            if theirs.get(name) != mine:
                fix = "all nodes need the same versions"
                raise ValueError(f"engine 'ray': node {where} has {name} {theirs.get(name)}, this process {mine}; {fix}")


class RayEngine:
    """An `Engine` whose clients are in the actors of a cluster."""

    in_process = True
    all_answer = True

    def __init__(
        self,
        actors: RayActors,
        part: str,
        federation: Federation | ParquetFederation,
        settings: Settings,
        held: Federation | None,
        units: Sequence[Normaliser] | None,
        noise: NoiseSource | None,
    ):
        self.names, self.counts = tuple(federation.names), np.array(federation.counts)
        self.judges, self._actors, self._part = held is not None, actors, part
        with precision(settings):
            recipe, self.initial = starting_recipe(settings, federation.features, federation.dim)
        self.template = recipe.form.template
        self._make: Callable[[np.ndarray], Callable[[], Any]]
        if isinstance(federation, ParquetFederation):
            self.units: Sequence[Normaliser] = UnitsOnDisk(federation, settings)
            same = self.units[0] if settings.pooled_units else None
            self._make = lambda places: partial(ParquetEngine, federation.some(places.tolist()), settings, noise, same)
        else:
            self.units = own = [*(units or client_units(federation, settings))]
            self._make = lambda places: partial(
                VectorEngine,
                _some(federation, places),
                settings,
                None if held is None else _some(held, places),
                [own[k] for k in places],
                noise,
            )
        self._shares = np.array_split(np.arange(len(self.names)), len(actors))
        self._holds: list[int | None] = [None] * len(actors)
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
        errors, receive = self._actors.ray.exceptions, note or ignore
        asked = np.arange(len(self.names)) if members is None else members
        places = {place: np.flatnonzero(np.isin(share, asked)) for place, share in enumerate(self._shares)}

        def send(place: int) -> Any:
            held = self._held(place)
            return self._actors.actors[place].ask.remote(self._part, visitor, places[place], scope, sent, held)

        pending = {send(place): place for place, mine in places.items() if len(mine)}
        while pending:
            for reference in self._actors.ready(list(pending)):
                place = pending.pop(reference)
                try:
                    answers, notes, kept = self._actors.ray.get(reference)
                except errors.RayTaskError as error:
                    raise error.cause from None
                except errors.RayError as error:  # a lost process or node
                    self._actors.again(place, error)
                    pending[send(place)] = place
                    continue
                share = self._shares[place]
                for seen in notes:
                    receive(replace(seen, members=share[seen.members]))
                self._kept[scope] |= kept
                for answer in answers:
                    yield answer._replace(members=share[answer.members])

    def _held(self, place: int) -> Any:
        """Lay out the clients of this part in an actor that does not have them: the order waits for it."""
        if self._holds[place] == self._actors.made[place]:
            return None
        names = {self.names[member] for member in self._shares[place]}
        kept = {scope: {name: own for name, own in of.items() if name in names} for scope, of in self._kept.items()}
        self._holds[place] = self._actors.made[place]
        return self._actors.actors[place].hold.remote(self._part, self._make(self._shares[place]), kept)

    def kept(self, scope: str) -> dict[str, Fields]:
        return {name: dict(fields) for name, fields in self._kept[scope].items()}

    def restore(self, scope: str, kept: Mapping[str, Fields]) -> None:
        self._kept[scope].update({name: dict(fields) for name, fields in kept.items()})
        self._holds = [None] * len(self._actors)


def _some(federation: Federation, places: np.ndarray) -> Federation:
    """The clients at these positions."""
    return Federation([federation[int(place)] for place in places])
