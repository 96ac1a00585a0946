"""How far a method is from another, zone by zone and in total, and whether noise explains it.

A zone is harmed if it loses over 1 % more than with its own model, and more than noise explains. Over 1 % alone says little:
training an own model again from another start makes many zones so much worse. Noise has two sources, the starts of training
(the seeds) and the weeks of the test half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.harm import above_tolerance, interval
from dffl_studies.energy.weeks import week_names

NO_REGRET = 1e-9
"""A regret below this is none, of which there is no percentage."""


class Change(NamedTuple):
    """A change of regret in percent of what it is compared with, and the ends of its 95 % interval; unbounded if unknown."""

    change: float
    low: float
    high: float

    @classmethod
    def of(cls, own: np.ndarray, other: np.ndarray) -> Change:
        """From what each week adds to a mean regret, (seeds, weeks); ``other`` is what is compared with."""
        # The parts add up to a mean: multiplied by their number they are what a day of each week loses.
        found = interval((own - other) * other.shape[1])
        return cls(*(100 * value / float(other.sum(axis=1).mean()) for value in found))


def excesses(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """One row per method and zone: its regret with ``against`` (``reference``), and by how much the method changes it.

    ``over`` says that the change is above 1 %, ``harmed`` (1 or 0) that its interval is above 0 too; nan where the interval is
    unknown. Zones where ``against`` loses nothing are left out.
    """
    wide = rows.sort_values("seed", kind="stable").set_index(["method", "zone"])
    parts = {key: part.to_numpy(float) for key, part in wide[week_names(rows)].groupby(level=[0, 1], sort=False)}
    regrets = dict(wide["regret"].groupby(level=[0, 1], sort=False).mean().items())
    made = []
    for (method, zone), own in parts.items():
        reference = regrets[against, zone]
        if method == against or not reference > NO_REGRET:
            continue
        found, over = Change.of(own, parts[against, zone]), bool(above_tolerance(regrets[method, zone], reference))
        harmed = float(over and found.low > 0) if np.isfinite(found.low) else np.nan
        made.append((method, zone, reference, *found, over, harmed))
    return pd.DataFrame(made, columns=["method", "zone", "reference", *Change._fields, "over", "harmed"])


def harmed_zones(rows: pd.DataFrame, against: str) -> pd.Series:
    """How many zones each method harms; nan where that is unknown."""
    return excesses(rows, against).groupby("method", sort=False)["harmed"].sum(min_count=1)


def total_change(rows: pd.DataFrame, method: str, against: str) -> Change | None:
    """The change of the mean regret over zones; None if there is nothing to lose with ``against``."""
    weeks = rows.groupby(["method", "seed"])[week_names(rows)].mean()
    own, other = (weeks.loc[name].to_numpy(float) for name in (method, against))
    return Change.of(own, other) if other.sum() > NO_REGRET else None
