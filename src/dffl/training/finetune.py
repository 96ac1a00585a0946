"""`finetune` and `finetune-mix`: the shared model, trained on at each client for a number of epochs that the client chooses.

The number is chosen by SPO+ loss on held-out samples, with models of the 80/20 split. Then the federated model of all the
data is trained that long on all of the client's data: reusing the held-out samples is worth more than the choice itself.
``finetune_refit=False`` leaves that last step out. Among equally good numbers the smallest is chosen.

`finetune-mix` decides by the mean of what there is: the tuned model, the shared one and, where the clients have one, the
forecast that these correct. Each errs in its own way, and no weights have to be learned from few samples.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from dffl.predictor import ForecastPredictor, MixedPredictor, Predictor
from dffl.randomness import Purpose
from dffl.training.engine import Chunk, rounds_of
from dffl.training.fedavg import fedavg_work, train_federated
from dffl.training.methods import Work, method
from dffl.training.run import Outcome, Part, Run
from dffl.training.settings import Settings

SHARED = 0.5
"""How much of the shared model there is in a mix."""


class Tuned(NamedTuple):
    """One vector for each client, and the epochs behind it."""

    vectors: np.ndarray
    epochs: np.ndarray


def choose_epochs(run: Run, part: Part) -> Tuned:
    """Fine-tune on this part with stops at every candidate number, and keep each client's best on validation."""
    return _choose(run, part, 0.0)


def choose_mixed_epochs(run: Run, part: Part) -> Tuned:
    """The same, where a candidate is judged by its mix with the shared model; a forecast is left out of the choice."""
    return _choose(run, part, SHARED)


def _choose(run: Run, part: Part, share: float) -> Tuned:
    engine, candidates = run.engine(part), run.settings.finetune_epochs
    shared = run.trained(train_federated, part)
    # A candidate is a row: its own model, and beside it, in the last column, the shared one.
    mixing = np.hstack([(1 - share) * np.eye(len(candidates)), np.full((len(candidates), 1), share)])
    vectors = np.empty((len(run.federation), engine.template.size), engine.dtype)
    epochs = np.empty(len(run.federation), int)
    for chunk in engine.chunks():
        stops = tune(run, part, chunk, shared, candidates)
        with engine.precision():
            models = jnp.stack([*stops, jnp.broadcast_to(shared, stops[0].shape)], axis=1)
        losses, _ = engine.validate(chunk, models, mixing)
        best = np.argmin(losses, axis=1)
        epochs[chunk.members] = np.array(candidates)[best]
        vectors[chunk.members] = np.asarray(models)[np.arange(len(best)), best]
    return Tuned(vectors, epochs)


def refit(run: Run, part: Part) -> Tuned:
    """Fine-tune the model of all the data for as long as each client chose on the split."""
    return _refit(run, part, run.trained(choose_epochs, "split").epochs)


def refit_mixed(run: Run, part: Part) -> Tuned:
    """The same, for as long as each client chose by `choose_mixed_epochs`."""
    return _refit(run, part, run.trained(choose_mixed_epochs, "split").epochs)


def _refit(run: Run, part: Part, chosen: np.ndarray) -> Tuned:
    engine, shared = run.engine(part), run.trained(train_federated, part)
    vectors = np.broadcast_to(shared, (len(run.federation), shared.size)).copy()
    for count in sorted(set(chosen.tolist()) - {0}):
        for chunk in engine.chunks(np.flatnonzero(chosen == count)):
            tuned = tune(run, part, chunk, shared, (count,))[-1]
            vectors[chunk.members] = np.asarray(tuned)[: len(chunk.members)]
    return Tuned(vectors, chosen)


def tune(run: Run, part: Part, chunk: Chunk, shared: np.ndarray, stops: tuple[int, ...]) -> list[jnp.ndarray]:
    """The chunk's vectors at each stop of one training that starts from the shared vector."""
    engine, most = run.engine(part), run.settings.local_epochs
    current, states = engine.start(chunk, shared)
    reached, done, calls = [], 0, 0
    for stop in stops:
        for first, count in rounds_of(stop - done, most):
            current, states, seen = engine.update(chunk, current, states, done + first, count, Purpose.TUNE)
            run.history.add(f"finetune/{part}", calls, chunk.members, seen)
            run.advance(chunk.members, count, "finetune", part)
            calls += 1
        reached.append(current)
        done = stop
    return reached


def _work(settings: Settings) -> Work:
    longest = settings.finetune_epochs[-1]
    work = fedavg_work(settings, "split") | {"finetune/split": (1 - settings.validation_fraction) * longest}
    if settings.finetune_refit:
        work |= fedavg_work(settings) | {"finetune/all": 0.5 * longest}  # how long is known only afterwards
    return work


@method("finetune", work=_work, splits=True)
def finetune(run: Run) -> Outcome:
    """The shared model, trained on at each client."""
    part: Part = "all" if run.settings.finetune_refit else "split"
    tuned = run.trained(refit, "all") if run.settings.finetune_refit else run.trained(choose_epochs, "split")
    newcomer = run.common(run.trained(train_federated, part), part)[1]
    return Outcome(run.personal(tuned.vectors, part), newcomer, {"epochs": tuned.epochs.tolist()})


@method("finetune-mix", work=_work, splits=True)
def finetune_mix(run: Run) -> Outcome:
    """The mean of the shared model, the shared model trained on at each client, and the forecast, if there is one."""
    part: Part = "all" if run.settings.finetune_refit else "split"
    tuned = run.trained(refit_mixed, "all") if run.settings.finetune_refit else run.trained(choose_mixed_epochs, "split")
    common, newcomer = run.common(run.trained(train_federated, part), part)
    own = run.personal(tuned.vectors, part)
    mixed: list[Predictor] = [MixedPredictor(a, b, np.asarray(SHARED)) for a, b in zip(own, common, strict=True)]
    if run.settings.forecast:
        given = ForecastPredictor(run.federation.dim)
        mixed = [MixedPredictor(one, given, np.asarray(1 / 3)) for one in mixed]
    return Outcome(mixed, newcomer, {"epochs": tuned.epochs.tolist()})
