"""What each week of the test half adds to a zone's mean regret. Days that follow each other are alike, weeks much less so.

The rows of the study hold one column per week. The columns of a row add up to its regret.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dffl_studies.energy.data import Panel

WEEK = 7
COLUMN = "week_"


def weeks_of(panel: Panel, first_test: str) -> list[np.ndarray]:
    """The week of each test day, counted from the first one, zone by zone."""
    passed = [(panel.dates[rows] - np.datetime64(first_test, "D")).astype(int) for rows in panel.zones.values()]
    return [days[days >= 0] // WEEK for days in passed]


def week_columns(regrets: Sequence[np.ndarray], weeks: Sequence[np.ndarray]) -> pd.DataFrame:
    """One row per zone: what each week adds to the mean of its daily regrets."""
    count = 1 + max(int(of.max()) for of in weeks)
    parts = [
        np.bincount(of, weights=lost, minlength=count) / len(lost) for of, lost in zip(weeks, regrets, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(np.array(parts, np.float32), columns=[f"{COLUMN}{week:02d}" for week in range(count)])


def week_names(rows: pd.DataFrame) -> list[str]:
    """The columns of the weeks, in order."""
    return [name for name in map(str, rows) if name.startswith(COLUMN)]
