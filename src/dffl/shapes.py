"""Numbers of rows: rounded up to few sizes, because programs are compiled for each size, and evenly spaced rows."""

from __future__ import annotations

import numpy as np


def round_up(count: int, bits: int = 3) -> int:
    """The next number of the form m 2^k with m <= 2^bits: few different numbers, and none much larger than needed."""
    unit = 1 << max(0, (count - 1).bit_length() - bits)
    return -(-count // unit) * unit


def evenly_spaced(count: int, number: int) -> np.ndarray:
    """``number`` evenly spaced indices below ``count``, from the first to the last; some repeat if there are too few."""
    return np.linspace(0, count - 1, number).round().astype(int)
