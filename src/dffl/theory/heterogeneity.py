"""How different each pair of clients is at the same features: the loss-gap bounds with their parts.

From these follow upper bounds on Delta_j = sup over predictors of |R_j - R_mix|: the paper's proposition, a trivial one, and
that of an entropy set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np
import pandas as pd

from dffl.losses import spo_plus
from dffl.sets import EntropySimplex
from dffl.shapes import evenly_spaced
from dffl.theory.bounds import Ceilings, gap_between, printed_gap
from dffl.theory.dv import optimum
from dffl.theory.geometry import Pair
from dffl.theory.risk import BoundForm
from dffl.theory.scaled import Scaled, ScaledClient
from dffl.theory.vectors import centred, norm, times

POINTS = 200
"""Features, taken from all clients in turn, at which every pair is compared, at most."""
PARTS = ("best", "theorem1", "strongly_convex", "trivial", "dv", "objective_part", "constraint_part", "decision_part")


@dataclass(frozen=True, eq=False)
class Common:
    """What clients are compared on: standardised features, every client's costs there, and one shared prediction."""

    z: np.ndarray
    costs: np.ndarray
    """(clients, points, d), with a minimiser's sign; where an objective has a known part, with its cost behind them."""
    shared: np.ndarray
    """(points, d): the mixture's mean cost, clipped at tau: a shared prediction before any training. Without a sign."""


def common_points(clients: Scaled, tau: float, points: int = POINTS) -> Common:
    """Features of all clients in turn, and the costs that each of them has, or would have, there."""
    pooled = np.concatenate([client.z for client in clients])
    z = pooled[evenly_spaced(len(pooled), min(points, len(pooled)))]
    costs = np.stack([client.costs(z) for client in clients])
    senses = np.array([client.sense for client in clients])
    mean = np.tensordot(clients.shares * senses, costs[..., : clients.dim], axes=1)
    size = np.linalg.norm(mean, axis=-1, keepdims=True)
    return Common(z, costs, mean * np.minimum(1, tau / np.maximum(size, 1e-300)))


def pairwise(clients: Scaled, common: Common, form: BoundForm = "sharp") -> pd.DataFrame:
    """One row per pair: the mean over the points of each bound, of its parts, and of the gap itself.

    A pair of a client that minimises and one that maximises is left out: they read one prediction with opposite signs, and
    the theorem is about one sign.
    """
    losses = [_losses(client, common, place) for place, client in enumerate(clients)]
    ceilings = [
        Ceilings.of(client.seen(common.shared), common.costs[place], client.set, client.geometry)
        for place, client in enumerate(clients)
    ]
    rows = []
    for i, first in enumerate(clients):
        for j in range(i + 1, len(clients)):
            second = clients[j]
            if first.sense != second.sense:
                continue
            pair = Pair.of(first.set, second.set)
            at = first.seen(common.shared), common.costs[i], common.costs[j], pair
            bound = printed_gap(*at) if form == "paper" else gap_between(*at, ceilings[i], ceilings[j])
            gap = np.abs(losses[i] - losses[j]).mean()
            rows.append({"client": first.name, "other": second.name, "gap": gap} | {k: getattr(bound, k).mean() for k in PARTS})
    return pd.DataFrame(rows, columns=["client", "other", "gap", *PARTS])


def _losses(client: ScaledClient, common: Common, place: int) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(spo_plus(client.seen(common.shared), common.costs[place], client.set))


def matrix(pairs: pd.DataFrame, names: list[str], column: str) -> np.ndarray:
    """A column of `pairwise` as a symmetric matrix; zero on the diagonal, NaN where a pair was left out."""
    place = {name: number for number, name in enumerate(names)}
    out = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(out, 0.0)
    for client, other, value in zip(pairs["client"], pairs["other"], pairs[column], strict=True):
        out[place[client], place[other]] = out[place[other], place[client]] = value
    return out


def to_mixture(pairs: pd.DataFrame, clients: Scaled, column: str = "best") -> np.ndarray:
    """Each client's distance to the mixture: the sum over the others, weighted by n_i / N; NaN where a pair was left out."""
    return np.asarray(matrix(pairs, [client.name for client in clients], column) @ clients.shares)


def by_proposition(clients: Scaled, common: Common, tau: float, form: BoundForm = "sharp") -> np.ndarray:
    """sum over i != j of alpha_i E[max over |c_hat| <= tau of H_ij(c_hat)].

    The paper's sum runs over i = j as well, where H_jj = 2 |c_hat| D_j is not zero though R_j - R_j is: that term is left out.
    ``form="paper"`` leaves it in, and projects no costs.
    """
    m, printed = len(clients), form == "paper"
    bounds = np.diag([2 * tau * client.diameter if printed else 0.0 for client in clients])
    for i in range(m):
        for j in range(i + 1, m):
            first, second = clients[i], clients[j]
            bounds[i, j] = bounds[j, i] = (
                _worst(Pair.of(first.set, second.set), common.costs[i], common.costs[j], tau, printed)
                if first.sense == second.sense
                else max(first.diameter, second.diameter) * (np.max(norm(common.costs[[i, j]])) + 2 * tau)
            )
    return bounds @ clients.shares


def _worst(pair: Pair, a: np.ndarray, b: np.ndarray, tau: float, printed: bool) -> float:
    """The mean over the points of the largest H over predictions of norm tau at most."""
    flat = pair.flat and not printed
    a, b = centred(a, flat), centred(b, flat)
    gap = norm(a - b)
    first = times(gap, pair.first.diameter) + pair.delta * (2 * norm(b) + 2 * tau)
    second = times(gap, pair.second.diameter) + pair.delta * (2 * norm(a) + 2 * tau)
    return float(np.mean(2 * tau * (pair.delta + pair.diameter) + np.minimum(first, second)))


def by_largest_losses(largest: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """sum over i != j of alpha_i max(b_i, b_j): two numbers between 0 and b differ by no more."""
    pairs = np.maximum(largest[:, None], largest[None])
    np.fill_diagonal(pairs, 0.0)
    return np.asarray(pairs @ shares)


def entropy_loss(client: ScaledClient, tau: float) -> float:
    """What an entropy set loses at most on average, with predictions of norm tau: E[(range(c) + sqrt(2) tau)^2 / (2 b(c))].

    Infinite for other sets, and where the entropy constraint is slack.
    """
    if not isinstance(client.set, EntropySimplex):
        return math.inf
    b = optimum(client.c, client.set)[2]
    if not (b > 0).all():
        return math.inf
    span = np.ptp(client.c, axis=-1) + math.sqrt(2) * tau
    return float(np.mean(span**2 / (2 * b)))
