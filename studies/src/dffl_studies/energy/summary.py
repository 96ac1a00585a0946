"""Who gains and who is harmed: each zone's change of regret against its own model, its statistics and its order."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dffl.harm import above_tolerance, interval
from dffl_studies.energy.weeks import week_names

NO_REGRET = 1e-9
"""Regrets below this count as 0, and no percentage is computed."""


class Change(NamedTuple):
    """A change of regret in percent of what it is compared with, and the ends of its 95 % interval; unbounded if unknown."""

    change: float
    low: float
    high: float

    @classmethod
    def of(cls, mine: np.ndarray, other: np.ndarray) -> Change:
        """From what each week adds to a mean regret, (seeds, weeks); ``other`` is what is compared with."""
        # The parts add up to a mean: multiplied by their number they are what a day of each week loses.
        ends = interval((mine - other) * other.shape[1])
        return cls(*(100 * value / float(other.sum(axis=1).mean()) for value in ends))


def excesses(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """One row per method and zone: its regret with ``against`` (``reference``), and by how much the method changes it.

    ``over`` says that the change is above 1 %, ``harmed`` (1 or 0) that its interval is above 0 too; nan where the interval is
    unknown. Zones where ``against`` loses nothing are left out.
    """
    wide = rows.sort_values("seed", kind="stable").set_index(["method", "zone"])
    parts = {key: part.to_numpy(float) for key, part in wide[week_names(rows)].groupby(level=[0, 1], sort=False)}
    regrets = dict(wide["regret"].groupby(level=[0, 1], sort=False).mean().items())
    rows_made = []
    for (method, zone), mine in parts.items():
        reference = regrets[against, zone]
        if method == against or not reference > NO_REGRET:
            continue
        change, over = Change.of(mine, parts[against, zone]), bool(above_tolerance(regrets[method, zone], reference))
        harmed = float(over and change.low > 0) if np.isfinite(change.low) else np.nan
        rows_made.append((method, zone, reference, *change, over, harmed))
    return pd.DataFrame(rows_made, columns=["method", "zone", "reference", *Change._fields, "over", "harmed"])


def harmed_zones(rows: pd.DataFrame, against: str) -> pd.Series:
    """How many zones each method harms; nan where that is unknown."""
    return excesses(rows, against).groupby("method", sort=False)["harmed"].sum(min_count=1)


WORST_SHARE = 0.2
STATISTICS = ("mean_change", "median_change", "worst_harm", "worst20_harm")
LEADER = "fedavg"
"""The method by whose changes the zones are ordered."""
FAIR = "local-tuned"
"""A zone's own model, made with as much care as the best shared one: what the study compares with."""
PAPERS = "local"
"""The paper's own model of a zone, of rounds x local epochs: on real prices it is trained for too long."""
REFERENCES = (FAIR, PAPERS)


def with_changes(rows: pd.DataFrame, against: str = FAIR) -> pd.DataFrame:
    """The rows with ``change``, in percent of the regret of ``against`` in the same zone and seed, and ``harmed`` (over 1 %).

    Where that has no regret (the zone buys nothing, or all hours), a change in percent does not exist: NaN.
    """
    keys = ["seed", "zone"]
    reference = rows[rows["method"] == against].set_index(keys)["regret"]
    reference_regret = reference.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy(float)
    reference_regret, regret = np.where(reference_regret > NO_REGRET, reference_regret, np.nan), rows["regret"].to_numpy()
    return rows.assign(change=100 * (regret / reference_regret - 1), harmed=above_tolerance(regret, reference_regret))


def zone_changes(rows: pd.DataFrame, against: str = FAIR) -> pd.DataFrame:
    """The change in percent: one row per seed and zone, one column per method; nan where ``against`` has no regret."""
    if not (rows["method"] == against).any():
        return pd.DataFrame()
    changed = with_changes(rows, against)
    changes = changed.pivot_table(index=["seed", "zone"], columns="method", values="change", dropna=False)
    return changes.drop(columns=against)


def zone_order(rows: pd.DataFrame, against: str = FAIR) -> list[str]:
    """All zones, from the one that federating helps most to the one that it harms most; then those without a change."""
    zones = pd.Index(sorted(rows["zone"].unique()), name="zone")
    changes = zone_changes(rows, against)
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


def by_seed(rows: pd.DataFrame, against: str = FAIR) -> pd.DataFrame:
    """One row per method and seed: the statistics of the changes, the mean regret and how many zones are over 1 % worse."""
    tables = []
    for (method, seed), part in with_changes(rows, against).groupby(["method", "seed"], sort=False):
        facts = {"method": method, "seed": seed, "regret": part["regret"].mean(), "harmed": int(part["harmed"].sum())}
        tables.append(facts | statistics(part["change"].to_numpy()))
    return pd.DataFrame(tables)


def as_json(rows: pd.DataFrame) -> dict[str, object]:
    """For programs: each zone's regret by method and seed, lambda of interp-spo, and changes in percent against both."""
    rows = rows.sort_values("seed", kind="stable")
    zones = []
    for zone, part in rows.groupby("zone", sort=False):
        regret = {str(method): method_rows["regret"].tolist() for method, method_rows in part.groupby("method", sort=False)}
        weights = part.loc[part["method"] == "interp-spo", "lambda"].tolist()
        zones.append({"zone": zone, "demand": float(part["demand"].iloc[0]), "regret": regret, "lambda": weights})
    return {"zones": zones, "against": {against: _summary(rows, against) for against in REFERENCES}}


def _summary(rows: pd.DataFrame, against: str) -> dict[Hashable, dict[Any, Any]]:
    """The statistics of each method, means over seeds; how many zones are over 1 % worse in a seed, and how many harmed."""
    means = by_seed(rows, against).groupby("method", sort=False)[[*STATISTICS, "harmed"]].mean()
    facts = means.rename(columns={"harmed": "over"}).assign(harmed=harmed_zones(rows, against).reindex(means.index))
    return facts.to_dict(orient="index")
