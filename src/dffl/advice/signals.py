"""Why federating helps a client or not: signals that need no training, from closed-form models of the costs.

They explain; the decision itself rests on held-out regrets (`gains`).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from dffl.advice.likeness import likeness
from dffl.federation import Client, Federation, places_by
from dffl.sets import FeasibleSet, stack
from dffl.sets.base import structure
from dffl.theory.costmodel import fit_ridge, in_own_units
from dffl.training import Settings

POINTS = 200
"""Samples of a client at which the floor is measured, at most."""
FEW_POINTS = 3
"""Samples of each client at which decisions are compared."""


@dataclass(frozen=True, eq=False)
class Signals:
    """One entry a client."""

    floor: np.ndarray
    """The relative regret of deciding by the mean of all clients' modelled costs: what unlike prices cost, roughly."""
    unlike: np.ndarray
    """The p-value of a test that the client's costs move with its features as the others' do (see `likeness`)."""
    apart: np.ndarray
    """How far its decisions lie from the others' at the same costs, in diameters of its set: what its constraint does."""


def signals(federation: Federation, settings: Settings, blocks: bool = False) -> Signals:
    """The three signals for every client, in standardised features and scaled costs."""
    units, rows = in_own_units(federation, settings)
    models = [fit_ridge(*mine) for mine in rows]
    shares = np.array(federation.counts) / sum(federation.counts)
    floor = np.empty(len(federation))
    for place, (client, (z, _)) in enumerate(zip(federation, rows, strict=True)):
        z = z[np.linspace(0, len(z) - 1, min(len(z), POINTS)).round().astype(int)]
        modelled = np.stack([model(z) for model in models])
        floor[place] = _relative(client, np.tensordot(shares, modelled, axes=1), modelled[place])
    points = np.concatenate([z[np.linspace(0, len(z) - 1, min(len(z), FEW_POINTS)).round().astype(int)] for z, _ in rows])
    common = np.tensordot(shares, np.stack([model(points) for model in models]), axes=1)
    return Signals(floor, likeness(federation, units, settings.seed, blocks), _decisions_apart(federation, common))


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
    taken = np.empty((len(federation), *costs.shape))
    for places in places_by(structure(client.set) for client in federation):
        members = [federation[place] for place in places]
        taken[places] = _decisions(members, np.broadcast_to(costs, (len(places), *costs.shape)))
    gaps = np.linalg.norm(taken[:, None] - taken[None], axis=-1).mean(axis=-1)
    others = gaps.sum(axis=1) / max(len(federation) - 1, 1)
    sizes = np.array([client.set.diameter().upper for client in federation])
    return np.where(sizes > 0, others / np.where(sizes > 0, sizes, 1), 0.0)
