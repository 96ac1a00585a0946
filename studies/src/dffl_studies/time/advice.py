"""Whether advice over time holds: at several splits, the gain that it states and the one that came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dffl.advice.over_time import LIKELY, UNLIKELY, expected
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.outcome import CHOSEN
from dffl_studies.running.tables import Cell, Table, plain_cells

SPLITS = (0.4, 0.5, 0.6, 0.7)
"""The share of the judged weeks that advice knows; the others judge it."""
WEEK = 7


def advice_holds(rows: pd.DataFrame) -> Table:
    """For each fleet and split: how often intervals hold, and how often a likely gain or loss came."""
    cells: list[Cell] = []
    judged = {(fleet, split): _judged(some, split) for fleet, some in rows.groupby("fleet", sort=False) for split in SPLITS}
    for (fleet, split), found in judged.items():
        cells += plain_cells((str(fleet), f"{split:.0%}"), _numbers(found))
    whole = pd.concat(list(judged.values()), ignore_index=True)
    cells += plain_cells(("all", "all"), _numbers(whole))
    note = (
        "What the choice saves against the forecast, or else the moving average that lost least before the split: the 90 % "
        "interval that `dffl advise` states from the weeks before the split, and what was saved in those after it. Sites whose "
        "choice was the forecast itself are left out: their gain is 0 and known. Right: gains at least 80 % likely that came."
    )
    return Table("advice", "Whether the intervals of advice hold", ("fleet", "known weeks"), cells, note)


def _judged(rows: pd.DataFrame, split: float) -> pd.DataFrame:
    found: list[dict[str, Any]] = []
    for _, some in rows.groupby("client", sort=False):
        whole = some[some["days"] == WEEK].pivot_table(index="week", columns="rule", values="regret")
        known = int(len(whole) * split)
        before, after = whole.iloc[:known], whole.iloc[known:]
        naive = str(before[[rule for rule in NAIVE if rule in whole]].sum().idxmin())
        now = FORECAST if FORECAST in whole else naive
        told = expected(before[CHOSEN].to_numpy(), before[now].to_numpy(), rows=WEEK)
        came = 1 - after[CHOSEN].sum() / after[now].sum()
        if told.same:
            continue
        stated = not math.isnan(told.low)
        holds = told.low - 1e-9 <= came <= told.high + 1e-9 if stated else np.nan  # rounding
        clear = stated and (told.probability >= LIKELY or told.probability <= UNLIKELY)
        right = (came > 0) == (told.value > 0) if clear else np.nan
        found.append({"stated": stated, "holds": holds, "clear": clear, "right": right, "width": (told.high - told.low) / 2})
    return pd.DataFrame(found, columns=["stated", "holds", "clear", "right", "width"], dtype=object)


def _numbers(found: pd.DataFrame) -> dict[str, float]:
    stated, clear = found[found["stated"].astype(bool)], found[found["clear"].astype(bool)]
    return {
        "sites": len(found),
        "stated": len(stated),
        "held, %": 100 * float(stated["holds"].astype(float).mean()) if len(stated) else math.nan,
        "half width, %": 100 * float(stated["width"].astype(float).mean()) if len(stated) else math.nan,
        "clear": len(clear),
        "right": int(clear["right"].astype(float).sum()) if len(clear) else 0,
    }
