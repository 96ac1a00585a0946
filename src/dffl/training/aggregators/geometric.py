"""`geometric-median`: the vector with the least sum of distances to the clients' vectors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dffl.checks import require_whole
from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors

SMOOTHING = 1e-6
"""The least distance that a step divides by, as a share of the mean distance from the median of each number."""


class GeometricMedian(Aggregator):
    """Robust against fewer than half of the clients, however they lie; unlike `median` it does not depend on the axes.

    It is found by smoothed Weiszfeld ``steps`` from the median of each number (Pillutla et al., 2022). Numbers of samples do
    not count.
    """

    name = "geometric-median"

    def __init__(self, steps: int = 50):
        require_whole("geometric-median: steps", steps, least=1, most=10**4)
        self.steps = int(steps)

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        vectors = stacked_vectors(updates)
        # The median is near the many; from the mean, one very long vector could be the first step's only neighbour.
        middle = np.median(vectors, axis=0)
        least = SMOOTHING * float(np.median(np.linalg.norm(vectors - middle, axis=1)))
        for _ in range(self.steps if least > 0 else 0):
            weights = 1 / np.maximum(np.linalg.norm(vectors - middle, axis=1), least)
            middle = weights @ vectors / weights.sum()
        return middle
