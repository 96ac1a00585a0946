"""`trimmed-mean`: the mean of each number over the clients, without the largest and the smallest ones."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors


class TrimmedMean(Aggregator):
    """Leaves out, for each number, the ``share`` of the clients at either end. It ignores sample counts."""

    name = "trimmed-mean"

    def __init__(self, share: float = 0.2):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 0.5:
            raise ValueError(f"trimmed-mean: share, which is left out at either end, must be in [0, 0.5), found {share!r}")
        self.share = float(share)

    def aggregate(self, shared: np.ndarray, updates: Iterable[Update]) -> np.ndarray:
        ordered = np.sort(stacked_vectors(updates), axis=0)
        out = math.floor(self.share * len(ordered) + 1e-9)
        return ordered[out : len(ordered) - out].mean(axis=0)
