"""A client's costs given its features: known ones where the data are synthetic, a quick model of them elsewhere.

The model is a ridge regression on the features and on random ReLU units, its penalty chosen by leave-one-out error, which
a ridge has in closed form. It ignores decisions; it only describes how the costs move with the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dffl.federation import Client, Federation
from dffl.predictor import Normaliser
from dffl.training.ridge import ridges
from dffl.training.units import in_units

RELU_UNITS = 64
"""Random ReLU units in addition to the features themselves."""

CostFunction = Callable[[np.ndarray], np.ndarray]
"""From standardised features (..., p) to scaled costs (..., d)."""


@dataclass(frozen=True, eq=False)
class Ridge:
    """coefficients . [1, z, relu(directions z + offsets)]."""

    directions: np.ndarray
    offsets: np.ndarray
    coefficients: np.ndarray
    error: float
    """The leave-one-out mean squared error, over the variance of the costs."""

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return _design(z, self.directions, self.offsets) @ self.coefficients


def fit_ridge(z: np.ndarray, c: np.ndarray, units: int = RELU_UNITS) -> Ridge:
    """The ridge of standardised features z (n, p) against costs c (n, d)."""
    rng = np.random.default_rng(0)  # the same units for all clients, so that their models can be compared
    directions = rng.normal(size=(units, z.shape[1])) / np.sqrt(z.shape[1])
    offsets = rng.uniform(-1, 1, size=units)
    design = _design(z, directions, offsets)
    best = min(ridges(design[:, 1:], c), key=lambda one: np.mean(one.residuals**2))
    error, spread = float(np.mean(best.residuals**2)), float(np.mean((c - c.mean(axis=0)) ** 2))
    return Ridge(directions, offsets, best.coefficients, error / spread if spread > 0 else 0.0)


def _design(z: np.ndarray, directions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    hidden = np.maximum(z @ directions.T + offsets, 0)
    return np.concatenate([np.ones((*z.shape[:-1], 1)), z, hidden], axis=-1)


def fit_own_ridge(client: Client, unit: Normaliser) -> Ridge:
    """The ridge of a client's samples in its own units; costs keep their own sign."""
    z, c = in_units(client, unit)
    return fit_ridge(z, client.sense * c)


@dataclass(frozen=True, eq=False)
class InUnits:
    """A client's known costs, read in its own standardised features and scaled costs."""

    cost_at: CostFunction
    unit: Normaliser

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return self.cost_at(self.unit.x_mean + self.unit.x_scale * z) / self.unit.c_scale


def noise_free(client: Client) -> bool:
    """Whether a client's costs are a known function of its features, without noise."""
    if client.cost_at is None or client.c_mean is None:
        return False
    return client.c_mean is client.c or np.array_equal(client.c_mean, client.c)


def cost_functions(federation: Federation, units: Sequence[Normaliser]) -> tuple[list[CostFunction], bool]:
    """Each client's costs at any standardised features, and whether they are exact (known, noise-free) or estimated."""
    exact = all(noise_free(client) for client in federation)
    made: list[CostFunction] = []
    for client, unit in zip(federation, units, strict=True):
        if client.cost_at is not None:
            made.append(InUnits(client.cost_at, unit))
        else:
            made.append(fit_own_ridge(client, unit))
    return made, exact
