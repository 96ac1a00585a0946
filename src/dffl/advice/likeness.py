"""A two-sample test: do a client's costs depend on its features as the others' costs depend on theirs?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dffl.advice.folds import WEEK
from dffl.federation import Federation
from dffl.predictor import Normaliser
from dffl.randomness import Purpose, stream

PERMUTATIONS = 199
REST = 5
"""A client is compared with at most this many times as many weeks of others as it has itself."""


class Moves(NamedTuple):
    """One client: the deviations of its features and costs from their means, and the week, or other unit, of each sample."""

    name: str
    x: np.ndarray
    c: np.ndarray
    week: np.ndarray

    @property
    def weeks(self) -> int:
        """The number of weeks."""
        return int(self.week[-1]) + 1


def cost_p_values(federation: Federation, units: list[Normaliser], seed: int, blocks: bool) -> np.ndarray:
    """The p-value of each client. With ``blocks``, samples are permuted by week, else one by one."""
    # Units that all clients share: own units would add the error of the client's own spread to its slopes.
    spread = np.sqrt(np.average([unit.x_scale**2 for unit in units], axis=0, weights=federation.counts))
    length = WEEK if blocks else 1
    moves = [
        Moves(
            client.name,
            (client.x - unit.x_mean) / spread,
            (client.c - client.c.mean(axis=0)) / float(unit.c_scale),
            np.arange(client.n) // length,
        )
        for client, unit in zip(federation, units, strict=True)
    ]
    by_name = sorted(moves)  # the result does not depend on the order of the clients
    return np.array([_p_value(mine, [client for client in by_name if client.name != mine.name], seed) for mine in moves])


def _p_value(mine: Moves, others: list[Moves], seed: int) -> float:
    rng = stream(seed, Purpose.COMPARE, mine.name)
    starts = np.cumsum([0, *(moves.weeks for moves in others)])
    weeks = np.concatenate([moves.week + start for moves, start in zip(others, starts[:-1], strict=True)])
    drawn = np.isin(weeks, rng.choice(int(starts[-1]), min(int(starts[-1]), REST * mine.weeks), replace=False))
    x, c = (np.concatenate([getattr(moves, field) for moves in others])[drawn] for field in ("x", "c"))
    design, costs = np.concatenate([mine.x, x]), np.concatenate([mine.c, c])
    _, label = np.unique(np.concatenate([mine.week - mine.weeks, weeks[drawn]]), return_inverse=True)
    count = int(label.max()) + 1
    gram = design.T @ design / len(design)
    observed = _gap(design, costs, label < mine.weeks, gram)
    larger = sum(
        _gap(design, costs, (rng.permutation(count) < mine.weeks)[label], gram) >= observed for _ in range(PERMUTATIONS)
    )
    return (1 + larger) / (1 + PERMUTATIONS)


def _gap(design: np.ndarray, costs: np.ndarray, mine: np.ndarray, gram: np.ndarray) -> float:
    """The squared difference of two linear models of size 1, averaged over all samples, over what chance makes of it."""
    slopes, chance = [], 0.0
    for group in (mine, ~mine):
        x, c = design[group], costs[group]
        slope = np.linalg.solve(x.T @ x / len(x) + 1e-3 * np.eye(x.shape[1]), x.T @ c / len(x))
        size = max(float(np.sum(slope * (gram @ slope))), 1e-300)
        slopes.append(slope / np.sqrt(size))
        chance += float(np.sum((c - x @ slope) ** 2)) / len(x) ** 2 / size
    difference = slopes[0] - slopes[1]
    return float(np.sum(difference * (gram @ difference))) / max(chance, 1e-300)
