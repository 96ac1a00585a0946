"""Certified bounds for clients whose costs and feasible sets differ.

`bounds` puts the statements together for two clients, `lemmas` holds them one by one with a verdict on each, `risk` those
about risks and gains, `dv` those of the entropy set, `definitions` the support function and the risks themselves, and
`geometry` what all of them need to know about a set.
"""

from typing import TYPE_CHECKING

from dffl.discovery import submodules
from dffl.theory.bounds import LossGap, loss_gap_bound
from dffl.theory.definitions import CostNorms, client_risk, client_risks, cost_norms, mixture_risk, support
from dffl.theory.geometry import Geometry, Pair, fixed_sum

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

__all__ = [
    "CostNorms",
    "Geometry",
    "LossGap",
    "Pair",
    "client_risk",
    "client_risks",
    "cost_norms",
    "fixed_sum",
    "loss_gap_bound",
    "mixture_risk",
    "support",
]
