"""`fedavg`: one model for all, by federated averaging of the client updates (Algorithm 1)."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from dffl.randomness import Purpose, stream
from dffl.training.methods import Work, method
from dffl.training.run import Outcome, Part, Run
from dffl.training.settings import Settings


def train_federated(run: Run, part: Part) -> np.ndarray:
    """The shared vector after all rounds. The optimiser's state is fresh in every round."""
    engine, settings = run.engine(part), run.settings
    job, total = f"fedavg/{part}", len(run.federation)
    limit = participants(total, settings.client_fraction)
    shared = engine.initial
    for number in range(settings.rounds):
        members = sampled(total, limit, settings.seed, number)
        weight = engine.counts / engine.counts[members].sum()
        average: Array | None = None
        first = number * settings.local_epochs
        for chunk in engine.chunks(None if limit == total else members, limit):
            starts, states = engine.start(chunk, shared)
            update = engine.update(chunk, starts, states, first, settings.local_epochs, Purpose.SHUFFLE)
            weights = np.zeros(chunk.size, engine.dtype)  # the idle places weigh nothing
            weights[: len(chunk.members)] = weight[chunk.members]
            with engine.precision():
                average = _add_weighted(average, weights, update.vectors)
            run.history.add(job, number, chunk.members, update.seen)
            run.advance(chunk.members, settings.local_epochs, "fedavg", part)
        assert average is not None
        shared = average
    return np.asarray(shared)


def participants(total: int, fraction: float) -> int:
    """How many clients a round samples."""
    return max(int(np.floor(fraction * total + 1e-9)), 1)


def sampled(total: int, count: int, seed: int, number: int) -> np.ndarray:
    """The positions of the clients that take part in a round."""
    if count == total:
        return np.arange(total)
    return np.sort(stream(seed, Purpose.SAMPLE_CLIENTS, counter=number).choice(total, count, replace=False))


@jax.jit
def _add_weighted(average: Array | None, weights: Array, vectors: Array) -> Array:
    part = weights @ vectors
    return part if average is None else average + part


def fedavg_work(settings: Settings, part: Part = "all") -> Work:
    """Passes over the data."""
    share = 1.0 if part == "all" else 1 - settings.validation_fraction
    return {f"fedavg/{part}": share * settings.client_fraction * settings.rounds * settings.local_epochs}


@method("fedavg", work=fedavg_work)
def fedavg(run: Run) -> Outcome:
    """The shared model, in each client's own units."""
    predictors, shared = run.common(run.trained(train_federated, "all"), "all")
    return Outcome(predictors, shared)
