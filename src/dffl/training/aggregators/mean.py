"""`mean`: the mean of the clients' vectors, weighted by their numbers of samples (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dffl.training.aggregators.base import Aggregator, Update


class Mean(Aggregator):
    """The default. It adds up in float64 in the order of the clients' names and keeps one sum for any number of clients.

    So chunk sizes, engines and deployments agree bit for bit.
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
