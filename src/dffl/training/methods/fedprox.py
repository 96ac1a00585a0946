"""`fedprox`: federated averaging in which a proximal term keeps each client near the shared model (Li et al., 2020)."""

from __future__ import annotations

from dffl.checks import require_number
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg


@method("fedprox", label="FedProx", colour="#882255")
def fedprox(run: Run, *, pull: float = 0.01) -> Outcome:
    """The shared model of clients that pay ``pull`` / 2 times the squared distance to where the round started."""
    require_number("pull", pull, 0.0, float("inf"), "> 0 and finite")
    return Outcome(*run.common(run.trained(FedAvg(pull=float(pull)))))
