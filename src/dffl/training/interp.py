"""`interp-*`: each client's best mix of its own and the shared model, chosen on held-out samples (Algorithm 3).

Both models are trained on 80 % of the samples and mixed as they are. The oracle versions train on all samples and choose
on a separate validation federation, which a real client would not have. Among equally good weights the smallest is chosen.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from dffl.predictor import MixedPredictor
from dffl.training.fedavg import fedavg_work, train_federated
from dffl.training.local import local_work, train_local
from dffl.training.methods import Work, method
from dffl.training.run import Outcome, Part, Run
from dffl.training.settings import Settings


def validation_losses(run: Run, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Each client's validation SPO+ loss and squared error for every weight of the grid, (clients, weights) each."""
    own, shared = run.trained(train_local, part), run.trained(train_federated, part)
    engine, lambdas = run.engine(part), run.settings.lambdas
    mixing = np.stack([1 - lambdas, lambdas], axis=1)
    spo = np.empty((len(run.federation), len(lambdas)))
    error = np.empty_like(spo)
    for chunk in engine.chunks():
        with engine.precision():
            padded, _ = engine.start(chunk, own[chunk.members])
            models = jnp.stack([padded, jnp.broadcast_to(shared, padded.shape)], axis=1)
        spo[chunk.members], error[chunk.members] = engine.validate(chunk, models, mixing)
    return spo, error


def _interpolate(run: Run, part: Part, losses: np.ndarray) -> Outcome:
    weights = run.settings.lambdas[np.argmin(losses, axis=1)]
    own = run.personal(run.trained(train_local, part), part)
    common, newcomer = run.common(run.trained(train_federated, part), part)
    mixed = [MixedPredictor(a, b, np.asarray(w)) for a, b, w in zip(own, common, weights, strict=True)]
    return Outcome(mixed, newcomer, {"lambda": weights.tolist()})


def _split_work(settings: Settings) -> Work:
    return local_work(settings, "split") | fedavg_work(settings, "split")


def _oracle_work(settings: Settings) -> Work:
    return local_work(settings) | fedavg_work(settings)


@method("interp-mse", work=_split_work, splits=True)
def interp_mse(run: Run) -> Outcome:
    """The mix with the lowest squared error on held-out samples."""
    return _interpolate(run, "split", run.trained(validation_losses, "split")[1])


@method("interp-spo", work=_split_work, splits=True)
def interp_spo(run: Run) -> Outcome:
    """The mix with the lowest SPO+ loss on held-out samples."""
    return _interpolate(run, "split", run.trained(validation_losses, "split")[0])


@method("oracle-interp-mse", work=_oracle_work, validates=True)
def oracle_interp_mse(run: Run) -> Outcome:
    """The mix with the lowest squared error on a separate validation federation."""
    return _interpolate(run, "all", run.trained(validation_losses, "all")[1])


@method("oracle-interp-spo", work=_oracle_work, validates=True)
def oracle_interp_spo(run: Run) -> Outcome:
    """The mix with the lowest SPO+ loss on a separate validation federation."""
    return _interpolate(run, "all", run.trained(validation_losses, "all")[0])
