"""`crossfit` and `local-tuned`: models of several folds, tuned for as long as held-out samples say, that decide by their mean.

`crossfit` trains one shared model in each fold, and each client trains it further. `local-tuned` is the same without any other
client: what a client reaches alone with the same care. `crossfit-turned` is for clients whose features are mixed differently.

All give an honest estimate of the client's regret at no further cost (the column ``out_of_fold_regret``, and `Fit.out_of_fold`
for each sample): each sample is decided by the model that has not seen it.

With `Settings.validation_blocks` folds are stretches of consecutive samples, as time series need.
"""

from __future__ import annotations

from typing import Any

from dffl.losses import Loss
from dffl.predictor import MeanPredictor, Predictor
from dffl.training.aggregators.server import Momentum
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg, Stops
from dffl.training.trainers.crossfit import FOLDS, CrossFitted, cross_fitted, fold_parts
from dffl.training.trainers.tuning import EPOCHS, checked_epochs
from dffl.training.trainers.turned import TurnedStops

LOCAL_EPOCHS = (10, 25, 50, 100, 250)
"""The candidate numbers of epochs of a client without others; the last is that of the paper's local models."""


FAST = {"learning_rate": 2e-3, "schedule": "cosine", "aggregate": Momentum(rate=0.7, momentum=0.5)}
"""Settings with which shared models learn more from clean data in the same number of rounds; see docs/leaderboard.md."""


@method(
    "crossfit", label="Cross-fitted", colour="#332288", words="shared models of several folds, trained further at each client"
)
def crossfit(run: Run, *, folds: int = FOLDS, epochs: Any = EPOCHS, judge: Loss | str = "regret") -> Outcome:
    """The mean of the folds' shared models, each trained further at each client."""
    fitted = cross_fitted(run, Stops(FedAvg(), checked_epochs(epochs)), fold_parts(run, folds), judge)
    shared = [run.common(run.trained(FedAvg(), part), part)[1] for part in fitted.parts]
    return _outcome(run, fitted, MeanPredictor(tuple(shared)))


@method("crossfit-turned", label="Cross-fitted, turned", colour="#6A51A3", settings=FAST)
def crossfit_turned(run: Run, *, folds: int = FOLDS, epochs: Any = EPOCHS, judge: Loss | str = "regret") -> Outcome:
    """The same, with shared models after a matrix of each client that turns its features (see `trainers/turned.py`)."""
    stops = TurnedStops(epochs=checked_epochs(epochs))
    fitted = cross_fitted(run, stops, fold_parts(run, folds), judge)
    shared = [run.common(run.trained(stops, part).shared, part)[1] for part in fitted.parts]
    return _outcome(run, fitted, MeanPredictor(tuple(shared)))


@method(
    "local-tuned",
    label="Local, tuned",
    colour="#F4A582",
    kind="alone",
    words="the client's own model, tuned with as much care as crossfit",
)
def local_tuned(run: Run, *, folds: int = FOLDS, epochs: Any = LOCAL_EPOCHS, judge: Loss | str = "regret") -> Outcome:
    """The mean of the folds' models, which each client has trained alone."""
    return _outcome(run, cross_fitted(run, Stops(None, checked_epochs(epochs)), fold_parts(run, folds), judge))


def _outcome(run: Run, fitted: CrossFitted, shared: Predictor | None = None) -> Outcome:
    models = [run.personal(vectors, part) for part, vectors in zip(fitted.parts, fitted.vectors, strict=True)]
    unseen = list(zip(fitted.parts, models, strict=True))
    return Outcome(
        [MeanPredictor(fold_models) for fold_models in zip(*models, strict=True)],
        shared,
        {"epochs": fitted.epochs.tolist()},
        unseen,
    )
