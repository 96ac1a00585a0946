"""Upper bounds on Delta_j = sup over predictors of |R_j - R_mix|: the paper's proposition, a trivial one, the entropy set's."""

from __future__ import annotations

import math

import numpy as np

from dffl.sets import EntropySimplex
from dffl.theory.dv import optimum
from dffl.theory.geometry import Pair
from dffl.theory.heterogeneity import Common
from dffl.theory.risk import BoundForm
from dffl.theory.scaled import Scaled, ScaledClient
from dffl.theory.vectors import centred, norm, times


def by_proposition(clients: Scaled, common: Common, tau: float, form: BoundForm = "sharp") -> np.ndarray:
    """sum over i != j of alpha_i E[max over |c_hat| <= tau of H_ij(c_hat)].

    The paper's sum runs over i = j as well, where H_jj = 2 |c_hat| D_j is not zero though R_j - R_j is: that term is left out.
    ``form="paper"`` leaves it in, and projects no costs.
    """
    m, printed = len(clients), form == "paper"
    bounds = np.diag([2 * tau * client.diameter if printed else 0.0 for client in clients])
    for i in range(m):
        for j in range(i + 1, m):
            one, other = clients[i], clients[j]
            bounds[i, j] = bounds[j, i] = (
                _worst(Pair.of(one.set, other.set), common.costs[i], common.costs[j], tau, printed)
                if one.sense == other.sense
                else max(one.diameter, other.diameter) * (np.max(norm(common.costs[[i, j]])) + 2 * tau)
            )
    return bounds @ clients.shares


def _worst(pair: Pair, a: np.ndarray, b: np.ndarray, tau: float, printed: bool) -> float:
    """The mean over the points of the largest H over predictions of norm tau at most."""
    flat = pair.flat and not printed
    a, b = centred(a, flat), centred(b, flat)
    gap = norm(a - b)
    one = times(gap, pair.first.diameter) + pair.delta * (2 * norm(b) + 2 * tau)
    two = times(gap, pair.second.diameter) + pair.delta * (2 * norm(a) + 2 * tau)
    return float(np.mean(2 * tau * (pair.delta + pair.diameter) + np.minimum(one, two)))


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
