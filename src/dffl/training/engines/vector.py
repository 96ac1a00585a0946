"""The vectorised engine: clients of one shape train together, in one compiled program.

Clients share a program if their sets have one family and shape and their samples make equally many batches of one shape. All
samples are in one table, so no client is padded to another's size.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache, cached_property
from queue import SimpleQueue
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dffl.cores import core_count, side_by_side
from dffl.federation import Federation
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.sets import FeasibleSet, stack
from dffl.sets._errors import host_errors
from dffl.sets.base import structure
from dffl.shapes import round_up
from dffl.tiles import places_by
from dffl.training.batches import Batches
from dffl.training.engines.base import ClientAnswers, Fields, Note, Visitor, answered
from dffl.training.engines.site import JudgingSamples, Layout, Site, judging_rows
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.settings import Settings
from dffl.training.units import client_units, own_smoothing, sample_table
from dffl.training.update import BLOCK, ClientSide, places_for

SMALL = 1 << 23
"""In a table with fewer numbers, there may be as many idle rows as others."""


class _Group(NamedTuple):
    """All clients that can share a program."""

    members: np.ndarray
    sets: FeasibleSet
    signs: np.ndarray


class VectorEngine:
    """A federation prepared for training in one process. An `Engine`."""

    in_process = True
    all_answer = True

    def __init__(
        self,
        federation: Federation,
        settings: Settings,
        held: Federation | None = None,
        units: list[Normaliser] | None = None,
        noise: NoiseSource | None = None,
    ):
        self.federation, self.settings = federation, settings
        self.names, self.counts = tuple(federation.names), np.array(federation.counts)
        self.units = units or client_units(federation, settings)
        self.judges = held is not None
        with self.precision():
            recipe, self.initial = starting_recipe(settings, federation.features, federation.dim)
            self.template = recipe.form.template
            table = jnp.asarray(_roomy(sample_table(federation, self.units, settings.dtype)))
            judging = None if held is None else self._held(held)
        starts = np.cumsum(self.counts) - self.counts
        batches = [
            Batches(client.name, client.n, settings.batch_size, settings.seed, int(start))
            for client, start in zip(federation, starts, strict=True)
        ]
        smoothing = cache(lambda place: own_smoothing(federation[place], self.units[place]))

        @cache
        def rows_digest(place: int) -> bytes:
            batch = batches[place]
            return hashlib.blake2b(np.asarray(table[batch.offset : batch.offset + batch.n]).tobytes()).digest()

        hides = noise or NoiseSource.public(settings.seed)
        self._layout = Layout(settings, recipe, self.initial, table, batches, judging, smoothing, rows_digest, hides)
        self._cores = core_count()
        self._groups = self._grouped()
        self._kept: defaultdict[str, dict[int, Fields]] = defaultdict(dict)
        """For each training, the arrays that its clients keep between visits."""

    def precision(self) -> AbstractContextManager[Any]:
        """The context in which everything of this engine is traced and computed."""
        return precision(self.settings)

    def ask(
        self,
        visitor: Visitor,
        members: np.ndarray | None = None,
        *,
        scope: str = "",
        note: Callable[[Note], None] | None = None,
        **sent: Any,
    ) -> Iterator[ClientAnswers]:
        """Visit the clients at these positions, those of one shape together, on all available cores."""

        def visit(site: Site) -> ClientAnswers:
            with self.precision():
                return answered(visitor, site, sent)

        notes = _Notes(note or ignore)
        sites = list(self.sites(members, scope, notes.add))
        with host_errors((client.name, client.oracle) for client in self.federation):
            for answer in side_by_side(visit, sites, self._cores, notes.pass_on, notes.stop):
                notes.pass_on()
                yield answer

    def sites(
        self, members: np.ndarray | None = None, scope: str = "", note: Callable[[Note], None] | None = None
    ) -> Iterator[Site]:
        """The clients at these positions (default: all), in sites of one shape."""
        laid_out = self._everyone if members is None or len(members) == len(self.names) else self._laid_out(members)
        for mine, side in laid_out:
            yield Site(mine, self._layout, side, self._kept[scope], note or ignore)

    @cached_property
    def _everyone(self) -> list[tuple[np.ndarray, ClientSide]]:
        return self._laid_out(np.arange(len(self.names)))

    def _laid_out(self, members: np.ndarray) -> list[tuple[np.ndarray, ClientSide]]:
        """The clients of each site, and the inputs of their programs."""
        layouts = []
        for group in self._groups:
            present = np.flatnonzero(np.isin(group.members, members))
            # Whole blocks to each site: enough sites for all cores, none above the chunk size.
            blocks = np.split(present, range(BLOCK, len(present), BLOCK))
            number = min(len(blocks), max(-(-len(present) // self.settings.chunk_size), self._cores))
            for part in (np.concatenate(some) for some in _evenly(blocks, number)) if len(present) else ():
                places = np.pad(part, (0, places_for(len(part)) - len(part)), mode="edge")
                sets = jax.tree.map(lambda a, places=places: a[places], group.sets)
                layouts.append((group.members[part], ClientSide(sets, group.signs[places], np.empty(0))))
        return layouts

    def kept(self, scope: str) -> dict[str, Fields]:
        return {self.names[member]: dict(fields) for member, fields in self._kept[scope].items()}

    def restore(self, scope: str, client_state: Mapping[str, Fields]) -> None:
        self._kept[scope].update({self.names.index(name): dict(fields) for name, fields in client_state.items()})

    def _grouped(self) -> list[_Group]:
        groups = []
        for places in places_by(self._shape(place) for place in range(len(self.federation))):
            # In the order of names, in which answers are needed.
            members = sorted(places, key=lambda place: self.names[place])
            clients = [self.federation[i] for i in members]
            sets = stack([client.oracle for client in clients]).astype(self.initial.dtype)
            signs = np.array([client.sense for client in clients], self.initial.dtype)
            groups.append(_Group(np.array(members), sets, signs))
        return groups

    def _shape(self, place: int) -> Any:
        """The properties that clients in one program have in common; each depends only on the client."""
        batch, held_out = self._layout.batches[place], self._layout.held
        judging = 0 if held_out is None else judging_rows(int(held_out.counts[place]))
        return structure(self.federation[place].oracle), batch.steps, batch.rows, judging

    def _held(self, judged: Federation) -> JudgingSamples:
        counts, table = np.array(judged.counts), sample_table(judged, self.units, self.settings.dtype)
        return JudgingSamples(jnp.asarray(_roomy(table)), np.cumsum(counts) - counts, counts)


class LoopEngine(VectorEngine):
    """Visits one client at a time, in the same programs and with the same numbers: for debugging, and for a deployed site."""

    def _shape(self, place: int) -> Any:
        return place


def _roomy(table: np.ndarray) -> np.ndarray:
    """The table followed by idle rows, at least one: programs are compiled for a number of rows, and folds have many sizes.

    The number for a small table is a power of two, because refits of a growing past have many sizes.
    """
    bits = 0 if table.size < SMALL else 3
    return np.pad(table, ((0, round_up(max(len(table), 1), bits) - len(table)), (0, 0)))


def _evenly(items: list[Any], number: int) -> Iterator[list[Any]]:
    """The items in ``number`` consecutive parts whose sizes differ by one at most, the larger ones first."""
    for part in np.array_split(np.arange(len(items)), number):
        yield [items[place] for place in part]


def ignore(note: Note) -> None:
    """Of a caller who wants no notes."""


class _Notes:
    """Notes of sites from several threads, passed on in the calling thread. Sites note often, so they also stop here."""

    def __init__(self, receive: Callable[[Note], None]):
        self._receive, self._asker, self._stopped = receive, threading.get_ident(), False
        self._waiting: SimpleQueue[Note] = SimpleQueue()

    def add(self, note: Note) -> None:
        if self._stopped:
            raise RuntimeError("stopped: the run has ended early")
        self._waiting.put(note)
        if threading.get_ident() == self._asker:
            self.pass_on()

    def stop(self) -> None:
        self._stopped = True

    def pass_on(self) -> None:
        while not self._waiting.empty():
            self._receive(self._waiting.get())
