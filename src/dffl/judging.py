"""The predictions of clients, and the regret of deciding by them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dffl.batched import in_parts, predict_each, regret_each
from dffl.federation import Client, optima
from dffl.named import listed
from dffl.predictor import NetworkPredictor, Predictor
from dffl.sets import Solver
from dffl.sets._errors import host_errors

SHOWN = 5
"""The most names of clients in a line."""
POOR = 1e-6
"""A regret below zero by more than this share of the largest costs is not a rounding error."""


def predicted(predictor: Predictor, x: np.ndarray, dim: int | None = None) -> np.ndarray:
    """A predictor's raw costs (..., dim) at raw features (..., p), in float64."""
    rows = x.reshape(-1, x.shape[-1])
    with jax.enable_x64(True):
        wide = jax.eval_shape(predictor, rows).shape[-1] if dim is None else dim
    return predict_each([predictor], [rows], wide)[0].reshape(*x.shape[:-1], wide)


def clipped_shares(predictors: Sequence[Predictor], features: Sequence[np.ndarray], dim: int) -> list[float]:
    """For each predictor the share of its networks' outputs at raw features (n, p) that are clipped at norm tau."""
    networks = [_networks(predictor) for predictor in predictors]
    flat = [network for group in networks for network in group]
    rows = [x for group, x in zip(networks, features, strict=True) for _ in group]
    at_clip = []
    for part in in_parts([len(x) * dim for x in rows]):
        for network, costs in zip(flat[part], predict_each(flat[part], rows[part], dim), strict=True):
            norms = np.linalg.norm(costs, axis=-1) / float(network.normaliser.c_scale)
            at_clip.append(float(np.mean(norms >= float(network.tau) * (1 - 1e-9))))
    shares = iter(at_clip)
    return [float(np.mean([next(shares) for _ in group])) if group else 0.0 for group in networks]


def _networks(predictor: Predictor) -> list[NetworkPredictor]:
    """The networks inside a predictor, each with its units and its clip."""
    leaves: list[Any] = jax.tree.leaves(predictor, is_leaf=lambda node: isinstance(node, NetworkPredictor))
    return [leaf for leaf in leaves if isinstance(leaf, NetworkPredictor)]


def regrets_at(client: Client, costs: Any) -> np.ndarray:
    """The loss of each sample of a client that decides by these costs instead of its own."""
    return regrets_at_each([client], [costs])[0]


def regrets_at_each(clients: Sequence[Client], costs: Sequence[Any]) -> list[np.ndarray]:
    """`regrets_at` for many clients, each with its own costs; those with one kind of set are solved together."""
    tables = [np.broadcast_to(c, client.c.shape) for client, c in zip(clients, costs, strict=True)]
    guesses = [client.sense * client.completed(c) for client, c in zip(clients, tables, strict=True)]
    true_costs = [client.sense * client.completed(client.c) for client in clients]
    with host_errors((client.name, client.oracle, guess) for client, guess in zip(clients, guesses, strict=True)):
        return regret_each([client.oracle for client in clients], guesses, true_costs, optima(clients))


def regrets_under(predictors: Sequence[Predictor], clients: Sequence[Client]) -> list[np.ndarray]:
    """The loss of each sample of each client that decides by its own predictor."""
    optima(clients)  # all clients at once, not part by part
    regrets = []
    for part in in_parts([client.c.size for client in clients]):
        some = clients[part]
        costs = predict_each(predictors[part], [client.x for client in some], some[0].set.dim)
        regrets += regrets_at_each(some, costs)
    return regrets


def judged(lost: np.ndarray, client: Client) -> dict[str, float]:
    """A summary of a client's regrets: ``regret`` (mean), ``relative_regret`` (of the sum of |z*|), ``mean_ratio``."""
    best = client.z_star_size
    _warn_of_a_poor_solver(lost, best, client)
    numbers = {"regret": lost.mean(), "relative_regret": share(lost.sum(), best.sum()), "mean_ratio": share(lost, best).mean()}
    return {name: float(number) for name, number in numbers.items()}


def _warn_of_a_poor_solver(lost: np.ndarray, best: np.ndarray, client: Client) -> None:
    """Warn if a user's function is refuted: one of its answers costs less than the one that it called the best."""
    if not isinstance(client.set, Solver):
        return
    below = lost < -POOR * max(float(best.max(initial=0.0)), float(np.abs(client.c).max(initial=0.0)))
    if below.any():
        what = (
            f"at {below.sum()} of {len(lost)} samples another of its answers costs less than the one that it gives as the best"
        )
        fix = "set the gap of its solver to 0, or correct it; regrets are too small"
        warnings.warn(f"client {client.name!r}: solver {client.set.name!r}: {what}; {fix}", stacklevel=3)


def share(lost: Any, best: Any) -> np.ndarray:
    """The loss as a share of the best possible value; 0 of 0 is 0."""
    some = np.asarray(best) > 0
    return np.where(some, lost / np.where(some, best, 1.0), np.where(np.asarray(lost) > 0, np.inf, 0.0))


def left_out_words(names: Sequence[str]) -> str:
    """The clients that are left out of means of relative regrets, and the reason."""
    zero = "their best possible objective is zero, so their relative regret is infinite"
    return f"Left out of these means: {listed(names, SHOWN)}; {zero}."
