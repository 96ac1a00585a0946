"""`krum`: the one vector that lies closest to its neighbours (Blanchard et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dffl.checks import require_whole
from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors


class Krum(Aggregator):
    """Takes one client's vector as it is: the one with the least sum of squared distances to its m - f - 2 nearest others.

    ``f`` is the number of clients in a round that may be wrong; a round of m clients needs m >= 2 f + 3. It ignores sample
    counts. Among equals the first in the order of names is taken.
    """

    name = "krum"

    def __init__(self, f: int = 1):
        require_whole("krum: f, the number of clients that may be wrong,", f, least=0)
        self.f = int(f)

    def check(self, participants: int) -> None:
        least = 2 * self.f + 3
        if participants < least:
            fix = "raise client_fraction, or lower f"
            raise ValueError(f"aggregator 'krum' with f={self.f} needs {least} clients in a round, found {participants}; {fix}")

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        vectors = stacked_vectors(updates)
        self.check(len(vectors))
        squares = np.array([np.sort(np.sum((vectors - one) ** 2, axis=1)) for one in vectors])
        # The nearest of all is the vector itself, at distance 0.
        scores = squares[:, 1 : len(vectors) - self.f - 1].sum(axis=1)
        return vectors[int(np.argmin(scores))]
