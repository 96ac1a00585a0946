"""Who gains and who is harmed: each zone's change of regret against its own local model, its statistics and its order."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dffl.comparing import harms

WORST_SHARE = 0.2
STATISTICS = ("mean_change", "median_change", "worst_harm", "worst20_harm")
NO_REGRET = 1e-9
LEADER = "fedavg"
"""The method by whose changes the zones are ordered."""


def with_changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``change``, in percent of the local regret of the same zone and seed, and ``harmed``.

    Where the local model has no regret (the zone buys nothing, or all hours), a change in percent does not exist: NaN.
    """
    keys = ["seed", "zone"]
    local = rows[rows["method"] == "local"].set_index(keys)["regret"]
    own = local.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy(float)
    own, regret = np.where(own > NO_REGRET, own, np.nan), rows["regret"].to_numpy()
    return rows.assign(change=100 * (regret / own - 1), harmed=harms(regret, own))


def zone_changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The change in percent: one row per seed and zone, one column per method; nan where the local model has no regret."""
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


def statistics(changes: np.ndarray) -> dict[str, float]:
    """Mean, median, worst harm and worst-20 % harm of the zones' changes in one seed.

    Worst harm is the largest change, even if it is a gain. Worst-20 % harm is the mean harm (a gain counts as zero) of the
    worst fifth of the zones, rounded up.
    """
    ordered = np.sort(changes[~np.isnan(changes)])[::-1]
    if not len(ordered):
        return dict.fromkeys(STATISTICS, float("nan"))
    worst = ordered[: math.ceil(WORST_SHARE * len(ordered))]
    values = (ordered.mean(), np.median(ordered), ordered[0], np.maximum(worst, 0).mean())
    return dict(zip(STATISTICS, map(float, values), strict=True))


def by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per method and seed: the statistics of the changes, the mean regret and how many zones are harmed."""
    made = []
    for (method, seed), part in with_changes(rows).groupby(["method", "seed"], sort=False):
        facts = {"method": method, "seed": seed, "regret": part["regret"].mean(), "harmed": int(part["harmed"].sum())}
        made.append(facts | statistics(part["change"].to_numpy()))
    return pd.DataFrame(made)


def as_json(rows: pd.DataFrame) -> dict[str, object]:
    """For programs: each zone's regret by method and seed, lambda of interp-spo, and changes in percent."""
    rows = rows.sort_values("seed", kind="stable")
    zones = []
    for zone, part in rows.groupby("zone", sort=False):
        regret = {str(method): own["regret"].tolist() for method, own in part.groupby("method", sort=False)}
        weights = part.loc[part["method"] == "interp-spo", "lambda"].tolist()
        zones.append({"zone": zone, "demand": float(part["demand"].iloc[0]), "regret": regret, "lambda": weights})
    means = by_seed(rows).groupby("method", sort=False)[list(STATISTICS)].mean()
    return {"zones": zones, "summary": means.to_dict(orient="index")}
