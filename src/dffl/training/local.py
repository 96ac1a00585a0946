"""`local`: every client alone, in one run of rounds x local_epochs epochs."""

from __future__ import annotations

import numpy as np

from dffl.randomness import Purpose
from dffl.training.engine import rounds_of
from dffl.training.methods import Work, method
from dffl.training.run import Outcome, Part, Run
from dffl.training.settings import Settings


def train_local(run: Run, part: Part) -> np.ndarray:
    """One vector for each client. Adam's state lasts for the whole run."""
    engine, settings = run.engine(part), run.settings
    vectors = np.empty((len(run.federation), engine.template.size), engine.dtype)
    epochs = settings.rounds * settings.local_epochs
    for chunk in engine.chunks():
        current, states = engine.start(chunk, engine.initial)
        for number, (first, count) in enumerate(rounds_of(epochs, settings.local_epochs)):
            current, states, seen = engine.update(chunk, current, states, first, count, Purpose.SHUFFLE)
            run.history.add(f"local/{part}", number, chunk.members, seen)
            run.advance(chunk.members, count, "local", part)
        vectors[chunk.members] = np.asarray(current)[: len(chunk.members)]
    return vectors


def local_work(settings: Settings, part: Part = "all") -> Work:
    """Passes over the data."""
    share = 1.0 if part == "all" else 1 - settings.validation_fraction
    return {f"local/{part}": share * settings.rounds * settings.local_epochs}


@method("local", work=local_work)
def local(run: Run) -> Outcome:
    """Each client's own model."""
    return Outcome(run.personal(run.trained(train_local, "all"), "all"))
