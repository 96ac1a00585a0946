"""A federation in the units in which it trains: standardised features, scaled costs, a minimiser's sign.

Theory about a fit (its loss, the bound on a prediction, distances between clients) holds in these units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dffl.federation import Federation, optima
from dffl.sets import FeasibleSet
from dffl.theory.costmodel import CostFunction, cost_functions
from dffl.theory.geometry import Geometry
from dffl.theory.risk import mixture_weights
from dffl.theory.vectors import centred, norm
from dffl.training import Settings
from dffl.training.units import client_units, in_units


@dataclass(frozen=True, eq=False)
class ScaledClient:
    """One client in its own units."""

    name: str
    z: np.ndarray
    c: np.ndarray
    w_star: np.ndarray
    set: FeasibleSet
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

    def norms(self, c: np.ndarray) -> np.ndarray:
        """The norms of costs as the loss sees them: without their level where all decisions have one sum."""
        return norm(centred(c, self.geometry.flat))


@dataclass(frozen=True, eq=False)
class Scaled(Sequence[ScaledClient]):
    """All clients in their own units."""

    clients: tuple[ScaledClient, ...]
    exact: bool
    """Whether the costs at any features are known (synthetic and without noise) or estimated."""

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.clients[index]

    @property
    def shares(self) -> np.ndarray:
        """The mixture's weights n_j / N."""
        return mixture_weights([client.n for client in self.clients])


def scaled(federation: Federation, settings: Settings) -> Scaled:
    """The federation as training sees it."""
    units = client_units(federation, settings)
    functions, exact = cost_functions(federation, units)
    members = []
    for client, unit, costs, w_star in zip(federation, units, functions, optima(federation.clients), strict=True):
        z, c = in_units(client, unit)
        geometry, sign = Geometry.of(client.set), client.sense
        members.append(ScaledClient(client.name, z, c, w_star, client.set, sign, geometry, partial(_signed, costs, sign)))
    return Scaled(tuple(members), exact)


def _signed(costs: CostFunction, sign: int, z: np.ndarray) -> np.ndarray:
    return sign * costs(z)
