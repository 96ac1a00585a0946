"""What clients predict, and what deciding by it loses them."""

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
"""Names of clients in a line."""
POOR = 1e-6
"""A regret this far below zero, as a share of the largest costs, is no rounding error."""


def predicted(predictor: Predictor, x: np.ndarray, dim: int | None = None) -> np.ndarray:
    """A predictor's raw costs (..., dim) at raw features (..., p), in float64."""
    rows = x.reshape(-1, x.shape[-1])
    with jax.enable_x64(True):
        wide = jax.eval_shape(predictor, rows).shape[-1] if dim is None else dim
    return predict_each([predictor], [rows], wide)[0].reshape(*x.shape[:-1], wide)


def clipped_shares(predictors: Sequence[Predictor], features: Sequence[np.ndarray], dim: int) -> list[float]:
    """For each predictor the share of its networks' outputs at raw features (n, p) that are clipped at norm tau."""
    networks = [_networks(predictor) for predictor in predictors]
    flat = [network for own in networks for network in own]
    rows = [x for own, x in zip(networks, features, strict=True) for _ in own]
    at_clip = []
    for part in in_parts([len(x) * dim for x in rows]):
        for network, costs in zip(flat[part], predict_each(flat[part], rows[part], dim), strict=True):
            norms = np.linalg.norm(costs, axis=-1) / float(network.normaliser.c_scale)
            at_clip.append(float(np.mean(norms >= float(network.tau) * (1 - 1e-9))))
    shares = iter(at_clip)
    return [float(np.mean([next(shares) for _ in own])) if own else 0.0 for own in networks]


def _networks(predictor: Predictor) -> list[NetworkPredictor]:
    """The networks inside a predictor, each with its units and its clip."""
    leaves: list[Any] = jax.tree.leaves(predictor, is_leaf=lambda node: isinstance(node, NetworkPredictor))
    return [leaf for leaf in leaves if isinstance(leaf, NetworkPredictor)]


def regrets_at(client: Client, costs: Any) -> np.ndarray:
    """What each sample of a client loses by deciding at these costs instead of its own."""
    return regrets_at_each([client], [costs])[0]


def regrets_at_each(clients: Sequence[Client], costs: Sequence[Any]) -> list[np.ndarray]:
    """`regrets_at` for many clients, each at its own costs; those with one kind of set are solved for together."""
    whole = [np.broadcast_to(c, client.c.shape) for client, c in zip(clients, costs, strict=True)]
    guesses = [client.sense * client.completed(c) for client, c in zip(clients, whole, strict=True)]
    own = [client.sense * client.completed(client.c) for client in clients]
    with host_errors((client.name, client.oracle, guess) for client, guess in zip(clients, guesses, strict=True)):
        return regret_each([client.oracle for client in clients], guesses, own, optima(clients))


def regrets_under(predictors: Sequence[Predictor], clients: Sequence[Client]) -> list[np.ndarray]:
    """What each sample of each client loses by deciding as its own predictor says."""
    optima(clients)  # all at once, not part by part
    found = []
    for part in in_parts([client.c.size for client in clients]):
        some = clients[part]
        costs = predict_each(predictors[part], [client.x for client in some], some[0].set.dim)
        found += regrets_at_each(some, costs)
    return found


def judged(lost: np.ndarray, client: Client) -> dict[str, float]:
    """What a client's regrets come to: ``regret`` (mean), ``relative_regret`` (of the sum of |z*|), ``mean_ratio``."""
    best = client.z_star_size
    _warn_of_a_poor_solver(lost, best, client)
    numbers = {"regret": lost.mean(), "relative_regret": share(lost.sum(), best.sum()), "mean_ratio": share(lost, best).mean()}
    return {name: float(number) for name, number in numbers.items()}


def _warn_of_a_poor_solver(lost: np.ndarray, best: np.ndarray, client: Client) -> None:
    """Say so where a user's function is refuted: one of its answers costs less than the one that it called the best."""
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
    """What is lost, as a share of the best that could be had; nothing lost of nothing is 0."""
    some = np.asarray(best) > 0
    return np.where(some, lost / np.where(some, best, 1.0), np.where(np.asarray(lost) > 0, np.inf, 0.0))


def left_out_words(names: Sequence[str]) -> str:
    """Which clients are in no mean of relative regrets, and why."""
    zero = "their best possible objective is zero, so their relative regret is infinite"
    return f"Left out of these means: {listed(names, SHOWN)}; {zero}."
