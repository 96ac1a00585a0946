"""`norm-bound`: the mean of the clients' changes, none of them longer than a bound."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dffl.training.aggregators.base import Aggregator, Update, stacked_vectors


class NormBound(Aggregator):
    """A client can push as far as the bound and no further (Sun et al., 2019). All clients weigh the same.

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
