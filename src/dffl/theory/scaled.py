"""A federation in the units in which it trains: standardised features, scaled costs, a minimiser's sign.

Theory about a fit (its loss, the bound on a prediction, distances between clients) holds in these units.

A client's costs given its features are known where the data are synthetic; elsewhere there is a quick model of them: a ridge
regression on the features and on random ReLU units, its penalty chosen by leave-one-out error, which a ridge has in closed
form. It ignores decisions; it only describes how the costs move with the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dffl.federation import Client, Federation, optima
from dffl.predictor import Normaliser
from dffl.sets import FeasibleSet, Lifted
from dffl.sets.padded import Padded
from dffl.theory.geometry import Geometry
from dffl.theory.risk import mixture_weights
from dffl.theory.vectors import centred, norm
from dffl.training import Settings
from dffl.training.ridge import ridges
from dffl.training.units import client_units, in_units

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
    best = min(ridges(design[:, 1:], c), key=lambda ridge: np.mean(ridge.residuals**2))
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
    functions: list[CostFunction] = []
    for client, unit in zip(federation, units, strict=True):
        if client.cost_at is not None:
            functions.append(InUnits(client.cost_at, unit))
        else:
            functions.append(fit_own_ridge(client, unit))
    return functions, exact


@dataclass(frozen=True, eq=False)
class ScaledClient:
    """One client in its own units."""

    name: str
    z: np.ndarray
    c: np.ndarray
    w_star: np.ndarray
    set: FeasibleSet
    """Where some client's objective has a known part, every set has one more coordinate for it (see `Lifted`), of cost 1."""
    sense: int
    geometry: Geometry
    costs: CostFunction
    """Its costs, with a minimiser's sign, at any standardised features: known or estimated."""

    @property
    def n(self) -> int:
        return len(self.z)

    @property
    def diameter(self) -> float:
        """The upper end of the bracket."""
        return self.geometry.diameter

    def seen(self, predicted: np.ndarray) -> np.ndarray:
        """A shared prediction (..., d) as this client's loss sees it: with its sign, and the known cost behind it."""
        return _completed(self.sense * predicted, self.c.shape[1])

    def norms(self, c: np.ndarray) -> np.ndarray:
        """The norms of costs as the loss sees them: without their level where all decisions have one sum."""
        return norm(centred(c, self.geometry.flat))


@dataclass(frozen=True, eq=False)
class Scaled(Sequence[ScaledClient]):
    """All clients in their own units."""

    clients: tuple[ScaledClient, ...]
    dim: int
    """The number of predicted costs d."""
    exact: bool
    """Whether the costs at any features are known (synthetic and without noise) or estimated."""

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.clients[index]

    @property
    def hulls(self) -> tuple[str, ...]:
        """The clients whose sets are not convex: what is said of them is of their convex hulls."""
        return tuple(client.name for client in self.clients if not client.set.convex)

    def reach(self, tau: float) -> float:
        """The largest norm of a prediction that is clipped at tau, with the known cost."""
        return tau if self.clients[0].c.shape[1] == self.dim else math.hypot(tau, 1.0)

    @property
    def shares(self) -> np.ndarray:
        """The mixture's weights n_j / N."""
        return mixture_weights([client.n for client in self.clients])


def scaled(federation: Federation, settings: Settings) -> Scaled:
    """The federation as training sees it."""
    units = client_units(federation, settings)
    functions, exact = cost_functions(federation, units)
    members = []
    width = federation.dim + any(isinstance(client.oracle, Lifted) for client in federation)
    for client, unit, costs, w_star in zip(federation, units, functions, optima(federation.clients), strict=True):
        z, c = in_units(client, unit)
        sign, scale = client.sense, client.sense / float(unit.c_scale)
        s = client.oracle
        if isinstance(s, Lifted):  # measured so that its cost is 1 for every client
            s = Lifted(client.set, scale)  # type: ignore[arg-type]
            w_star = np.column_stack([w_star[:, : federation.dim], scale * w_star[:, federation.dim :].sum(axis=1)])
        elif s.dim < width:
            s, w_star = Padded(s), _completed(w_star, width, 0.0)
        signed, geometry = partial(_signed, costs, sign, width), Geometry.of(s)
        members.append(ScaledClient(client.name, z, _completed(c, width), w_star, s, sign, geometry, signed))
    return Scaled(tuple(members), federation.dim, exact)


def _signed(costs: CostFunction, sign: int, width: int, z: np.ndarray) -> np.ndarray:
    return _completed(sign * costs(z), width)


def _completed(c: np.ndarray, width: int, known: float = 1.0) -> np.ndarray:
    """Vectors with one more entry, where the federation has it."""
    more = np.full((*c.shape[:-1], width - c.shape[-1]), known)
    return np.concatenate([c, more], axis=-1) if more.size else c
