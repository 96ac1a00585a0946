"""Engines: the client update, mapped over clients.

The vectorised engine runs it for a chunk of clients in one compiled program; the loop engine runs it client by client.
Clients share a program if their sets have one family and shape and they deal their samples into equally many batches of
about one size. All samples stand in one table, so no client is padded to another's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.federation import Federation, keep_optima
from dffl.predictor import Template
from dffl.randomness import Purpose, stream
from dffl.sets import FeasibleSet, stack
from dffl.sets.base import structure
from dffl.training.batches import Dealer, round_up
from dffl.training.settings import Settings
from dffl.training.update import Diagnostics, Recipe, compiled_losses, compiled_start, compiled_update


class Chunk(NamedTuple):
    """Clients that train in one program: ``members`` are their positions. Padded to ``size`` by idle copies of the last."""

    members: np.ndarray
    size: int
    rows: int
    sets: FeasibleSet
    signs: np.ndarray


class _Group(NamedTuple):
    """All clients that can share a program."""

    members: np.ndarray
    rows: int
    sets: FeasibleSet
    signs: np.ndarray


class Update(NamedTuple):
    """What training a chunk returns, one row for each of its ``size`` places."""

    vectors: Array
    states: Any
    seen: Diagnostics


class Engine:
    """A federation laid out for training, and the client update mapped over its clients."""

    def __init__(self, federation: Federation, settings: Settings, validation: Federation | None = None):
        self.federation, self.settings = federation, settings
        self.dtype = np.dtype(settings.dtype)
        self.together = settings.engine == "vector"
        self.counts = np.array(federation.counts)
        self.normalisers = [settings.units(client.x, client.c) for client in federation]
        starts = np.cumsum(self.counts) - self.counts
        self._dealers = [
            Dealer(client.name, client.n, settings.batch_size, settings.seed, int(start))
            for client, start in zip(federation, starts, strict=True)
        ]
        with self.precision():
            network = initial_network(federation, settings)
            self.template = Template(network)
            self.initial = self.template.vector(network).astype(self.dtype)
            self.recipe = Recipe(self.template, settings.tau, settings.learning_rate, settings.gradient_clip)
            self._table = jnp.asarray(self._rows(federation))
            self._held = None if validation is None else self._hold(validation)
        self._groups = self._grouped()
        self._everyone = self._chunks(np.arange(len(federation)), limit=len(federation))

    def precision(self) -> AbstractContextManager[Any]:
        """The context in which everything of this engine is traced and run."""
        return jax.enable_x64(self.dtype == np.float64)

    def chunks(self, members: np.ndarray | None = None, limit: int | None = None) -> Sequence[Chunk]:
        """The clients at these positions (default: all) as chunks that each train in one program.

        ``limit`` is the most clients that are ever asked for at once, where that is known: it saves idle places.
        """
        return self._everyone if members is None else self._chunks(members, limit or len(self.federation))

    def start(self, chunk: Chunk, vectors: Any) -> tuple[Array, Any]:
        """A chunk's start vectors, from one shared vector or one a member, and a fresh optimiser state."""
        with self.precision():
            return compiled_start(self.recipe, chunk.size)(vectors)

    def update(self, chunk: Chunk, vectors: Array, states: Any, first_epoch: int, epochs: int, purpose: Purpose) -> Update:
        """Run the client update for some epochs, numbered from ``first_epoch``, at most ``local_epochs`` of them."""
        batches = self._deal(chunk, first_epoch, epochs, purpose)
        arguments = (vectors, states, chunk.sets, chunk.signs, self._table, batches, np.int32(epochs))
        return Update(*self._call(compiled_update, arguments, shared=(4, 6)))

    def validate(self, chunk: Chunk, vectors: Array, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean SPO+ loss and squared error on the members' validation samples, (members, candidates) each.

        ``vectors`` (size, models, numbers) are the members' models, ``mixing`` (candidates, models) says how a
        candidate mixes their outputs.
        """
        if self._held is None:
            raise RuntimeError("this engine was laid out without validation samples")
        table, starts, counts = self._held
        index = np.full((chunk.size, round_up(int(counts[chunk.members].max()))), -1, np.int32)
        for place, member in enumerate(chunk.members):
            index[place, : counts[member]] = starts[member] + np.arange(counts[member])
        arguments = (vectors, mixing.astype(self.dtype), chunk.sets, chunk.signs, table, index)
        spo, error = self._call(compiled_losses, arguments, shared=(1, 4))
        real = len(chunk.members)
        return np.asarray(spo)[:real], np.asarray(error)[:real]

    def _call(self, compiled: Callable[..., Any], arguments: tuple[Any, ...], shared: tuple[int, ...]) -> Any:
        """Run a compiled function for a chunk, or for its only member; ``shared`` arguments have no client axis."""
        function = compiled(self.recipe, self.together)
        with self.precision():
            if self.together:
                return function(*arguments)
            single = [a if i in shared else jax.tree.map(lambda v: v[0], a) for i, a in enumerate(arguments)]
            return jax.tree.map(lambda v: v[None], function(*single))

    def _deal(self, chunk: Chunk, first_epoch: int, epochs: int, purpose: Purpose) -> np.ndarray:
        steps = self._dealers[chunk.members[0]].steps
        batches = np.full((chunk.size, self.settings.local_epochs, steps, chunk.rows), -1, np.int32)
        for place, member in enumerate(chunk.members):
            for epoch in range(epochs):
                self._dealers[member].deal(first_epoch + epoch, purpose, batches[place, epoch])
        return batches

    def _grouped(self) -> list[_Group]:
        positions: dict[Any, list[int]] = {}
        for position, (client, dealer) in enumerate(zip(self.federation, self._dealers, strict=True)):
            key = (structure(client.set), dealer.steps, round_up(dealer.rows, bits=2)) if self.together else position
            positions.setdefault(key, []).append(position)
        groups = []
        for members in positions.values():
            clients = [self.federation[i] for i in members]
            sets = stack([client.set for client in clients]).astype(self.dtype)
            signs = np.array([client.sense for client in clients], self.dtype)
            groups.append(_Group(np.array(members), max(self._dealers[i].rows for i in members), sets, signs))
        return groups

    def _chunks(self, members: np.ndarray, limit: int) -> list[Chunk]:
        chunks = []
        for group in self._groups:
            present = np.flatnonzero(np.isin(group.members, members))
            # One size for all chunks of a group, so that they share a program, and as few idle places as that allows.
            most = min(len(group.members), limit)
            size = math.ceil(most / math.ceil(most / self.settings.chunk_size))
            for start in range(0, len(present), size):
                part = present[start : start + size]
                places = np.pad(part, (0, size - len(part)), mode="edge")
                sets = jax.tree.map(lambda a, places=places: a[places], group.sets)
                chunks.append(Chunk(group.members[part], size, group.rows, sets, group.signs[places]))
        return chunks

    def _rows(self, federation: Federation) -> np.ndarray:
        """Every client's samples in its own scaled units, below each other: x, c with a minimiser's sign, w*."""
        keep_optima(federation.clients)
        p, d = federation.features, federation.dim
        table = np.empty((sum(federation.counts), p + 2 * d), self.dtype)
        start = 0
        for client, unit in zip(federation, self.normalisers, strict=True):
            block = table[start : start + client.n]
            block[:, :p] = unit.features(client.x)
            block[:, p : p + d] = client.sense * client.c / unit.c_scale
            block[:, p + d :] = client.w_star
            start += client.n
        return table

    def _hold(self, validation: Federation) -> tuple[Array, np.ndarray, np.ndarray]:
        counts = np.array(validation.counts)
        return jnp.asarray(self._rows(validation)), np.cumsum(counts) - counts, counts


def initial_network(federation: Federation, settings: Settings) -> Any:
    """The network that every client starts from."""
    seed = stream(settings.seed, Purpose.INITIALISE).integers(2**31)
    key = jax.random.key(int(seed))
    p, d = federation.features, federation.dim
    if settings.forecast and p <= d:
        raise ValueError(f"forecast: x must hold a forecast of the {d} costs behind its other features, found {p} columns")
    network: Any = settings.factory(key, p, d)
    shape = jax.eval_shape(network, jax.ShapeDtypeStruct((p,), jnp.float32)).shape
    if shape != (d,):
        raise ValueError(f"network must map a vector of {p} features to a vector of {d} costs, found output shape {shape}")
    return network


def rounds_of(epochs: int, most: int) -> Iterator[tuple[int, int]]:
    """(first epoch, number of epochs) of consecutive calls of at most ``most`` epochs."""
    for first in range(0, epochs, most):
        yield first, min(most, epochs - first)
