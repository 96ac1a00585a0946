"""Cells of a table, as numbers, and the first of them that is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd


def first(wrong: pd.Series) -> int | None:
    """The position of the first that is true, if any."""
    found = np.flatnonzero(wrong.to_numpy(bool))
    return int(found[0]) if len(found) else None


def numbers(cells: pd.Series) -> tuple[pd.Series, int | None]:
    """The cells as numbers, and the position of the first that is none; an empty cell or text is a missing number."""
    found = pd.to_numeric(cells, errors="coerce").astype(float)
    return found, first(~found.between(-np.inf, np.inf, inclusive="neither") & cells.notna() & (cells != ""))
