"""Why federating helps a client or not: signals that need no training, from closed-form models of the costs.

They explain; the decision itself rests on held-out regrets (`gains`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from dffl.federation import Client, Federation
from dffl.predictor import Normaliser
from dffl.sets import FeasibleSet, stack
from dffl.sets.base import structure
from dffl.theory.costmodel import fit_ridge
from dffl.training import Settings

POINTS = 200
"""Samples of a client at which the floor is measured, at most."""
PERMUTATIONS = 199
WEEK = 7
REST = 5
"""How many times as many samples of others as of its own a client is compared with, at most."""


@dataclass(frozen=True, eq=False)
class Signals:
    """One entry a client."""

    floor: np.ndarray
    """The relative regret of the best shared prediction, the mean of all clients' modelled costs: no data would lower it."""
    unlike: np.ndarray
    """The p-value of a permutation test that the client's costs depend on its features as the others' do."""
    apart: np.ndarray
    """How far its decisions lie from the others' at the same costs, in diameters of its set: what its constraint does."""


def signals(federation: Federation, settings: Settings, blocks: bool = False) -> Signals:
    """The three signals for every client, in standardised features and scaled costs."""
    units = [Normaliser.fit(one.x, one.c, settings.scale_features, settings.scale_costs) for one in federation]
    rows = [(unit.features(one.x), one.c / unit.c_scale) for one, unit in zip(federation, units, strict=True)]
    models = [fit_ridge(*mine) for mine in rows]
    shares = np.array(federation.counts) / sum(federation.counts)
    floor = np.empty(len(federation))
    for place, (client, (z, _)) in enumerate(zip(federation, rows, strict=True)):
        z = z[np.linspace(0, len(z) - 1, min(len(z), POINTS)).round().astype(int)]
        modelled = np.stack([model(z) for model in models])
        floor[place] = _relative(client, np.tensordot(shares, modelled, axes=1), modelled[place])
    moves = _moves(federation, units)
    unlike = np.array([_different(place, moves, settings.seed, blocks) for place in range(len(moves))])
    points = rows[0][0][:20]
    common = np.tensordot(shares, np.stack([model(points) for model in models]), axes=1)
    return Signals(floor, unlike, _decisions_apart(federation, common))


def _relative(client: Client, guess: np.ndarray, costs: np.ndarray) -> float:
    """The relative regret of deciding by the guess at these costs."""
    taken, best = (_decisions([client], values[None])[0] for values in (guess, costs))
    lost = client.sense * np.sum(costs * (taken - best))
    size = np.abs(np.sum(costs * best, axis=-1)).sum()
    return float(max(lost, 0.0) / size) if size > 0 else 0.0


def _decisions(clients: list[Client], costs: np.ndarray) -> np.ndarray:
    """w*(costs) of clients of one shape, for costs (clients, n, d)."""
    signs = np.array([client.sense for client in clients])[:, None, None]
    sets: FeasibleSet = stack([client.set for client in clients])
    with jax.enable_x64(True):
        return np.asarray(sets.solve(signs * costs))


def _decisions_apart(federation: Federation, costs: np.ndarray) -> np.ndarray:
    groups: dict[Any, list[int]] = {}
    for place, client in enumerate(federation):
        groups.setdefault(structure(client.set), []).append(place)
    taken = np.empty((len(federation), *costs.shape))
    for places in groups.values():
        members = [federation[place] for place in places]
        taken[places] = _decisions(members, np.broadcast_to(costs, (len(places), *costs.shape)))
    gaps = np.linalg.norm(taken[:, None] - taken[None], axis=-1).mean(axis=-1)
    others = gaps.sum(axis=1) / max(len(federation) - 1, 1)
    sizes = np.array([client.set.diameter().upper for client in federation])
    return np.where(sizes > 0, others / np.where(sizes > 0, sizes, 1), 0.0)


Moves = list[tuple[np.ndarray, np.ndarray]]
"""For each client how features and costs move around their means."""


def _moves(federation: Federation, units: list[Normaliser]) -> Moves:
    """Features and scaled costs around each client's own means, the features in units that all clients share.

    Own units would carry the error of the client's own spread into its slopes, and alike clients would look unlike.
    """
    spread = np.sqrt(np.average([unit.x_scale**2 for unit in units], axis=0, weights=federation.counts))
    return [
        ((one.x - unit.x_mean) / spread, (one.c - one.c.mean(axis=0)) / unit.c_scale)
        for one, unit in zip(federation, units, strict=True)
    ]


def _different(place: int, moves: Moves, seed: int, blocks: bool) -> float:
    """The share of relabellings under which linear models of the two groups differ at least as much as they do.

    Its own samples against a draw of the others'. In ``blocks`` whole weeks change label together, as neighbours are alike.
    """
    rng = np.random.default_rng([seed, place])
    x, c = moves[place]
    others, theirs = (np.concatenate(column) for column in zip(*(m for i, m in enumerate(moves) if i != place), strict=True))
    drawn = np.sort(rng.choice(len(others), min(len(others), REST * len(x)), replace=False))
    design, costs = np.concatenate([x, others[drawn]]), np.concatenate([c, theirs[drawn]])
    stretch = np.arange(len(design)) // (WEEK if blocks else 1)
    count = int(stretch[-1]) + 1
    own = round(count * len(x) / len(design))
    gram = design.T @ design / len(design)
    observed = _gap(design, costs, np.arange(len(design)) < len(x), gram)
    larger = sum(_gap(design, costs, (rng.permutation(count) < own)[stretch], gram) >= observed for _ in range(PERMUTATIONS))
    return (1 + larger) / (1 + PERMUTATIONS)


def _gap(design: np.ndarray, costs: np.ndarray, mine: np.ndarray, gram: np.ndarray) -> float:
    """The mean squared difference, over all samples, of the predictions of two linear models, each brought to size 1.

    A common factor on all prices does not matter to a client, and the error of its own scale must not look like a difference.
    """
    ridge = 1e-3 * np.eye(design.shape[1])
    slopes = []
    for group in (mine, ~mine):
        x = design[group]
        slope = np.linalg.solve(x.T @ x / len(x) + ridge, x.T @ costs[group] / len(x))
        slopes.append(slope / max(np.sqrt(np.sum(slope * (gram @ slope))), 1e-300))
    difference = slopes[0] - slopes[1]
    return float(np.sum(difference * (gram @ difference)))
