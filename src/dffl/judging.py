"""What clients predict, and what deciding by it loses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dffl.federation import Client, keep_optima
from dffl.predictor import Predictor
from dffl.together import in_parts, predict_each, regret_each


def predicted(predictor: Predictor, x: np.ndarray, dim: int | None = None) -> np.ndarray:
    """A predictor's raw costs (..., dim) at raw features (..., p), in float64."""
    rows = x.reshape(-1, x.shape[-1])
    with jax.enable_x64(True):
        wide = jax.eval_shape(predictor, rows).shape[-1] if dim is None else dim
    return predict_each([predictor], [rows], wide)[0].reshape(*x.shape[:-1], wide)


def regrets_at(client: Client, costs: Any) -> np.ndarray:
    """What each sample of a client loses by deciding at these costs instead of its own."""
    return regrets_at_each([client], [costs])[0]


def regrets_at_each(clients: Sequence[Client], costs: Sequence[Any]) -> list[np.ndarray]:
    """`regrets_at` for many clients, each at its own costs; those with one kind of set are solved for together."""
    keep_optima(clients)
    guesses = [client.sense * np.broadcast_to(c, client.c.shape) for client, c in zip(clients, costs, strict=True)]
    own, optima = [client.sense * client.c for client in clients], [client.w_star for client in clients]
    return regret_each([client.set for client in clients], guesses, own, optima)


def regrets_under(predictors: Sequence[Predictor], clients: Sequence[Client]) -> list[np.ndarray]:
    """What each sample of each client loses by deciding as its own predictor says."""
    keep_optima(clients)
    found = []
    for part in in_parts([client.c.size for client in clients]):
        some = clients[part]
        costs = predict_each(predictors[part], [client.x for client in some], some[0].set.dim)
        found += regrets_at_each(some, costs)
    return found


def relative(lost: np.ndarray, client: Client) -> float:
    """The sum of regrets over the sum of |z*|; nothing lost of nothing is 0."""
    total, best = float(lost.sum()), float(client.z_star_size.sum())
    return total / best if best > 0 else (np.inf if total > 0 else 0.0)
