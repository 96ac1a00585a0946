"""`nearest`: the mean cost of the most similar samples, at each client alone.

How many samples is chosen by leave-one-out: each sample is decided by the others, and the number with the least regret is
taken. With `Settings.validation_blocks` a sample is decided by the other stretches of consecutive samples, as time series need.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.checks import require_whole
from dffl.federation import Client
from dffl.predictor import Normaliser, Predictor
from dffl.splitting import COST, ROW, Splitting
from dffl.training.alone import Own, best_of, require_judge
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings
from dffl.training.trainers.crossfit import FOLDS

NEIGHBOURS = (1, 3, 5, 10, 20, 50)
"""The candidate numbers of samples."""
TIE = 1 + 1e-9
"""Samples are equally near up to this factor of the squared distance, so that rounding decides nothing."""
ROWS = 64
"""The number of rows that are compared with all samples at once, to bound the memory."""


class NearestPredictor(Predictor):
    """The mean cost of the nearest samples in standardised features; all that are as near as the last one count."""

    normaliser: Normaliser
    z: np.ndarray
    """The samples' standardised features (n, p)."""
    costs: np.ndarray
    """Their costs (n, d)."""
    neighbours: np.ndarray

    def __call__(self, x: Array) -> Array:
        rows = jnp.reshape(self.normaliser.features(x), (-1, x.shape[-1]))
        return jax.lax.map(self._at, rows, batch_size=ROWS).reshape(*x.shape[:-1], -1)

    def _at(self, row: Array) -> Array:
        distance = jnp.sum((self.z - row) ** 2, axis=-1)
        near = distance <= TIE * jnp.sort(distance)[self.neighbours - 1]
        return near @ self.costs / near.sum()


@method("nearest", label="Nearest samples", colour="#C7B042", kind="naive", words="the costs of the most similar past samples")
def nearest(run: Run, *, neighbours: int | None = None, judge: str = "regret") -> Outcome:
    """The mean cost of the ``neighbours`` most similar samples, by default the number that is best for the client."""
    require_judge(judge)
    if neighbours is not None:
        require_whole("neighbours", neighbours, least=1)
    return run.alone(lambda client: _nearest(client, neighbours, judge, run.settings))


def _nearest(client: Client, neighbours: int | None, judge: str, settings: Settings) -> Own:
    unit = Normaliser.fit(client.x, client.c)
    z = unit.features(client.x)
    # A client with fewer samples takes all of them.
    number = _chosen(client, z, judge, settings) if neighbours is None else min(neighbours, client.n)
    return Own(NearestPredictor(unit, z, client.c, np.asarray(number)), {"neighbours": number})


def _chosen(client: Client, z: np.ndarray, judge: str, settings: Settings) -> int:
    group = np.arange(client.n)
    if settings.split in (ROW, COST):  # a sample is not decided by its own copy
        group = np.unique(client.cost_keys if settings.split == COST else client.row_keys, return_inverse=True)[1]
    elif settings.validation_blocks:
        for number, rows in enumerate(Splitting(blocks=True).folds(client, min(FOLDS, client.n))):
            group[rows] = number
    others = client.n - int(np.bincount(group).max())
    candidates = [number for number in NEIGHBOURS if number <= others]
    if len(candidates) < 2:
        return 1
    return candidates[best_of(client, held_out_means(z, client.c, group, candidates), judge)]


def held_out_means(z: np.ndarray, costs: np.ndarray, group: np.ndarray, numbers: Sequence[int]) -> list[np.ndarray]:
    """For each number, the mean costs (n, d) of that many samples nearest to each, none of its own group among them."""
    means = [np.empty_like(costs) for _ in numbers]
    for start in range(0, len(z), ROWS):
        rows = slice(start, start + ROWS)
        distance = np.sum((z[rows, None] - z) ** 2, axis=-1)
        distance[group[rows, None] == group] = np.inf
        ordered = np.sort(distance, axis=1)
        for number, mean in zip(numbers, means, strict=True):
            near = distance <= TIE * ordered[:, number - 1 : number]
            mean[rows] = near @ costs / near.sum(axis=1, keepdims=True)
    return means
