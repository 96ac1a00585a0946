"""The paper's definitions as functions: the support function, the risks R_j and R_mix, and the norms C_min and C_max.

A risk is the mean over the samples that a client has. On fresh samples it estimates the population risk; on training
samples it is the empirical risk, which the paper writes with a hat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from numpy.typing import ArrayLike

from dffl.batched import solve_each
from dffl.federation import Client, Federation, limits_met, optima, oracles
from dffl.fitting import Fit
from dffl.judging import predicted
from dffl.predictor import Predictor
from dffl.sets import FeasibleSet
from dffl.sets._errors import host_errors
from dffl.theory.geometry import Geometry
from dffl.theory.risk import mixture_weights
from dffl.theory.vectors import centred, dot, norm, vectors

Model: TypeAlias = Fit | Predictor | Callable[[np.ndarray], ArrayLike]
"""What predicts: a fit (each client by its own model), one predictor for all, or a function from features (n, p) to costs
(n, d)."""
RiskLoss = Literal["spo+", "regret"]
"""The loss whose mean is the risk: SPO+, as R_j of section 5, or the regret, as the appendix's SPO risk."""


def support(u: ArrayLike, s: FeasibleSet) -> np.ndarray:
    """xi_S(u), the maximum of u . w over the set, for directions of shape (..., d): u . w*(-u) by the set's own oracle.

    In float64. For a set of whole numbers it is the support function of its convex hull, too: both have one maximum.
    """
    u = vectors("support", "u", u, s)
    with jax.enable_x64(True), host_errors():
        return np.asarray(s.support(u))


def client_risk(model: Model, client: Client, loss: RiskLoss = "spo+") -> float:
    """R_j(g): the mean loss of a model's predictions at a client's samples, on the client's set, in the units of its costs.

    A `Fit` predicts for the client by its name, as `Fit.predict` does; a client that took no part gets the shared model.
    """
    return float(client_risks(model, [client], loss)[0])


def mixture_risk(
    model: Model, clients: Federation | Sequence[Client], weights: ArrayLike | None = None, loss: RiskLoss = "spo+"
) -> float:
    """R_mix(g) = sum_j alpha_j R_j(g), with alpha_j = n_j / N unless ``weights`` are given.

    Risks are added in the units of each client's costs: give clients one unit, or weights that divide by each client's.
    """
    members = _members(clients)
    shares = mixture_weights([client.n for client in members]) if weights is None else np.asarray(weights, float)
    if shares.shape != (len(members),) or not (np.isfinite(shares).all() and (shares >= 0).all()):
        raise ValueError(f"mixture_risk: weights must be {len(members)} numbers >= 0, one per client, found {weights!r:.80}")
    return float(shares @ client_risks(model, members, loss))


def client_risks(model: Model, clients: Federation | Sequence[Client], loss: RiskLoss = "spo+") -> np.ndarray:
    """R_j(g) of every client, in their order; those with one kind of set are solved for together."""
    if loss not in ("spo+", "regret"):
        raise ValueError(f"client_risks: loss must be 'spo+' or 'regret', found {loss!r}")
    members = _members(clients)
    guesses = [client.sense * client.completed(_costs(model, client)) for client in members]
    costs = [client.sense * client.completed(client.c) for client in members]
    # SPO+ is the loss of w*(c) at the cost 2 c_hat - c against the best decision there; regret is that of w*(c_hat) at c.
    asked = [2 * g - c if loss == "spo+" else g for g, c in zip(guesses, costs, strict=True)]
    whose = [(client.name, client.oracle, rows) for client, rows in zip(members, asked, strict=True)]
    with limits_met(oracles(members), "solves of risks"), host_errors(whose):
        best, replies = optima(members), solve_each([client.oracle for client in members], asked)
    priced = zip(asked, best, replies, strict=True) if loss == "spo+" else zip(costs, replies, best, strict=True)
    return np.array([float(np.mean(dot(at, worse - better))) for at, worse, better in priced])


class CostNorms(NamedTuple):
    """C_min and C_max of the paper's Assumption 3: the least and the largest norm of a cost vector."""

    least: float
    largest: float


def cost_norms(c: ArrayLike, s: FeasibleSet) -> CostNorms:
    """C_min and C_max of these costs (..., d), as the losses of this set see them.

    On a set inside {1 . w = const} they are the norms of P c = c - mean(c). C_max enters the largest loss (`risk.loss_bound`),
    C_min every statement that divides by a cost's norm (`lemmas.cost_stability`, `risk.mse_bound`). A sample shows the two
    norms of the sample; those of a distribution have to be known.
    """
    sizes = norm(centred(vectors("cost_norms", "c", c, s), Geometry.of(s).flat))
    if not sizes.size:
        raise ValueError(f"cost_norms: c must have at least one cost vector, found shape {np.shape(c)}")
    return CostNorms(float(sizes.min()), float(sizes.max()))


def _members(clients: Federation | Sequence[Client]) -> list[Client]:
    members = list(clients)
    for member in members:
        if not isinstance(member, Client):
            raise ValueError(f"risks are of dffl.Client or dffl.Federation, found {type(member).__name__}")
    if not members:
        raise ValueError("risks are of at least one client, found none")
    return members


def _costs(model: Model, client: Client) -> np.ndarray:
    """The model's costs (n, d) at a client's features."""
    if isinstance(model, Fit):
        return model.predict(client, client.x)
    if not callable(model):
        raise ValueError(f"a model is a dffl.Fit, a predictor or a function of features, found {type(model).__name__}")
    costs = predicted(model, client.x) if isinstance(model, Predictor) else np.asarray(model(client.x), float)
    if costs.shape != client.c.shape or not np.isfinite(costs).all():
        what = f"shape {costs.shape}" if costs.shape != client.c.shape else "a number that is not finite"
        raise ValueError(f"client {client.name!r}: the model must predict finite costs of shape {client.c.shape}, found {what}")
    return costs
