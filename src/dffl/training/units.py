"""A client's samples in the units in which it trains: standardised features, scaled costs, a minimiser's sign.

For a newcomer, means and scales of three samples are noise; those of the federation may be wrong for it. How far to trust
each follows from how much the members' units differ: credibility, as insurers use it (Bühlmann 1967). If they differ no more
than their samples explain, the newcomer takes the mean of the members' units. The more they differ, the fewer of its own
samples outweigh it. See `UnitPrior`.
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
"""What units consist of, where they are sent or saved."""


def client_units(federation: Federation, settings: Settings) -> list[Normaliser]:
    """The units that each client trains in: those of its own samples, or those of all samples if the settings pool them."""
    own = [settings.units(client.x, client.c) for client in federation]
    if not settings.pooled_units:
        return own
    return [pooled(own, federation.names, federation.counts, settings, federation.dim)] * len(own)


def pooled(own: Sequence[Normaliser], names: Sequence[str], counts: Sequence[int], settings: Settings, dim: int) -> Normaliser:
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


MEAN_ERROR, SCALE_ERROR = 1.0, 0.5
"""The variance of an estimated mean, in units of the scale, and of the logarithm of an estimated scale, times the number of
samples: of normal samples."""


@dataclass(frozen=True)
class UnitPrior:
    """The members' units: their centre, and how many samples of a newcomer it is worth. It can be compared and sent."""

    x_mean: tuple[float, ...]
    x_scale: tuple[float, ...]
    c_scale: float
    x_worth: tuple[float, ...]
    """For each feature; infinite if members do not differ."""
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
        own, known_mean, known_scale = settings.units(x, c), np.array(self.x_mean), np.array(self.x_scale)
        share = len(x) / (len(x) + np.array(self.x_worth))
        mean = share * own.x_mean + (1 - share) * known_mean
        # A feature that is constant in a few samples says nothing of its spread.
        varies = np.ptp(x, axis=0) > 0
        if settings.item_features:
            layout = c.shape[1], settings.item_features, settings.forecast
            varies[block(x.shape[1], *layout)] = over_items(np.ptp, x, *layout) > 0
        variance = share * np.where(varies, own.x_scale, known_scale) ** 2 + (1 - share) * known_scale**2
        of_costs = len(x) / (len(x) + self.c_worth)
        size = of_costs * float(own.c_scale) + (1 - of_costs) * self.c_scale
        scale = np.sqrt(variance)
        if settings.forecast:  # forecasts of costs keep to the units of the costs
            mean[-c.shape[1] :], scale[-c.shape[1] :] = 0.0, size
        return Normaliser(mean, scale, np.asarray(size))


def _spread(values: np.ndarray) -> np.ndarray:
    """The variance between members; one member shows none."""
    return values.var(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def _worth(error: float, apart: np.ndarray) -> np.ndarray:
    """How many samples a centre is worth, if members lie apart by this variance and one sample errs by that of ``error``."""
    apart = np.asarray(apart)
    return np.divide(error, apart, out=np.full(apart.shape, np.inf), where=apart > 0)
