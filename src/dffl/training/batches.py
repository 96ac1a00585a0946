"""How a client deals its samples into minibatches.

They are dealt into as many batches as it takes to hold none above ``batch_size``, all of equal size but for one sample:
no step is spent on a handful of left-over samples. Above eight the number of batches is rounded up to one of 10, 12, 14,
16, 20, 24, ... (batches at most a fifth smaller), so that clients of all sizes fall into few groups that train together.
The number depends on the client's own size alone, so every engine and a deployed client deal alike.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dffl.randomness import Purpose, stream


def steps_per_epoch(n: int, batch_size: int) -> int:
    """The number of minibatches of a client with n samples."""
    return min(n, round_up(math.ceil(n / batch_size)))


def round_up(count: int, bits: int = 3) -> int:
    """The next number of the form m 2^k with m <= 2^bits: few different numbers, none much larger than it needs to be."""
    unit = 1 << max(0, (count - 1).bit_length() - bits)
    return -(-count // unit) * unit


class Dealer:
    """Deals one client's samples, epoch by epoch, into a (steps, rows) grid of row numbers; -1 is an empty place."""

    def __init__(self, name: str, n: int, batch_size: int, seed: int, offset: int = 0):
        self.name, self.n, self.seed, self.offset = name, n, seed, offset
        self.steps = steps_per_epoch(n, batch_size)
        self.rows = math.ceil(n / self.steps)
        self._place, self._batch = np.divmod(np.arange(n), self.steps)

    def deal(self, epoch: int, purpose: Purpose, out: np.ndarray) -> None:
        """Write the minibatches of this epoch into ``out`` (steps, at least self.rows), which is full of -1."""
        shuffle = _kept_order if self.n <= KEPT else _order
        order = shuffle(self.seed, purpose, self.name, epoch, self.n)
        # Sample i of the shuffled order goes to batch i mod steps: sizes differ by one at most.
        out[self._batch, self._place] = order + self.offset


KEPT = 1024
"""The largest client whose orders are kept: bounds the memory."""


def _order(seed: int, purpose: Purpose, name: str, epoch: int, n: int) -> np.ndarray:
    return stream(seed, purpose, name, epoch).permutation(n).astype(np.int32)


# Methods that share an epoch, and configurations of a study that share a seed, deal alike: a tenth of a study's time.
_kept_order = lru_cache(maxsize=1 << 15)(_order)
