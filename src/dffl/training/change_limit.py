"""Which updates of a round are left out: those that change the model far more than the updates of the others do.

One client that sends wrong numbers, by accident or on purpose, can ruin a mean. A client's change is its answer minus what it
was sent. Its limit is the larger of two lengths: `Settings.change_limit` times the median length of the others' changes, and
what the optimiser itself can reach in the client's steps. The second keeps honest clients among others that hardly change.
Both grow with the client's number of steps, up to `MOST_STEPS` times the others' median: a client with many samples takes many
steps, and a false number of samples must not raise its limit without an end.

With fewer than `LEAST` answers nobody can tell who is wrong, and no update is left out. In a deployment sites can be missing
from a round. Then the last accepted change of each missing site stands in for it, once a round had `LEAST` answers: a site
that is lost does not switch the rule off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dffl.training.batches import steps_per_epoch
from dffl.training.optimisers import Optimiser
from dffl.training.settings import Settings

LEAST = 4
"""The fewest answers in a round. With three, the two others of an honest client could be one liar and one honest client."""
MOST_STEPS = 10.0
"""The largest factor by which more steps raise a client's limit. Changes grow more slowly than steps: with 160 times the steps
they were 33 times as long (`python -m benchmarks.lying changes`).
"""
REACH = 2.0
"""Above the reach of the optimiser: no honest change with Adam was longer than 1.0 times its reach."""


class Change(NamedTuple):
    """How far one client changed the model that it was sent."""

    client: str
    samples: int
    length: float
    """The length of the change of its vector."""
    size: int
    """The number of numbers in its vector."""


class ChangeLimits(NamedTuple):
    """For each client the length of its change, the median of the others' lengths, and the limit."""

    lengths: np.ndarray
    medians: np.ndarray
    allowed: np.ndarray


def is_on(settings: Settings) -> bool:
    """Whether the rule applies with these settings."""
    return bool(settings.change_limit) and settings.hides is None


def left_out(settings: Settings, rate: float, changes: Sequence[Change], missing: Sequence[Change] = ()) -> dict[str, str]:
    """The clients whose updates are left out of a round, each with the reason. ``rate`` is the round's factor on step sizes.

    ``missing`` are the last accepted changes of clients that are not in this round.
    """
    compared = [*changes, *missing] if len(changes) < LEAST else changes
    if len(compared) < LEAST or not is_on(settings):
        return {}
    outside: dict[str, str] = {}
    judged = (values[: len(changes)] for values in limits(settings, rate, compared))
    for change, length, median, most in zip(changes, *judged, strict=True):
        if length > most:  # not for a length that is not a number: that is reported as divergence
            others = f"the median of the others is {median:.3g}, at most {most:.3g} is allowed"
            outside[change.client] = f"its vector changed by {length:.3g}, {others}"
    return outside


def limits(settings: Settings, rate: float, changes: Sequence[Change]) -> ChangeLimits:
    """The changes, with their limits."""
    steps = np.array(
        [settings.local_epochs * steps_per_epoch(change.samples, settings.batch_size) for change in changes], float
    )
    usual = _medians_of_others(steps)
    steps = np.minimum(steps, MOST_STEPS * usual)
    lengths = np.array([change.length for change in changes])
    medians = _medians_of_others(lengths)
    reaches = {size: _reach(settings, rate, size) for size in {change.size for change in changes}}
    reach = steps * [reaches[change.size] for change in changes]
    return ChangeLimits(lengths, medians, np.maximum(settings.change_limit * medians * np.maximum(steps / usual, 1.0), reach))


def _reach(settings: Settings, rate: float, size: int) -> float:
    """The longest step of the optimiser."""
    optimiser = Optimiser.of(settings.optimiser)
    return REACH * settings.learning_rate * rate * optimiser.longest_step(size, settings.gradient_clip)


def _medians_of_others(values: np.ndarray) -> np.ndarray:
    """For each value, the median of all others."""
    ordered, count = np.sort(values), len(values)
    places = np.searchsorted(ordered, values)  # its own position: among equal values any of them is the same
    low, high = (count - 2) // 2, (count - 1) // 2
    taken = [ordered[np.where(places <= middle, middle + 1, middle)] for middle in (low, high)]
    return np.asarray((taken[0] + taken[1]) / 2)


def length_of(change: np.ndarray) -> float:
    """Its Euclidean length."""
    return math.sqrt(float(np.sum(np.square(change, dtype=np.float64))))
