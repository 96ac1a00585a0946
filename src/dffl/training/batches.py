"""How a client splits its samples into minibatches.

The number of batches is the smallest for which none exceeds ``batch_size``, and their sizes differ by at most one: no step
is spent on a few remaining samples. Above eight, the number of batches is rounded up to one of 10, 12, 14, 16, 20, 24, ...
(batches become at most a fifth smaller), so that clients of all sizes form few groups that train together. The shape of a
batch is rounded up in the same way. Both depend only on the client's own size, so all engines and deployed clients compute
the same.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dffl.randomness import Purpose, permutation
from dffl.shapes import round_up


@lru_cache(maxsize=4096)
def steps_per_epoch(n: int, batch_size: int) -> int:
    """The number of minibatches of a client with n samples."""
    return min(n, round_up(math.ceil(n / batch_size)))


class Batches:
    """One client's minibatches: for each epoch a (steps, rows) grid of row numbers; -1 is an empty place."""

    def __init__(self, name: str, n: int, batch_size: int, seed: int, offset: int = 0):
        self.name, self.n, self.seed, self.offset = name, n, seed, offset
        self.steps = steps_per_epoch(n, batch_size)
        self.rows = round_up(4 * math.ceil(n / self.steps / 4))
        self._place, self._batch = np.divmod(np.arange(n), self.steps)

    def write(self, epoch: int, purpose: Purpose, out: np.ndarray) -> None:
        """Write the minibatches of this epoch into ``out`` (steps, rows), which is filled with -1."""
        shuffle = _kept_order if self.n <= KEPT else _order
        order = shuffle(self.seed, purpose, self.name, epoch, self.n)
        # Sample i of the shuffled order goes to batch i mod steps: sizes differ by one at most.
        out[self._batch, self._place] = order + self.offset


KEPT = 1024
"""The largest client whose orders are cached: bounds the memory."""


def _order(seed: int, purpose: Purpose, name: str, epoch: int, n: int) -> np.ndarray:
    return permutation(seed, purpose, name, epoch, n).astype(np.int32)


# Methods that share an epoch, and jobs of a study that share a seed, split in the same way: caching saves a tenth of the time.
_kept_order = lru_cache(maxsize=1 << 17)(_order)
