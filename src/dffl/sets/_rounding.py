"""Solutions of a relaxation that are whole, or become so at no cost: then nothing is left to branch on."""

from __future__ import annotations

import numpy as np

from dffl.sets._program import INTEGER, Program

NEAR = 1e-9
"""How far from a whole number an entry may be, and how far outside a row of size 1."""


def rounded_for_free(program: Program, v: np.ndarray, cost: np.ndarray) -> np.ndarray | None:
    """A whole solution that costs what this solution of the relaxation does, so it is optimal; None where none is found.

    Columns that are not whole are rounded one after the other, down or else up, where no row is left and no cost is paid. A
    switch without a cost of its own, such as the one of a battery, follows from the other columns in this way.
    """
    if (program.kind > INTEGER).any():
        return None
    near = np.round(v)
    loose = np.flatnonzero(program.is_integer & (np.abs(v - near) > NEAR))
    if (cost[loose] != 0).any():
        return None
    out = np.where(program.is_integer & (np.abs(v - near) <= NEAR), near, v)
    matrix, low, high = program.scaled_columns
    rows = matrix @ out
    for column in loose:
        mine = slice(matrix.indptr[column], matrix.indptr[column + 1])
        places, slopes = matrix.indices[mine], matrix.data[mine]
        for value in (np.floor(out[column]), np.ceil(out[column])):
            moved = rows[places] + slopes * (value - out[column])
            if (moved >= low[places] - NEAR).all() and (moved <= high[places] + NEAR).all():
                rows[places], out[column] = moved, value
                break
        else:
            return None
    return out
