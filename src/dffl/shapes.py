"""Numbers of rows: rounded up to few sizes, as programs are compiled for a size, and some rows instead of all."""

from __future__ import annotations

import numpy as np


def round_up(count: int, bits: int = 3) -> int:
    """The next number of the form m 2^k with m <= 2^bits: few different numbers, none much larger than it needs to be."""
    unit = 1 << max(0, (count - 1).bit_length() - bits)
    return -(-count // unit) * unit


def evenly_spaced(count: int, number: int) -> np.ndarray:
    """So many of ``count`` places, spread evenly from the first to the last; some twice where there are not enough."""
    return np.linspace(0, count - 1, number).round().astype(int)
