"""A client's samples in the units in which it trains: standardised features, scaled costs, a minimiser's sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl.federation import Client, Federation, optima
from dffl.predictor import Normaliser
from dffl.training.settings import Settings

LEAST_SMOOTHING = 1e-6
UNIT_FIELDS = ("x_mean", "x_scale", "c_scale")
"""What units consist of, where they are sent or saved."""


def client_units(federation: Federation, settings: Settings) -> list[Normaliser]:
    """The units that each client trains in: those of its own samples, or those of all samples if the settings pool them."""
    own = [settings.units(client.x, client.c) for client in federation]
    if not settings.pooled_units:
        return own
    return [pooled(own, federation.names, federation.counts, settings, federation.dim)] * len(own)


def pooled(own: list[Normaliser], names: Sequence[str], counts: Sequence[int], settings: Settings, dim: int) -> Normaliser:
    """The units of all samples together, from each client's own units and its number of samples."""
    order = sorted(range(len(names)), key=lambda place: names[place])  # sums do not depend on the order of the clients
    return Normaliser.pool([own[k] for k in order], [counts[k] for k in order], dim if settings.forecast else 0)


def in_units(client: Client, unit: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """A client's features (n, p) and costs (n, d) in these units."""
    return unit.features(client.x), client.sense * client.c / unit.c_scale


def own_smoothing(client: Client, unit: Normaliser) -> float:
    """How much a loss that smooths does so by default: the mean norm of the costs over the largest norm of a decision.

    The authors of FedRSPO+ start there, and also bound it from below.
    """
    _, costs = in_units(client, unit)
    reach = client.set.largest_norm()
    return max(float(np.linalg.norm(costs, axis=1).mean()) / (reach if reach > 0 else 1.0), LEAST_SMOOTHING)


def sample_table(federation: Federation, units: list[Normaliser], dtype: str) -> np.ndarray:
    """Every client's samples, below each other, one row per sample: features, costs, best decisions.

    A client whose objective has a known part has more costs and decisions than the others, which leave the places empty.
    """
    p, width = federation.features, max(client.oracle.dim for client in federation)
    table = np.zeros((sum(federation.counts), p + 2 * width), dtype)
    start = 0
    for client, unit, w_star in zip(federation, units, optima(federation.clients), strict=True):
        mine, d = table[start : start + client.n], client.oracle.dim
        mine[:, :p] = unit.features(client.x)
        mine[:, p : p + d] = client.sense * client.completed(client.c / unit.c_scale, float(unit.c_scale))
        mine[:, p + width : p + width + d] = w_star
        start += client.n
    return table
