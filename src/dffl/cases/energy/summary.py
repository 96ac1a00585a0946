"""Who gains and who is harmed: each zone's change of regret against its own local model, and what is made of it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dffl.comparing import harms

WORST_SHARE = 0.2
STATISTICS = ("mean_change", "median_change", "worst_harm", "worst20_harm")
NO_REGRET = 1e-9


def with_changes(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``change``, in percent of the local regret of the same zone and seed, and ``harmed``.

    Where the local model has no regret (the zone buys nothing, or all hours) nothing can be said in percent: NaN.
    """
    keys = ["seed", "zone"]
    local = rows[rows["method"] == "local"].set_index(keys)["regret"]
    own = local.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy(float)
    own, regret = np.where(own > NO_REGRET, own, np.nan), rows["regret"].to_numpy()
    return rows.assign(change=100 * (regret / own - 1), harmed=harms(regret, own))


def statistics(changes: np.ndarray) -> dict[str, float]:
    """Mean, median, worst harm and worst-20 % harm of the zones' changes in one seed.

    Worst harm is the largest change, be it a gain. Worst-20 % harm is the mean one-sided harm (a gain counts as none) of the
    worst fifth of the zones, rounded up.
    """
    ordered = np.sort(changes[~np.isnan(changes)])[::-1]
    if not len(ordered):
        return dict.fromkeys(STATISTICS, float("nan"))
    worst = ordered[: math.ceil(WORST_SHARE * len(ordered))]
    values = (ordered.mean(), np.median(ordered), ordered[0], np.maximum(worst, 0).mean())
    return dict(zip(STATISTICS, map(float, values), strict=True))


def by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a method and seed: the statistics of the changes, the mean regret and how many zones are harmed."""
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
