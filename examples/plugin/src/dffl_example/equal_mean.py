"""An aggregator: the mean of the updates, in which all clients weigh the same."""

from collections.abc import Iterable

import numpy as np

import dffl


class EqualMean(dffl.Aggregator):
    """Small clients count as much as large ones."""

    name = "equal-mean"

    def aggregate(
        self, shared: np.ndarray, updates: Iterable[dffl.Update]
    ) -> np.ndarray:
        """The next shared vector, in float64."""
        return np.mean([np.asarray(one.vector, np.float64) for one in updates], axis=0)
