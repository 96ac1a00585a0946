"""Rows as the study writes them, from made-up regrets."""

from __future__ import annotations

import numpy as np
import pandas as pd

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
"""What four weeks add to a regret."""


def with_weeks(rows: pd.DataFrame, shares: np.ndarray = SHARES) -> pd.DataFrame:
    """The rows with the columns of weeks."""
    weeks = {f"week_{week:02d}": (share * rows["regret"]).astype("float32") for week, share in enumerate(shares)}
    return rows.assign(**weeks)
