"""Which naive rule a buyer would have chosen by the training days, and which was the best on the test days."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from dffl_studies.energy.naive import FORESIGHT, RULES


class Rules(NamedTuple):
    """Two naive rules."""

    chosen: str
    """That with the least regret on the training days: what models are compared with."""
    hindsight: str
    """That with the least regret on the test days, which nobody could have known."""

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Rules:
        """The two of these rows; of equals, the simpler one."""
        means = rows.groupby("method")[["training_regret", "regret"]].mean()
        known = means.reindex([rule for rule in RULES if rule in means.index and rule != FORESIGHT])
        return cls(str(known["training_regret"].idxmin()), str(known["regret"].idxmin()))
