"""Aggregators that tolerate some wrong clients: `median`, `trimmed-mean` and `krum`. None weighs clients by their samples."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dffl.checks import require_whole
from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors


class Median(Aggregator):
    """The median of each number over the clients: robust against a minority of wrong updates."""

    name = "median"

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        return np.median(stacked_vectors(updates), axis=0)


class TrimmedMean(Aggregator):
    """The mean of each number over the clients, without the ``share`` of them at either end."""

    name = "trimmed-mean"

    def __init__(self, share: float = 0.2):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 0.5:
            raise ValueError(f"trimmed-mean: share, which is left out at either end, must be in [0, 0.5), found {share!r}")
        self.share = float(share)

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        ordered = np.sort(stacked_vectors(updates), axis=0)
        out = math.floor(self.share * len(ordered) + 1e-9)
        return ordered[out : len(ordered) - out].mean(axis=0)


class Krum(Aggregator):
    """One client's vector as it is: the one with the least sum of squared distances to its m - f - 2 nearest others.

    ``f`` is the number of clients in a round that may be wrong; a round of m clients needs m >= 2 f + 3. Among equally good
    vectors the first in the order of names is taken (Blanchard et al., 2017).
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
