"""The server's side of privacy at the level of clients: a mean of equal weights, with noise on its sum."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import numpy as np

from dffl.randomness import NoiseSource, Purpose
from dffl.training.aggregators import Aggregator, Around, Memory, Moment, Remembering, Update
from dffl.training.aggregators.mean import Mean
from dffl.training.privacy.levels import ClientPrivacy, Privacy, clipped


class PrivateMean(Remembering):
    """The mean change over the clients that were asked. It is made for a round, and never saved.

    A client that does not answer counts as one that changes nothing: the number that divides says nothing about anyone. With
    the server's noise changes are clipped again, since a site may not have done it.
    """

    def __init__(self, privacy: ClientPrivacy, asked: int, noise: NoiseSource, job: str):
        self._privacy, self._asked, self._noise, self._job = privacy, asked, noise, job

    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]:
        privacy, start = self._privacy, np.asarray(shared, np.float64)
        total = np.zeros(start.shape)
        for update in updates:
            change = update.vector - start
            total += clipped(change, privacy.clip) if privacy.where == "server" else change
        if privacy.where == "server" and privacy.noise:
            question = (self._job, moment.round, start.tobytes(), total.tobytes())
            total += privacy.noise * privacy.clip * self._noise.normals(total.size, Purpose.SERVER_NOISE, *question)
        return start + total / self._asked, memory


def protected(privacy: Privacy | None, aggregator: Aggregator, asked: int, noise: NoiseSource, job: str) -> Aggregator:
    """The aggregator of a round: where clients are hidden, its mean is the private one. ``asked`` clients were sampled."""
    if not isinstance(privacy, ClientPrivacy):
        return aggregator
    if isinstance(aggregator, Around):  # such as a server optimiser: what it remembers must have the noise in it
        outer = copy.copy(aggregator)
        outer.inner = protected(privacy, aggregator.inner, asked, noise, job)
        return outer
    return PrivateMean(privacy, asked, noise, job) if isinstance(aggregator, Mean) else aggregator


def require_mean(privacy: Privacy | None, aggregator: Aggregator) -> None:
    """Refuse an aggregator on whose result one client can have more influence than the noise of the server hides."""
    inner = aggregator.inner if isinstance(aggregator, Around) else aggregator
    if isinstance(privacy, ClientPrivacy) and privacy.where == "server" and not isinstance(inner, Mean):
        why = f"aggregator {inner.name!r} bounds no client's influence on its result"
        raise ValueError(f"privacy: the server's noise hides clients in a mean, and {why}; use mean, or where = 'site'")
