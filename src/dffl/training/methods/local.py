"""`local`: every client alone.

By default in one training of rounds x local_epochs epochs, as in the paper. ``epochs`` is another number, or several: then each
client chooses the best on held-out samples, with the squared or the decision loss that ``judge`` names, and trains that long on
all of its samples. A schedule applies to one number of epochs; with several the step size stays as it is.
"""

from __future__ import annotations

from typing import Any

from dffl.losses import Loss
from dffl.training.methods.registry import method
from dffl.training.optimisers import Constant
from dffl.training.run import Outcome, Run
from dffl.training.trainers import BestStop, Local, Stops, tuned
from dffl.training.trainers.tuning import checked_epochs


@method("local", label="Local", colour="#D55E00", kind="alone", words="the client's own model, trained for a fixed time")
def local(run: Run, *, epochs: Any = None, judge: Loss | str = "spo+") -> Outcome:
    """Each client's own model."""
    candidates = None if epochs is None else checked_epochs(epochs)
    if candidates is None or len(candidates) == 1:
        # At a constant rate it is the training that other methods ask for too.
        scheduled = run.settings.schedule != Constant()
        return Outcome(run.personal(run.trained(Local(candidates[0] if candidates else None, scheduled))))
    tuning, part = tuned(run, BestStop(Stops(None, candidates), judge), refit=True)
    return Outcome(run.personal(tuning.vectors, part), choices={"epochs": tuning.epochs.tolist()})
