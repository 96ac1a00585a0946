"""`interp-*`: each client's best mix of its own and the shared model, chosen on held-out samples (Algorithm 3).

Both models are trained on 80 % of the samples and mixed as they are. The oracle versions train on all samples and choose
on a separate validation federation, which a real client would not have. `interp-refit` chooses the weight in folds, so that
every sample judges once, and then mixes models of all samples. Among equally good weights the smallest is chosen.
"""

from __future__ import annotations

import numpy as np

from dffl.checks import require_number
from dffl.losses import Loss
from dffl.predictor import MixedPredictor
from dffl.training.methods.registry import method
from dffl.training.parts import ALL, SPLIT, Part
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg, Local, Weights
from dffl.training.trainers.crossfit import FOLDS, fold_parts
from dffl.training.trainers.mixing import WeightLosses


def interpolated(run: Run, part: Part, judge: Loss | str, lambda_step: float) -> Outcome:
    """The mix with the lowest loss, by the judging loss."""
    return mixed(run, part, run.trained(Weights(judge, checked_step(lambda_step)), part))


def checked_step(lambda_step: float) -> float:
    """The step of the grid of weights, if the option is a number."""
    require_number("lambda_step", lambda_step, 1e-4 * (1 - 1e-9), 1.0, "in [0.0001, 1]", closed=True)
    return float(lambda_step)


def mixed(run: Run, part: Part, weights: np.ndarray) -> Outcome:
    """The clients' own models of a part, mixed with the shared one by these weights."""
    personal = run.personal(run.trained(Local(), part), part)
    common, newcomer = run.common(run.trained(FedAvg(), part), part)
    models = [MixedPredictor(a, b, np.asarray(w)) for a, b, w in zip(personal, common, weights, strict=True)]
    return Outcome(models, newcomer, {"lambda": weights.tolist()})


@method(
    "interp-mse",
    label="Interpolated (MSE)",
    colour="#CC79A7",
    words="a mix of own and shared model, weighted by prediction errors",
)
def interp_mse(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest squared error on held-out samples."""
    return interpolated(run, SPLIT, "mse", lambda_step)


@method(
    "interp-spo", label="Interpolated (SPO+)", colour="#009E73", words="a mix of own and shared model, weighted by decisions"
)
def interp_spo(run: Run, *, lambda_step: float = 0.05, judge: Loss | str = "spo+") -> Outcome:
    """The mix with the lowest SPO+ loss on held-out samples, or with the lowest other judging loss."""
    return interpolated(run, SPLIT, judge, lambda_step)


@method(
    "interp-refit", label="Interpolated, refitted", colour="#B8860B", words="a mix of own and shared model, weighted in folds"
)
def interp_refit(run: Run, *, folds: int = FOLDS, lambda_step: float = 0.05, judge: Loss | str = "spo+") -> Outcome:
    """Models of all samples, in the mix with the lowest loss over the held-out samples of all folds."""
    losses = WeightLosses(judge, checked_step(lambda_step))
    summed = sum(run.trained(losses, part) for part in fold_parts(run, folds))
    return mixed(run, ALL, losses.grid[np.argmin(summed, axis=1)])


# An oracle has the pale colour of the method that it idealises.


@method("oracle-interp-mse", label="Oracle interpolated (MSE)", colour="#E6BCD3")
def oracle_interp_mse(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest squared error on a separate validation federation."""
    return interpolated(run, ALL, "mse", lambda_step)


@method("oracle-interp-spo", label="Oracle interpolated (SPO+)", colour="#80CEB9")
def oracle_interp_spo(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest SPO+ loss on a separate validation federation."""
    return interpolated(run, ALL, "spo+", lambda_step)
