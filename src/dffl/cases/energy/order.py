"""Each zone's change of regret against its own local model, and the order of zones that it gives."""

from __future__ import annotations

import pandas as pd

from dffl.cases.energy.summary import with_changes

LEADER = "fedavg"
"""The method whose changes put the zones in order."""


def zone_changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The change in percent: a row a seed and zone, a column a method; nan where the local model has no regret to change."""
    if not (rows["method"] == "local").any():
        return pd.DataFrame()
    changes = with_changes(rows).pivot_table(index=["seed", "zone"], columns="method", values="change", dropna=False)
    return changes.drop(columns="local")


def zone_order(rows: pd.DataFrame) -> list[str]:
    """All zones, from the one that federating helps most to the one that it harms most; then those without a change."""
    zones = pd.Index(sorted(rows["zone"].unique()), name="zone")
    changes = zone_changes(rows)
    if LEADER in changes:
        zones = changes[LEADER].groupby("zone").mean().reindex(zones).sort_values(kind="stable").index
    return list(zones)
