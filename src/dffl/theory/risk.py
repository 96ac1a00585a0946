"""The risk bounds of the paper's section 5 as formulas: uniform convergence, Theorem 2, the federation condition, gains.

Every bound comes with the trivial one, so that it shows where it is vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

BoundForm = Literal["paper", "sharp"]
"""Whether a bound is the one printed in the paper or a sharper one that we prove."""


def require_form(owner: str, form: str) -> None:
    """Refuse what is not a form of a bound."""
    if form not in ("paper", "sharp"):
        raise ValueError(f"{owner}: form must be 'sharp' or 'paper', found {form!r}")


class Bound(NamedTuple):
    """An upper bound on a risk, and the trivial bound on the same risk."""

    value: float
    trivial: float

    @property
    def vacuous(self) -> bool:
        """Whether the bound is larger than the trivial one, or has no end."""
        return self.value > self.trivial or self.value == math.inf


def mixture_weights(counts: Sequence[int]) -> np.ndarray:
    """alpha_j = n_j / N."""
    sizes = np.asarray(counts, float)
    if sizes.ndim != 1 or not len(sizes) or (sizes <= 0).any():
        raise ValueError(f"mixture_weights: counts must be positive, one per client, found {counts!r:.80}")
    return sizes / sizes.sum()


def loss_bound(diameter: float, cost_norm: float, prediction_norm: float) -> float:
    """b: the largest SPO+ loss, D (C_max + 2 B), for costs and predictions of at most these norms."""
    return diameter * (cost_norm + 2 * prediction_norm)


def rademacher_upper(prediction_norm: float, dim: int) -> float:
    """A certified bound on the Rademacher complexity of any predictors of at most this norm: B sqrt(d).

    By Cauchy and Schwarz for each sample. It does not fall with n: a network whose weights are not bounded can fit the signs of
    a small sample, so no bound that holds for all of them can fall there.
    """
    return prediction_norm * math.sqrt(dim)


def deviation(b: float, n: int, delta: float, form: BoundForm = "paper") -> float:
    """What chance adds to a uniform bound over n samples, with probability at least 1 - delta, on both sides.

    In the paper b sqrt(2 log(1/delta) / n); the sharper form is b sqrt(log(2/delta) / (2n)), little over half of it.
    """
    _probability("delta", delta)
    if n < 1:
        raise ValueError(f"deviation: n must be at least 1, found {n}")
    if form == "sharp":
        return b * math.sqrt(math.log(2 / delta) / (2 * n))
    if delta**3 > 0.5:  # two sides cost a factor 2 inside the logarithm: log(2/delta) <= 4 log(1/delta) only up to here
        raise ValueError(f"deviation: delta must be at most 0.79 in the paper's form, found {delta}; use form='sharp'")
    return b * math.sqrt(2 * math.log(1 / delta) / n)


def uniform_convergence(diameter: float, rademacher: float, b: float, n: int, delta: float, form: BoundForm = "paper") -> float:
    """epsilon(n, delta) = 4 sqrt(2) D R_n + what chance adds: how far risk and empirical risk differ, for all predictors.

    For the mixture take the largest diameter and the largest b: pooled samples are stratified by client, not drawn from it.
    """
    return 4 * math.sqrt(2) * diameter * rademacher + deviation(b, n, delta, form)


def local_bound(epsilon: float, b: float) -> Bound:
    """Theorem 2, local: the excess risk of the empirical minimiser is at most 2 epsilon_j."""
    return Bound(2 * epsilon, b)


def federated_bound(epsilon_mix: float, discrepancy: float, b: float, oscillation: float | None = None) -> Bound:
    """Theorem 2, federated: at most 2 epsilon_mix + 2 Delta_j; sup - inf of R_j - R_mix may replace 2 Delta_j."""
    penalty = 2 * discrepancy if oscillation is None else min(2 * discrepancy, oscillation)
    return Bound(2 * epsilon_mix + penalty, b)


def confidence_share(delta: float, clients: int | None = None) -> float:
    """The delta of one uniform bound: delta / 2 for one client (its own and the mixture's), delta / (m + 1) for all at once."""
    _probability("delta", delta)
    return delta / 2 if clients is None else delta / (clients + 1)


def federation_condition(discrepancy: float, epsilon_local: float, epsilon_mix: float) -> bool:
    """The paper's condition: the guarantee of federating is the smaller one if Delta_j < epsilon_j - epsilon_mix.

    It compares two upper bounds. Where both are vacuous it decides nothing for the client.
    """
    return discrepancy < epsilon_local - epsilon_mix


def estimation_bound(diameter: float, estimation_risk: float, b: float = math.inf) -> Bound:
    """Corollary estimation-to-spo: an excess SPO+ risk of at most 2 D sqrt(R_est), where E|f - f*|^2 <= R_est. Holds, tight.

    By `lemmas.prediction_lipschitz` and Jensen's inequality, for any two predictors f and f*: R(f) - R(f*) <= 2 D E|f - f*|.
    The corollary needs f* to be the minimiser of the SPO+ risk. Bounds on estimation, such as Su et al.'s, are about the
    conditional mean E[c | x]. Where that is not a minimiser too, its own excess risk has to be added: on [-1/2, 1/2], with c =
    10 or -1 with probability .2 and .8, the mean 1.2 has the risk 4.24 and the minimiser -.5 has 2.2.
    """
    _not_negative("estimation_bound", diameter=diameter, estimation_risk=estimation_risk)
    return Bound(math.inf if math.isinf(diameter) else 2 * diameter * math.sqrt(estimation_risk), b)


def mse_bound(radius: float, least_cost: float, mse: float, b: float = math.inf) -> Bound:
    """R(f) <= (2 rho / C_min) E|f - c|^2 on strongly convex sets: the mean of `lemmas.error_bound`, with |c| >= C_min > 0.

    It takes the place of Proposition calibration, whose 2 / rho does not hold. Tight (any ball). Without C_min no
    constant would do: where c is much shorter than the error e, the loss of a ball is about 2 rho |e|.
    """
    _not_negative("mse_bound", radius=radius, mse=mse)
    if not least_cost > 0:
        raise ValueError(f"mse_bound: least_cost (C_min) must be > 0, found {least_cost}: no cost vector may be zero")
    return Bound(math.inf if math.isinf(radius) else 2 * radius / least_cost * mse, b)


class CertifiedGain(NamedTuple):
    """FG_cert: two guarantees of Theorem 2 for one client, as a ratio."""

    local: Bound
    federated: Bound

    @property
    def value(self) -> float:
        """The local bound over the federated one, as the paper's remark has it; 1 for two equal bounds."""
        return _ratio(self.local.value, self.federated.value)

    @property
    def capped(self) -> float:
        """The same where no guarantee is taken for more than the largest loss: 1 where both are vacuous."""
        return _ratio(*(min(bound.value, bound.trivial) for bound in self))

    @property
    def vacuous(self) -> bool:
        """Whether both bounds are vacuous: their ratio says nothing then."""
        return self.local.vacuous and self.federated.vacuous


def certified_gain(local: Bound, federated: Bound) -> CertifiedGain:
    """The paper's certified federation gain, epsilon_j / (epsilon_mix + Delta_j): above 1 where its condition holds.

    A ratio of two upper bounds. Each of them is certified, the ratio is not a ratio of risks: a local model may be far better
    than its guarantee, so a gain above 1 does not say that federating helps, nor one below 1 that it harms.
    """
    if local.trivial != federated.trivial:
        both = f"{local.trivial} and {federated.trivial}"
        raise ValueError(f"certified_gain: both bounds must be of one client, with one largest loss, found {both}")
    return CertifiedGain(local, federated)


# Gains as ratios of upper bounds: how they scale, not what is guaranteed.


def spo_plus_gain(estimation_gain: float) -> float:
    """FG^SPO+ scales as the square root of the gain in squared estimation error."""
    return math.sqrt(_gain(estimation_gain))


def spo_gain(estimation_gain: float, strongly_convex: bool) -> float:
    """FG^SPO scales as the fourth root of the estimation gain on polyhedra, as the square root on strongly convex sets."""
    return _gain(estimation_gain) ** (0.5 if strongly_convex else 0.25)


def su_estimation_gain(
    n: int,
    total: int,
    dim: int,
    noise: float,
    signal: float,
    heterogeneity: float,
    constant: float = 1.0,
    condition: float = 1.0,
) -> float:
    """The estimation gain of Su et al.'s subspace model, up to its constants c_1 (``constant``) and kappa (``condition``).

    (c_1 / kappa) [min(sigma^2 d / n_j, B^2) + B^2 max(1 - n_j / d, 0)] / [sigma^2 d / N + Gamma^2].
    """
    if not 1 <= n <= total or dim < 1:
        raise ValueError(f"su_estimation_gain: it must hold that 1 <= n <= total and dim >= 1, found {n}, {total} and {dim}")
    alone = min(noise**2 * dim / n, signal**2) + signal**2 * max(1 - n / dim, 0.0)
    together = noise**2 * dim / total + heterogeneity**2
    if together == 0:
        return math.inf if alone > 0 else 1.0
    return constant / condition * alone / together


def _ratio(top: float, bottom: float) -> float:
    if top == bottom:
        return 1.0
    return top / bottom if bottom > 0 else math.inf


def _not_negative(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{owner}: {name} must be >= 0, found {value}")


def _gain(value: float) -> float:
    if not value >= 0:
        raise ValueError(f"a gain is a ratio of risks and must be >= 0, found {value}")
    return value


def _probability(name: str, value: float) -> None:
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise ValueError(f"{name} must be in (0, 1), found {value!r}")
