"""The clients of a visit: several of one shape, their samples, and their state between visits.

At a deployed site there is one client; a simulation has many of one shape together. Code that runs here treats the first
axis of every array as the clients of the site and never mixes its rows, so the same code is used for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from dffl.cache import free_programs_in_time
from dffl.losses import Loss
from dffl.randomness import NoiseSource, Purpose, stream
from dffl.shapes import round_up
from dffl.training.batches import Batches
from dffl.training.engines.base import Fields, Note
from dffl.training.settings import Settings
from dffl.training.update import (
    BLOCK,
    ClientSide,
    Diagnostics,
    Recipe,
    Shared,
    Updated,
    compiled_losses,
    compiled_start,
    compiled_update,
)  # fmt: skip


class Layout(NamedTuple):
    """The samples of an engine's clients, in the form of compiled programs."""

    settings: Settings
    recipe: Recipe
    initial: np.ndarray
    table: Any
    batches: Sequence[Batches]
    held: JudgingSamples | None
    smoothing: Callable[[int], float]
    """A client's own smoothing, by its position; computed when a loss needs it."""
    rows_digest: Callable[[int], bytes]
    """A digest of a client's rows of the table, by its position."""
    noise: NoiseSource
    """The source of noise: public in a simulation, with a secret at a deployed site."""


class JudgingSamples(NamedTuple):
    """The samples for judging: a separate table, with each client's first row and number of rows."""

    table: Any
    starts: np.ndarray
    counts: np.ndarray


class TrainedModels:
    """The clients' models after some training, and everything that is needed to continue it."""

    def __init__(self, updated: Updated, clients: int):
        self._updated, self._clients = updated, clients

    @property
    def vectors(self) -> np.ndarray:
        """(clients, numbers)."""
        return np.asarray(self._updated.vector)[: self._clients]

    @property
    def gradients(self) -> np.ndarray:
        """(clients, numbers): the mean over the steps of the last call of the loss's own gradient, if it was measured."""
        assert self._updated.gradient is not None, "ask for it with measure=True"
        return np.asarray(self._updated.gradient)[: self._clients]

    @property
    def state(self) -> tuple[np.ndarray, ...]:
        """The state of the optimiser as arrays, to be kept until the next visit."""
        return tuple(np.asarray(leaf)[: self._clients] for leaf in jax.tree.leaves(self._updated.state))


