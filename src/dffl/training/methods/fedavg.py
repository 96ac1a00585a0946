"""`fedavg` and `fedprox`: one model for all, by federated averaging of the client updates (Algorithm 1)."""

from __future__ import annotations

from dffl.checks import require_number
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg


@method("fedavg", label="Federated", colour="#0072B2", words="one model that all clients share, as it is")
def fedavg(run: Run) -> Outcome:
    """The shared model, in each client's own units."""
    return Outcome(*run.common(run.trained(FedAvg())))


@method("fedprox", label="FedProx", colour="#882255")
def fedprox(run: Run, *, pull: float = 0.01) -> Outcome:
    """The shared model of clients that pay ``pull`` / 2 times the squared distance to the round's start (Li et al., 2020)."""
    require_number("pull", pull, 0.0, float("inf"), "> 0 and finite")
    return Outcome(*run.common(run.trained(FedAvg(pull=float(pull)))))
