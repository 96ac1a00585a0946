"""`mean-cost`: each client's mean training cost, whatever the features. What a client has without any learning."""

from __future__ import annotations

from dffl.predictor import ConstantPredictor
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run


@method("mean-cost", label="Mean cost (no features)", colour="#999999")
def mean_cost(run: Run) -> Outcome:
    """Each client's historical mean."""
    return Outcome([ConstantPredictor(client.c.mean(axis=0)) for client in run.federation])