class Site:
    """Some clients of one shape."""

    def __init__(
        self, members: np.ndarray, layout: Layout, side: ClientSide, kept: dict[int, Fields], note: Callable[[Note], None]
    ):
        self.members, self._layout, self._side, self._kept, self._note = members, layout, side, kept, note
        self.settings, self.initial, self.noise = layout.settings, layout.initial, layout.noise
        self.recipe = layout.recipe
        """The recipe of the run; `dataclasses.replace` makes another one of it."""
        self.template = self.recipe.form.template
        self._batches = [layout.batches[member] for member in members]
        self._places = len(np.asarray(side.sign))
        self._blocks = np.int32(-(-len(members) // BLOCK))
        self._calls = 0

    def __len__(self) -> int:
        return len(self.members)

    @property
    def names(self) -> list[str]:
        """The clients' names."""
        return [batch.name for batch in self._batches]

    # The state of a client.

    def keep(self, name: str, values: Any) -> None:
        """Keep one row of ``values`` with each client, until the next visit."""
        if np.ndim(values) < 1 or len(values) != len(self):
            wanted = f"one row for each of the {len(self)} clients"
            raise ValueError(f"site.keep({name!r}): values must have {wanted}, found shape {np.shape(values)}")
        for member, row in zip(self.members.tolist(), np.asarray(values), strict=True):
            self._kept.setdefault(member, {})[name] = row

    def kept(self, name: str, otherwise: Any) -> np.ndarray:
        """The rows that the clients keep under this name; ``otherwise`` is the row of a client that keeps nothing yet."""
        rows = [self._kept.get(member, {}).get(name) for member in self.members.tolist()]
        return np.stack([np.asarray(otherwise) if row is None else row for row in rows])

    # The work of a client.

    def train(
        self,
        start: Any,
        epochs: int,
        first: int = 0,
        *,
        purpose: Purpose = Purpose.SHUFFLE,
        recipe: Recipe | None = None,
        anchor: Any = None,
        correction: Any = None,
        state: Sequence[np.ndarray] | None = None,
        rate: Any = 1.0,
        smoothing: Any = None,
        round: int | None = None,
        label: str = "",
    ) -> TrainedModels:
        """Run the client update for some epochs, numbered from ``first``.

        ``start`` is one vector for all, one for each client, or what an earlier call returned, to continue with its optimiser's
        state; ``state`` is a state that was kept. ``anchor`` and ``correction`` are vectors, one for all or one each. In the
        same way ``rate``, a factor on the learning rate, and ``smoothing``, for a loss that smooths, are numbers.
        ``round`` and ``label`` name the rows of the history; without a round, calls are counted.
        """
        # Without a recipe of the trainer, the trained vectors stay at the client, and need no protection.
        used = recipe or replace(self.recipe, protects=None)
        current = self._started(start, used, state)
        for begin, count in in_calls(epochs, self.settings.local_epochs):
            free_programs_in_time()
            side = self._side._replace(
                batches=self._minibatches(first + begin, count, purpose),
                key=self._keys(first + begin) if used.loss.random else None,
                anchor=self._each(anchor) if used.pull else None,
                correction=None if correction is None else self._each(correction),
                rate=self._numbers(rate),
                smoothing=self._smoothings([used.loss], smoothing),
                draws=self._draws(first + begin, count, purpose) if used.form.random else None,
                noise=None if used.protects is None else self._noises(used, current, first + begin, count, purpose, rate),
            )
            shared = Shared(self._layout.table, np.int32(count * self._batches[0].steps))
            current = compiled_update(used)(self._blocks, current.vector, current.state, side, shared)
            self._note(Note(self.members, label, self._calls if round is None else round, count, current.seen))
            self._calls += 1
        return TrainedModels(current, len(self))

    def judge(
        self, models: np.ndarray, mixing: np.ndarray, losses: Sequence[Loss], *, training: bool = False, smoothing: Any = None
    ) -> list[np.ndarray]:
        """The mean of each loss on the clients' held-out samples, or on the training samples, (clients, candidates) each.

        It is 0 for a client that holds nothing out.

        ``models`` (clients, models, numbers); ``mixing`` (candidates, models) says how a candidate mixes their outputs;
        ``smoothing`` as in `train`.
        """
        table, rows = self._training_rows() if training else self._held_rows()
        # Of the training samples, as many places as the minibatches have: this depends only on the client.
        most = self._batches[0].steps * self._batches[0].rows if training else max(map(len, rows))
        return self._judged(models, mixing, losses, table, rows, judging_rows(most), smoothing)

    def sampled_means(self, losses: Sequence[Loss], most: int, *, smoothing: Any = None) -> list[np.ndarray]:
        """The mean, (clients,) each, of losses that use no predictions, on at most ``most`` of a client's own samples.

        They are training samples, drawn at random, and the same ones in every call.
        """
        rows = []
        for batch in self._batches:
            order = stream(self.settings.seed, Purpose.SOME_ROWS, batch.name).permutation(batch.n)
            rows.append(batch.offset + np.sort(order[:most]))
        nobody = np.zeros((len(self), 1, self.initial.size), self.initial.dtype)
        judged = self._judged(nobody, np.ones((1, 1)), losses, self._layout.table, rows, judging_rows(most), smoothing)
        return [means[:, 0] for means in judged]

    def samples(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Each client's features (n, p) and costs (n, d) in its own units, for methods without training; in float64."""
        table, p, d = np.asarray(self._layout.table, np.float64), self._layout.recipe.features, self._side.set.predicted
        rows = [table[batch.offset : batch.offset + batch.n] for batch in self._batches]
        signs = np.asarray(self._side.sign, np.float64)
        # The table has the sign of a minimiser, and known costs and the best decisions after the costs.
        return [(batch[:, :p], sign * batch[:, p : p + d]) for batch, sign in zip(rows, signs, strict=False)]

    @property
    def judging(self) -> np.ndarray:
        """The number of held-out samples of each client."""
        assert self._layout.held is not None, "these samples were laid out without any to judge on"
        return self._layout.held.counts[self.members]

    @property
    def smoothing(self) -> np.ndarray:
        """Each client's own smoothing, which losses that smooth use unless a trainer gives another one."""
        return np.array([self._layout.smoothing(int(member)) for member in self.members])

    # The methods below handle idle places, padding and shapes.

    def _held_rows(self) -> tuple[Any, list[np.ndarray]]:
        if self._layout.held is None:
            raise RuntimeError("these samples were laid out without any to judge on")
        table, starts, counts = self._layout.held
        return table, [starts[member] + np.arange(counts[member]) for member in self.members]

    def _training_rows(self) -> tuple[Any, list[np.ndarray]]:
        return self._layout.table, [batch.offset + np.arange(batch.n) for batch in self._batches]

    def _judged(
        self,
        models: np.ndarray,
        mixing: np.ndarray,
        losses: Sequence[Loss],
        table: Any,
        rows: list[np.ndarray],
        places: int,
        smoothing: Any,
    ) -> list[np.ndarray]:
        index = np.full((self._places, 1, places), -1, np.int32)
        for place, client_rows in enumerate(rows):
            index[place, 0, : len(client_rows)] = client_rows
        side = self._side._replace(
            batches=index,
            key=self._keys(0) if any(loss.random for loss in losses) else None,
            smoothing=self._smoothings(losses, smoothing),
        )
        program = compiled_losses(self.recipe, tuple(losses))
        judged = program(self._blocks, self._padded(models), side, mixing.astype(self.initial.dtype), table)
        return [np.asarray(values)[: len(self)] for values in judged]

    def _started(self, start: Any, recipe: Recipe, state: Sequence[np.ndarray] | None) -> Updated:
        if isinstance(start, TrainedModels):
            return start._updated
        vectors, fresh = compiled_start(recipe, self._places)(np.asarray(start, self.initial.dtype))
        if state is not None:
            fresh = jax.tree.unflatten(jax.tree.structure(fresh), [self._padded(leaf) for leaf in state])
        nothing = Diagnostics(np.zeros(self._places), np.zeros(self._places), np.zeros(self._places))
        return Updated(vectors, fresh, nothing, None)

    def _minibatches(self, first: int, count: int, purpose: Purpose) -> np.ndarray:
        steps, rows = self._batches[0].steps, self._batches[0].rows
        out = np.full((self._places, round_up(max(self.settings.local_epochs * steps, 8), bits=0), rows), -1, np.int32)
        for place, batch in enumerate(self._batches):
            for epoch in range(count):
                batch.write(first + epoch, purpose, out[place, epoch * steps : (epoch + 1) * steps])
        return out

    def _keys(self, first: int) -> np.ndarray:
        words = [stream(self.settings.seed, Purpose.LOSS, batch.name, first).integers(2**32, size=2) for batch in self._batches]
        return self._padded(np.array(words, np.uint32))

    def _draws(self, first: int, count: int, purpose: Purpose) -> np.ndarray:
        """Two words for each client and step, for a network with dropout: they follow from the epoch and the minibatch."""
        steps = self._batches[0].steps
        out = np.zeros((len(self), round_up(max(self.settings.local_epochs * steps, 8), bits=0), 2), np.uint32)
        for place, batch in enumerate(self._batches):
            for epoch in range(count):
                counter = first + epoch + (int(purpose) << 44)  # there are at most 10**12 epochs
                words = stream(self.settings.seed, Purpose.NETWORK, batch.name, counter).integers(2**32, size=(steps, 2))
                out[place, epoch * steps : (epoch + 1) * steps] = words
        return self._padded(out)

    def _noises(self, recipe: Recipe, current: Updated, first: int, count: int, purpose: Purpose, rate: Any) -> np.ndarray:
        """Noise for each client and step. It depends on everything that the steps depend on: no two trainings share noise."""
        steps, size = count * self._batches[0].steps, np.shape(current.vector)[1]
        most = round_up(max(self.settings.local_epochs * self._batches[0].steps, 8), bits=0)
        out = np.zeros((self._places, most, size), self.initial.dtype)
        starts = np.asarray(current.vector)
        how = (recipe.loss, recipe.optimiser, recipe.learning_rate, recipe.gradient_clip, recipe.pull, recipe.protects)
        asked = repr((how, purpose, first, count, np.asarray(rate).tolist(), self.settings.digest()))
        for place, (batch, member) in enumerate(zip(self._batches, self.members.tolist(), strict=True)):
            question = (batch.name, asked, starts[place].tobytes(), self._layout.rows_digest(member))
            out[place, :steps] = self.noise.normals(steps * size, Purpose.SAMPLE_NOISE, *question).reshape(steps, size)
        return out

    def _smoothings(self, losses: Sequence[Loss], smoothing: Any) -> np.ndarray | None:
        """One smoothing for each place, if one of the losses asks for it."""
        if not any(loss.smooths for loss in losses):
            return None
        return self._numbers(self.smoothing if smoothing is None else smoothing)

    def _numbers(self, values: Any) -> np.ndarray:
        """One number for each place, from one for all or one for each client."""
        return self._padded(np.broadcast_to(np.asarray(values, self.initial.dtype), (len(self),)))

    def _each(self, vectors: Any) -> np.ndarray:
        """One vector for each place, from one for all or one for each client."""
        vectors = np.asarray(vectors, self.initial.dtype)
        return np.broadcast_to(vectors, (self._places, vectors.size)) if vectors.ndim == 1 else self._padded(vectors)

    def _padded(self, rows: Any) -> np.ndarray:
        """One row for each place; idle places repeat the last client's."""
        rows = np.asarray(rows)
        idle = self._places - len(rows)
        return np.concatenate([rows, np.broadcast_to(rows[-1], (idle, *rows.shape[1:]))]) if idle else rows


def judging_rows(count: int) -> int:
    """The number of places for this number of judging samples: few shapes, hence few programs."""
    return round_up(max(count, 64), bits=0)


def in_calls(epochs: int, most: int) -> Iterator[tuple[int, int]]:
    """(first epoch, number of epochs) of consecutive calls of at most ``most`` epochs."""
    for first in range(0, epochs, most):
        yield first, min(most, epochs - first)
