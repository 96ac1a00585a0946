"""How good a predicted cost is, judged by the decision that follows. One file for each loss, or for similar ones.

A file that is put here is found: a loss needs no second list.
"""

from dffl.discovery import import_all
from dffl.losses.base import Loss, Rows
from dffl.losses.mse import mse
from dffl.losses.regret import mean_of_regret_ratios, optimal_value, ratio, regret, relative_regret, sense
from dffl.losses.rspo_plus import rspo_plus
from dffl.losses.spo_plus import spo_plus, spo_plus_gap

import_all(__name__, __path__)

__all__ = [
    "Loss", "Rows", "mean_of_regret_ratios", "mse", "optimal_value", "ratio", "regret", "relative_regret", "rspo_plus", "sense",
    "spo_plus", "spo_plus_gap",
]  # fmt: skip
