"""Few shapes instead of many: compiled programs are made for a shape, and sizes vary."""

from __future__ import annotations


def round_up(count: int, bits: int = 3) -> int:
    """The next number of the form m 2^k with m <= 2^bits: few different numbers, none much larger than it needs to be."""
    unit = 1 << max(0, (count - 1).bit_length() - bits)
    return -(-count // unit) * unit
