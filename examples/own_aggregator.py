"""A custom aggregator: no update may be longer than the median one."""

from collections.abc import Iterable

import numpy as np

import dffl


class ClippedMean(dffl.Aggregator):
    """The mean of the changes, each shrunk to `factor` times the median length."""

    name = "clipped-mean"

    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def aggregate(
        self, shared: np.ndarray, updates: Iterable[dffl.Update]
    ) -> np.ndarray:
        """The next shared vector, in float64."""
        start = shared.astype(np.float64)
        changes = np.stack([update.vector - start for update in updates])
        lengths = np.linalg.norm(changes, axis=1)
        limit = self.factor * np.median(lengths)
        shrink = np.minimum(1, limit / np.maximum(lengths, 1e-300))
        return start + (shrink[:, None] * changes).mean(axis=0)


if __name__ == "__main__":
    train = dffl.synthetic.knapsack(clients=4, samples=40)
    test = dffl.synthetic.knapsack(split="test", clients=4)
    fit = dffl.fit(train, "fedavg", aggregate=ClippedMean(factor=0.5), rounds=10)
    print(fit.evaluate(test)["relative_regret"].mean())
