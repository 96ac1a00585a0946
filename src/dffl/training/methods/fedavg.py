"""`fedavg`: one model for all, by federated averaging of the client updates (Algorithm 1)."""

from __future__ import annotations

from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg


@method("fedavg", label="Federated", colour="#D55E00")
def fedavg(run: Run) -> Outcome:
    """The shared model, in each client's own units."""
    return Outcome(*run.common(run.trained(FedAvg())))
