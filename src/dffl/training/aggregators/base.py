"""The interface of an aggregator: from the clients' updated vectors to the next shared one, as a value. Default: `Mean`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dffl.named import Named

Memory = dict[str, np.ndarray]
"""The memory of an aggregator between rounds: named float64 arrays, saved with the server's state."""


class Update(NamedTuple):
    """One client's answer in a round. Updates come in the order of the clients' names, with every engine."""

    client: str
    samples: int
    """The client's number of samples."""
    vector: np.ndarray


class Moment(NamedTuple):
    """The progress of a training: the round, counted from 0, and the number of rounds."""

    round: int
    rounds: int


class Aggregator(Named):
    """A custom aggregator is a subclass with a ``name`` and `aggregate`; one with a memory overrides `combine`."""

    what = "aggregator"
    group = "dffl.aggregators"

    @property
    def limits_clients(self) -> bool:
        """Whether it limits the influence of one client itself. Otherwise `Settings.change_limit` leaves out updates."""
        return True

    def check(self, participants: int) -> None:
        """Refuse, before training, a number of participants in a round that is too small."""

    @abstractmethod
    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        """The next shared vector, in float64. ``updates`` can be read only once, so that not all need to be in memory."""

    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]:
        """The next shared vector and the next memory, which is empty in the first round."""
        return self.aggregate(shared, updates), memory


class Remembering(Aggregator):
    """An aggregator with a memory, or that depends on the round: it has `combine`, and a single round is its first one."""

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        return self.combine(shared, updates, {}, Moment(0, 1))[0]

    @abstractmethod
    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]: ...


class Around(Remembering):
    """An aggregator around another one, ``inner``, which says how many participants it needs."""

    def __init__(self, inner: Aggregator | str):
        self.inner: Aggregator = Aggregator.of(inner)

    @property
    def limits_clients(self) -> bool:
        return self.inner.limits_clients

    def check(self, participants: int) -> None:
        self.inner.check(participants)


def stacked_vectors(updates: Iterable[Update]) -> np.ndarray:
    """All vectors, (clients, numbers), in float64: for aggregators that need all of them at once."""
    return np.stack([np.asarray(update.vector, np.float64) for update in updates])


class Mean(Aggregator):
    """The mean, weighted by numbers of samples (Algorithm 1).

    It adds up in float64 in the order of the clients' names and keeps one sum for any number of clients. So chunk sizes,
    engines and deployments agree bit for bit.
    """

    name = "mean"

    @property
    def limits_clients(self) -> bool:
        return False

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        total, term, samples = np.zeros(shared.shape), np.empty(shared.shape), 0
        for update in updates:
            np.multiply(update.vector, float(update.samples), out=term, dtype=np.float64)
            total += term
            samples += update.samples
        return total / samples
