"""Aggregators that tolerate some wrong clients. None weighs clients by their samples."""

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
        squares = np.array([np.sort(np.sum((vectors - vector) ** 2, axis=1)) for vector in vectors])
        # The nearest of all is the vector itself, at distance 0.
        scores = squares[:, 1 : len(vectors) - self.f - 1].sum(axis=1)
        return vectors[int(np.argmin(scores))]


SMOOTHING = 1e-6
"""The smallest distance by which a step divides, as a share of the mean distance from the median of each number."""


class GeometricMedian(Aggregator):
    """Robust against fewer than half of the clients, however they lie; unlike `median` it does not depend on the axes.

    The vector with the least sum of distances to the clients' vectors, by smoothed Weiszfeld ``steps`` from the median of each
    number (Pillutla et al., 2022).
    """

    name = "geometric-median"

    def __init__(self, steps: int = 50):
        require_whole("geometric-median: steps", steps, least=1, most=10**4)
        self.steps = int(steps)

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        vectors = stacked_vectors(updates)
        # The median is close to most vectors; from the mean, one very long vector could dominate the first step.
        middle = np.median(vectors, axis=0)
        least = SMOOTHING * float(np.median(np.linalg.norm(vectors - middle, axis=1)))
        for _ in range(self.steps if least > 0 else 0):
            weights = 1 / np.maximum(np.linalg.norm(vectors - middle, axis=1), least)
            middle = weights @ vectors / weights.sum()
        return middle


class NormBound(Aggregator):
    """The mean of the changes, none longer than a bound: a client can push that far and no further (Sun et al., 2019).

    ``norm`` is the bound; 0: the median length of the round's changes, which a minority cannot move far. It keeps large lies
    small. It does not find out who lies, and many small lies in one direction add up.
    """

    name = "norm-bound"

    def __init__(self, norm: float = 0.0):
        if isinstance(norm, bool) or not isinstance(norm, int | float) or not 0 <= norm < math.inf:
            raise ValueError(f"norm-bound: norm must be >= 0 and finite (0: the median length), found {norm!r}")
        self.norm = float(norm)

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        start = np.asarray(shared, np.float64)
        changes = stacked_vectors(updates) - start
        lengths = np.linalg.norm(changes, axis=1)
        bound = self.norm or float(np.median(lengths))
        shrink = np.minimum(1, bound / np.maximum(lengths, np.finfo(float).tiny))
        return start + (shrink[:, None] * changes).mean(axis=0)
