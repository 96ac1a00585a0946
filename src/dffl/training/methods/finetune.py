"""`finetune` and `finetune-mix`: the shared model, trained on at each client for a number of epochs that the client chooses.

The number is chosen on held-out samples, with models of the 80/20 split, by the loss that ``judge`` names. Then the federated
model of all the data is trained that long on all of the client's data: reusing the held-out samples is worth more than the
choice itself. ``refit=False`` leaves that last step out. Among equally good numbers the smallest is chosen.

`finetune-mix` decides by the mean of what there is: the tuned model, the shared one and, where the clients have one, the
forecast that these correct. Each errs in its own way, and no weights have to be learned from few samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dffl.losses import Loss
from dffl.predictor import ForecastPredictor, MixedPredictor, Predictor
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import BestStop, FedAvg, Stops, tuned
from dffl.training.trainers.tuning import EPOCHS, checked_epochs

SHARE = 0.5
"""The weight of the shared model in a mix."""


@method("finetune", label="Fine-tuned", colour="#E69F00", words="the shared model, trained further at each client")
def finetune(run: Run, *, epochs: Any = EPOCHS, refit: bool = True, judge: Loss | str = "spo+") -> Outcome:
    """The shared model, trained further at each client."""
    tuning, part = tuned(run, BestStop(Stops(FedAvg(), checked_epochs(epochs)), judge), refit)
    newcomer = run.common(run.trained(FedAvg(), part), part)[1]
    return Outcome(run.personal(tuning.vectors, part), newcomer, {"epochs": tuning.epochs.tolist()})


@method(
    "finetune-mix",
    label="Fine-tuned, mixed",
    colour="#56B4E9",
    words="the shared model, trained further at each client and mixed with it",
)
def finetune_mix(run: Run, *, epochs: Any = EPOCHS, refit: bool = True, judge: Loss | str = "spo+") -> Outcome:
    """The mean of the shared model, the shared model trained further at each client, and the forecast, if there is one."""
    # The forecast is not used in the choice of epochs.
    tuning, part = tuned(run, BestStop(Stops(FedAvg(), checked_epochs(epochs)), judge, SHARE), refit)
    common, newcomer = run.common(run.trained(FedAvg(), part), part)
    personal = run.personal(tuning.vectors, part)
    mixed: list[Predictor] = [MixedPredictor(a, b, np.asarray(SHARE)) for a, b in zip(personal, common, strict=True)]
    if run.settings.forecast:
        forecast_predictor = ForecastPredictor(run.federation.dim)
        mixed = [MixedPredictor(predictor, forecast_predictor, np.asarray(1 / 3)) for predictor in mixed]
    return Outcome(mixed, newcomer, {"epochs": tuning.epochs.tolist()})
