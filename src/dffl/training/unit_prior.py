"""What the units of a federation's members say of the units of a newcomer.

Means and scales of three samples are noise; those of the federation may be wrong for the newcomer. How far to trust each
follows from how much the members' units differ: credibility, as insurers use it (Bühlmann 1967). If they differ no more than
their samples explain, the newcomer takes the mean of the members' units. The more they differ, the fewer of its own samples
outweigh it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dffl.predictor import Normaliser
from dffl.training.settings import Settings

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
