"""A federation in the units in which it trains: standardised features, scaled costs, a minimiser's sign.

Theory about a fit (its loss, the bound on a prediction, distances between clients) holds in these units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dffl.federation import Federation, optima
from dffl.sets import FeasibleSet, Lifted
from dffl.sets.padded import Padded
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
        sign, one = client.sense, client.sense / float(unit.c_scale)
        s = client.oracle
        if isinstance(s, Lifted):  # measured so that its cost is 1 for every client
            s = Lifted(client.set, one)  # type: ignore[arg-type]
            w_star = np.column_stack([w_star[:, : federation.dim], one * w_star[:, federation.dim :].sum(axis=1)])
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
