"""`median`: the median of each number over the clients."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors


class Median(Aggregator):
    """Robust against a minority of clients whose updates are wrong. It ignores sample counts: each client counts once."""

    name = "median"

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        return np.median(stacked_vectors(updates), axis=0)
