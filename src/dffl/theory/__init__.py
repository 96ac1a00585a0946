"""Certified bounds for clients whose costs and feasible sets differ.

`bounds` puts the statements together for two clients, `lemmas` holds them one by one with a verdict on each, `dv` holds
those of the entropy set, and `geometry` what all of them need to know about a set.
"""

from typing import TYPE_CHECKING

from dffl.discovery import submodules
from dffl.theory.bounds import LossGap, loss_gap_bound
from dffl.theory.geometry import Geometry, Pair, fixed_sum

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

__all__ = ["Geometry", "LossGap", "Pair", "fixed_sum", "loss_gap_bound"]
