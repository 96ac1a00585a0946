"""`interp-*`: each client's best mix of its own and the shared model, chosen on held-out samples (Algorithm 3).

Both models are trained on 80 % of the samples and mixed as they are. The oracle versions train on all samples and choose
on a separate validation federation, which a real client would not have. Among equally good weights the smallest is chosen.
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


def interpolated(run: Run, part: Part, judge: Loss | str, lambda_step: float) -> Outcome:
    """The mix with the lowest loss, by the one that judges."""
    require_number("lambda_step", lambda_step, 1e-4 * (1 - 1e-9), 1.0, "in [0.0001, 1]", closed=True)
    weights = run.trained(Weights(judge, float(lambda_step)), part)
    own = run.personal(run.trained(Local(), part), part)
    common, newcomer = run.common(run.trained(FedAvg(), part), part)
    mixed = [MixedPredictor(a, b, np.asarray(w)) for a, b, w in zip(own, common, weights, strict=True)]
    return Outcome(mixed, newcomer, {"lambda": weights.tolist()})


@method("interp-mse", label="Interpolated (MSE)", colour="#CC79A7")
def interp_mse(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest squared error on held-out samples."""
    return interpolated(run, SPLIT, "mse", lambda_step)


@method("interp-spo", label="Interpolated (SPO+)", colour="#009E73")
def interp_spo(run: Run, *, lambda_step: float = 0.05, judge: Loss | str = "spo+") -> Outcome:
    """The mix with the lowest SPO+ loss on held-out samples, or with the lowest other loss that judges."""
    return interpolated(run, SPLIT, judge, lambda_step)


# An oracle's colour is the pale one of the method that it idealises.


@method("oracle-interp-mse", label="Oracle interpolated (MSE)", colour="#E6BCD3")
def oracle_interp_mse(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest squared error on a separate validation federation."""
    return interpolated(run, ALL, "mse", lambda_step)


@method("oracle-interp-spo", label="Oracle interpolated (SPO+)", colour="#80CEB9")
def oracle_interp_spo(run: Run, *, lambda_step: float = 0.05) -> Outcome:
    """The mix with the lowest SPO+ loss on a separate validation federation."""
    return interpolated(run, ALL, "spo+", lambda_step)
