"""Lying sites in simulation: an aggregator that replaces the updates of some clients by lies, before another aggregator.

Only studies use it. The liars know the updates of the honest clients, which they could not in a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.stats import norm

from dffl.named import find
from dffl.randomness import Purpose, stream
from dffl.training.aggregators import Aggregator, Around, Memory, Moment, Update
from dffl.training.aggregators.base import stacked_vectors

Attack = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""From the liars' own changes (liars, numbers), those of the honest clients, and a generator, to the lies."""


def sign_flip(update: np.ndarray, honest: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """The opposite of the learned change, five times as long."""
    return -5.0 * update


def large_noise(update: np.ndarray, honest: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """A random direction, ten times as long as the own change."""
    directions = draws.normal(size=update.shape)
    lengths = np.linalg.norm(update, axis=1, keepdims=True) / np.linalg.norm(directions, axis=1, keepdims=True)
    return 10.0 * lengths * directions


def same_value(update: np.ndarray, honest: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """One value in all numbers, for all liars, ten times as long as the first one's own change (Li et al., 2019)."""
    length = float(np.linalg.norm(update[0]))
    return np.full(update.shape, 10.0 * length / np.sqrt(update.shape[1]))


def a_little(update: np.ndarray, honest: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """As far from the honest mean as some honest clients are, all in one direction: "a little is enough" (Baruch et al., 2019).

    How far follows from how many honest clients the liars need on their side for a majority.
    """
    every, liars = len(update) + len(honest), len(update)
    supporters = max(every // 2 + 1 - liars, 1)
    far = norm.ppf((len(honest) - supporters) / len(honest)) if supporters < len(honest) else 0.0
    return np.broadcast_to(honest.mean(axis=0) - max(far, 0.0) * honest.std(axis=0), update.shape)


ATTACKS: dict[str, Attack] = {
    "sign flip": sign_flip, "large noise": large_noise, "same value": same_value, "a little": a_little,
}  # fmt: skip


class Lying(Around):
    """``inner`` with lying sites: in every round the updates of ``liars`` are replaced by those of ``attack``."""

    name = "lying"

    def __init__(self, inner: Aggregator | str, attack: str, liars: Sequence[str], seed: int = 0):
        find(ATTACKS, attack, "attack")
        super().__init__(inner)
        self.attack, self.liars, self.seed = attack, tuple(liars), seed

    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]:
        every, start = list(updates), np.asarray(shared, np.float64)
        lying = [place for place, update in enumerate(every) if update.client in self.liars]
        honest = [update for update in every if update.client not in self.liars]
        if lying and honest:
            draws = stream(self.seed, Purpose.LIE, counter=moment.round)
            true_updates = stacked_vectors(every[place] for place in lying) - start
            for place, lie in zip(
                lying, ATTACKS[self.attack](true_updates, stacked_vectors(honest) - start, draws), strict=True
            ):
                every[place] = every[place]._replace(vector=start + lie)
        return self.inner.combine(shared, iter(every), memory, moment)


def drawn_liars(names: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """A number of random names. The names of a smaller number are among those of a larger one."""
    order = stream(seed, Purpose.LIE, "who").permutation(len(names))
    return tuple(sorted(names)[place] for place in order[:count])
