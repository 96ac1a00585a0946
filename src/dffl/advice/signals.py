"""Why federating helps a client or not: signals that need no training, from closed-form models of the costs.

They only explain; the advice is based on held-out regrets (`gains`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dffl.advice.likeness import cost_p_values
from dffl.batched import solve_each
from dffl.federation import Client, Federation
from dffl.predictor import Normaliser
from dffl.shapes import evenly_spaced
from dffl.theory.scaled import fit_own_ridge
from dffl.training import Settings
from dffl.training.units import client_units

POINTS = 200
"""The most samples of a client for the regret of the pooled costs."""
FEW_POINTS = 3
"""The number of samples of each client for the comparison of decisions."""


@dataclass(frozen=True, eq=False)
class Signals:
    """One entry per client."""

    pooled_cost_regret: np.ndarray
    """The relative regret of deciding by the mean of all clients' modelled costs: about the loss due to different prices."""
    cost_p_value: np.ndarray
    """The p-value of a test that the client's costs depend on its features as the others' do (see `likeness`)."""
    decision_distance: np.ndarray
    """The distance of its decisions from the others' at the same costs, in diameters of its set: the effect of its constraint.
    """


def signals(federation: Federation, settings: Settings, blocks: bool = False) -> Signals:
    """The three signals for every client, in standardised features and scaled costs."""
    units = client_units(federation, settings)
    models = [fit_own_ridge(client, unit) for client, unit in zip(federation, units, strict=True)]
    features = [unit.features(client.x) for client, unit in zip(federation, units, strict=True)]
    shares = np.array(federation.counts) / sum(federation.counts)
    pooled = np.empty(len(federation))
    for place, (client, z) in enumerate(zip(federation, features, strict=True)):
        modelled = np.stack([model(_some(z, POINTS)) for model in models])
        pooled[place] = _relative(client, units[place], np.tensordot(shares, modelled, axes=1), modelled[place])
    points = np.concatenate([_some(z, FEW_POINTS) for z in features])
    common = np.tensordot(shares, np.stack([model(points) for model in models]), axes=1)
    distances = _decision_distances(federation, units, common)
    return Signals(pooled, cost_p_values(federation, units, settings.seed, blocks), distances)


def _some(z: np.ndarray, most: int) -> np.ndarray:
    return z[evenly_spaced(len(z), min(len(z), most))]


def _relative(client: Client, unit: Normaliser, guess: np.ndarray, costs: np.ndarray) -> float:
    """The relative regret of deciding by the guess at these costs, both in the client's units."""
    guess, costs = client.completed(guess, float(unit.c_scale)), client.completed(costs, float(unit.c_scale))
    taken, best = solve_each([client.oracle] * 2, [client.sense * guess, client.sense * costs])
    lost = client.sense * np.sum(costs * (taken - best))
    size = np.abs(np.sum(costs * best, axis=-1)).sum()
    return float(max(lost, 0.0) / size) if size > 0 else 0.0


def _decision_distances(federation: Federation, units: list[Normaliser], costs: np.ndarray) -> np.ndarray:
    asked = [
        client.sense * client.completed(costs, float(unit.c_scale)) for client, unit in zip(federation, units, strict=True)
    ]
    answers = solve_each([client.oracle for client in federation], asked)
    taken = np.stack([decisions[:, : federation.dim] for decisions in answers])
    gaps = np.linalg.norm(taken[:, None] - taken[None], axis=-1).mean(axis=-1)
    others = gaps.sum(axis=1) / max(len(federation) - 1, 1)
    sizes = np.array([client.set.extent() for client in federation])
    return np.where(sizes > 0, others / np.where(sizes > 0, sizes, 1), 0.0)
