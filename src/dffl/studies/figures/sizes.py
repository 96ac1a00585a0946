"""Which clients have much data and which have little."""

from __future__ import annotations

import numpy as np
import pandas as pd

BALANCED, RICH, POOR = "balanced", "data-rich", "data-poor"
GROUPS = (BALANCED, RICH, POOR)

SIZE_COLOURS = {BALANCED: "#777777", RICH: "#56B4E9", POOR: "#E69F00"}
"""Blue and orange as in the paper; the blue is not the one of the local models."""
SIZE_INKS = {BALANCED: "#444444", RICH: "#1F6E9C", POOR: "#946300"}
"""The same, dark enough for small letters."""


def with_group(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``group``: balanced, or data-rich or data-poor within an imbalanced federation."""
    fewest = rows.loc[rows["imbalanced"], "n"].min()
    group = np.where(rows["imbalanced"], np.where(rows["n"] > fewest, RICH, POOR), BALANCED)
    return rows.assign(group=group)
