"""A client's samples in the units of training: standardised features, scaled costs, the sign of a minimiser.

For a newcomer, means and scales of three samples are noise, and those of the federation may be wrong. The weight of each
follows from how much the members' units differ (credibility, Bühlmann 1967). If they differ no more than their sample sizes
explain, the newcomer uses the mean of the members' units. The more they differ, the fewer of its own samples have more
weight. See `UnitPrior`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dffl.federation import Client, Federation, optima
from dffl.items import block, over_items
from dffl.predictor import Normaliser
from dffl.training.settings import Settings

LEAST_SMOOTHING = 1e-6
UNIT_FIELDS = ("x_mean", "x_scale", "c_scale")
"""The arrays of units, in messages and files."""


def client_units(federation: Federation, settings: Settings) -> list[Normaliser]:
    """The units of each client: those of its own samples, or those of all samples if the settings pool them."""
    units_of_clients = [settings.units(client.x, client.c) for client in federation]
    if not settings.pooled_units:
        return units_of_clients
    return [pooled(units_of_clients, federation.names, federation.counts, settings, federation.dim)] * len(units_of_clients)


def pooled(
    units: Sequence[Normaliser], names: Sequence[str], counts: Sequence[int], settings: Settings, dim: int
) -> Normaliser:
    """The units of all samples together, from each client's own units and its number of samples."""
    order = sorted(range(len(names)), key=lambda place: names[place])  # so that sums do not depend on the order of the clients
    return Normaliser.pool([units[k] for k in order], [counts[k] for k in order], dim if settings.forecast else 0)


def in_units(client: Client, unit: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """A client's features (n, p) and costs (n, d) in these units."""
    return unit.features(client.x), client.sense * client.c / unit.c_scale


def own_smoothing(client: Client, unit: Normaliser) -> float:
    """The default strength of smoothing: the mean norm of the costs over the largest norm of a decision.

    The authors of FedRSPO+ start from it, and also bound it from below.
    """
    _, costs = in_units(client, unit)
    reach = client.set.largest_norm()
    return max(float(np.linalg.norm(costs, axis=1).mean()) / (reach if reach > 0 else 1.0), LEAST_SMOOTHING)


def sample_table(federation: Federation, units: list[Normaliser], dtype: str) -> np.ndarray:
    """The samples of all clients in one table, one row per sample: features, costs, best decisions.

    A client whose objective has a known part has more costs and decisions; the others leave these places empty.
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


MEAN_ERROR, SCALE_ERROR = 1.0, 0.5
"""The variance of an estimated mean in units of the scale, and that of the logarithm of an estimated scale, both times the
number of samples, for normal samples.
"""


@dataclass(frozen=True)
class UnitPrior:
    """The members' units: their centre, and the number of samples of a newcomer that have the same weight. It can be compared
    and sent.
    """

    x_mean: tuple[float, ...]
    x_scale: tuple[float, ...]
    c_scale: float
    x_worth: tuple[float, ...]
    """For each feature; infinite if the members do not differ."""
    c_worth: float

    @classmethod
    def of(cls, units: Sequence[Normaliser], counts: Sequence[int]) -> UnitPrior:
        """From the members' units and numbers of samples."""
        means, scales = np.stack([unit.x_mean for unit in units]), np.stack([unit.x_scale for unit in units])
        sizes, noise = np.array([float(unit.c_scale) for unit in units]), float(np.mean(1 / np.asarray(counts)))
        centre, typical = means.mean(axis=0), np.sqrt((scales**2).mean(axis=0))
        both = MEAN_ERROR + SCALE_ERROR
        apart = _spread(means / typical) + _spread(np.log(scales))
        return cls(
            tuple(centre.tolist()),
            tuple(typical.tolist()),
            float(np.exp(np.log(sizes).mean())),
            tuple(_worth(both, apart - both * noise).tolist()),
            float(_worth(SCALE_ERROR, _spread(np.log(sizes)) - SCALE_ERROR * noise)),
        )

    def met_by(self, x: np.ndarray, c: np.ndarray, settings: Settings) -> Normaliser:
        """The units of a newcomer with these samples."""
        own_units, known_mean, known_scale = settings.units(x, c), np.array(self.x_mean), np.array(self.x_scale)
        share = len(x) / (len(x) + np.array(self.x_worth))
        mean = share * own_units.x_mean + (1 - share) * known_mean
        # A feature that is constant in a few samples does not show its spread.
        varies = np.ptp(x, axis=0) > 0
        if settings.item_features:
            layout = c.shape[1], settings.item_features, settings.forecast
            varies[block(x.shape[1], *layout)] = over_items(np.ptp, x, *layout) > 0
        variance = share * np.where(varies, own_units.x_scale, known_scale) ** 2 + (1 - share) * known_scale**2
        of_costs = len(x) / (len(x) + self.c_worth)
        size = of_costs * float(own_units.c_scale) + (1 - of_costs) * self.c_scale
        scale = np.sqrt(variance)
        if settings.forecast:  # forecasts of costs have the units of the costs
            mean[-c.shape[1] :], scale[-c.shape[1] :] = 0.0, size
        return Normaliser(mean, scale, np.asarray(size))


def _spread(values: np.ndarray) -> np.ndarray:
    """The variance between members; 0 for a single member."""
    return values.var(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def _worth(error: float, apart: np.ndarray) -> np.ndarray:
    """The weight of a centre in samples, if members differ by this variance and one sample has the variance ``error``."""
    apart = np.asarray(apart)
    return np.divide(error, apart, out=np.full(apart.shape, np.inf), where=apart > 0)
