"""From held-out regrets to the expected gain of one model over another, with an interval.

All numbers are log ratios of the tested model's regret to the reference's, so that clients with small and large regrets can be
compared: a ratio of log .8 is a gain of 20 %. Four steps:

1. the ratio of the held-out means, and its standard error (paired: both models judge the same samples): by the bootstrap or,
   for samples in time, as in `dffl.serial`;
2. what will decide is better than the models of a fold, which have seen a part of the data only: it is trained on all the data
   (`local`, `fedavg`), or is the mean of the models of all folds (`local-tuned`, `crossfit`). The fleet's learning curves,
   which the models of half the data show, say how much;
3. shrinkage: the ratio moves towards that of clients of the same size, and more so if its error is large. Clients that hold the
   same rows err together, so that several of them are no surer than one;
4. the interval also covers the chance in the one training that the client will get, and that step 2 differs between fleets.

The constants were fitted to synthetic federations, and are judged on others (`dffl_studies.advice.study`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dffl.advice.evidence import Evidence
from dffl.serial import sureness

FALL_OWN, FALL_SHARED = 0.4, 0.2
"""What the last fifth of the data still brings (log regret), as a share of what came between half and four fifths of it. With
another number of folds the shares are those of the same power law."""
MEAN_OWN, MEAN_CROSSFIT = 0.9, 0.6
"""What the mean of the models of five folds brings over one of them (log regret), in the same unit. These two
rest on three federations only."""
CHANCE_SMALL, CHANCE_ANY = 3.0, 0.02
"""The variance between trainings: (CHANCE_SMALL / n + CHANCE_ANY) times the slope of regret over data or, if that is more,
times the excess of a model over the mean of past costs (in logs).
"""
STEEP = 0.05
"""The smallest slope of the fleet's learning curve."""
DOUBT = 0.5
"""The standard deviation of step 2, as a share of it: how much better what decides is differs from fleet to fleet."""
QUICK_SHIFT, QUICK_CHANCE = -0.15, 0.16
"""Where closed-form models replace networks: how much better federating is with networks, and the variance of that."""
QUICK_EXACT = 0.02
"""A closed-form model with a smaller share of the regret of the mean cost says nothing about networks."""
LARGEST_RATIO = 3.0
"""The largest log ratio: beyond a factor of 20, only its sign matters."""
WIDEST = 2.0
"""The largest standard deviation of log ratios between clients that is considered possible."""
DRAWS = 400
NORMAL = 0.9
"""Samples in time get the standard error of the normal distribution with the same interval at this confidence."""


class Curve(NamedTuple):
    """A number for the own model and one for the shared model."""

    own: float
    shared: float


TYPICAL = Curve(0.4, 0.2)
"""The learning curves of a fleet that has no models of half the data. The second is lower than it is elsewhere: without those
models there are fits, whose choice of epochs has seen the samples that judge it."""


FLAT = Curve(0.1, 0.1)
"""A mean of models is better than one of them even where more data bring nothing, as on pure noise: as with these curves."""
UNSURE = Curve(0.2, 0.1)
"""The uncertainty of step 2 is at least that of these learning curves: a curve that seems flat at a few clients may not be."""


class Side(NamedTuple):
    """A model of a comparison, by its name in `Evidence`."""

    name: str
    shared: bool
    """Whether its regret follows the curve of the shared model; else that of the own one."""
    share: float
    """The deciding model loses less than the model of a fold by this share of that curve, in logs."""
    more_data: bool = True
    """Whether that is because it sees all the data, which depends on the number of folds. Else it is a mean over the folds."""

    def fall(self, curve: Curve, folds: int = 5, blocks: bool = False) -> float:
        """The improvement of the deciding model over the model of a fold, in logs."""
        if self.more_data:
            share = self.share * _beyond(folds, blocks) / _beyond(5)
        else:
            share, curve = self.share, Curve(*np.maximum(curve, FLAT))
        return share * (curve.shared if self.shared else curve.own)


LOCAL = Side("local", False, FALL_OWN)
LOCAL_TUNED = Side("local_tuned", False, MEAN_OWN, more_data=False)
FEDERATED = Side("federated", True, FALL_SHARED)
CROSSFIT = Side("crossfit", True, MEAN_CROSSFIT, more_data=False)


@dataclass(frozen=True, eq=False)
class Gains:
    """One entry per client. Log ratios are negative if the tested model is better than the reference."""

    ratio: np.ndarray
    """The expectation, after all steps."""
    spread: np.ndarray
    """Its standard deviation, including chance."""
    raw: np.ndarray
    """The ratio of held-out means alone."""
    error: np.ndarray
    """The standard error of ``raw``."""
    nothing: np.ndarray
    """Clients without any loss by the reference or by the mean of past costs: there is nothing to gain."""
    unknown: np.ndarray
    """Clients without evidence."""
    curve: Curve
    """The mean increase of log regret over the fleet if models see half the data instead of the folds' share."""

    def interval(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the central interval of the gain, as a share of the reference's regret."""
        from scipy.special import ndtri  # slow to import, and needed only here

        reach = float(ndtri(0.5 + confidence / 2)) * self.spread
        return 1 - np.exp(self.ratio + reach), 1 - np.exp(self.ratio - reach)

    @property
    def gain(self) -> np.ndarray:
        """The expected gain, as a share of the reference's regret; negative for a loss."""
        return 1 - np.exp(self.ratio)

    @property
    def probability(self) -> np.ndarray:
        """The probability that the tested model will lose less than the reference."""
        from scipy.special import ndtr

        return np.asarray(ndtr(-self.ratio / self.spread))


def estimate(
    evidence: Sequence[Evidence],
    tested: Side = FEDERATED,
    reference: Side = LOCAL_TUNED,
    *,
    blocks: bool = False,
    seed: int = 0,
    quick: bool = False,
    folds: int = 5,
    keys: Sequence[np.ndarray] | None = None,
    crossed: np.ndarray | None = None,
) -> Gains:
    """The gains of all clients; each estimate also uses the others' evidence.

    ``keys`` say which rows of which clients are equal, or of one moment: such rows are no independent evidence. Nothing is
    estimated for clients that are ``crossed``, nor from them: others train on their held-out rows.
    """
    top, bottom, naive = (_means(evidence, name) for name in (tested.name, reference.name, "mean_cost"))
    counts = np.array([entry.n for entry in evidence], float)
    # A regression may fit exactly although a network does not.
    nothing = (naive if quick else np.minimum(bottom, naive)) <= 1e-9
    unknown = ~nothing & quick & (bottom < QUICK_EXACT * naive)
    hidden = np.zeros(len(evidence), bool) if crossed is None else crossed & ~nothing
    some = ~nothing & ~unknown & ~hidden
    m = len(evidence)
    ratio, spread, raw, error = np.zeros(m), np.full(m, 1e-6), np.zeros(m), np.zeros(m)
    spread[unknown] = LARGEST_RATIO
    ratio[hidden], spread[hidden] = np.nan, np.nan
    known = None if keys is None else [client_keys for client_keys, keep in zip(keys, some, strict=True) if keep]
    told = [entry for entry, keep in zip(evidence, some, strict=True) if keep]
    curve = learning_curve(told)
    if some.any():
        raw[some] = log_ratio(top[some], bottom[some])
        pairs = [(getattr(one, tested.name), getattr(one, reference.name)) for one in told]
        moments = known or [np.arange(len(own)) for own, _ in pairs]
        error[some] = [
            _error_in_time(*pair, own) if blocks else _bootstrap(*pair, seed) for pair, own in zip(pairs, moments, strict=True)
        ]
        covariance = _covariance(error[some], pairs, known, seed)
        corrected = raw[some] + reference.fall(curve, folds, blocks) - tested.fall(curve, folds, blocks)
        ratio[some], variance = shrink(corrected, covariance, counts[some])
        # The excess of a model over the mean of past costs is learned noise, and another training learns other noise.
        noise = log_ratio(np.maximum(top, bottom)[some], naive[some])
        chance = np.maximum(noise, max(curve.own, STEEP)) * (CHANCE_SMALL / counts[some] + CHANCE_ANY)
        if quick:
            ratio[some] += QUICK_SHIFT
            chance = chance + QUICK_CHANCE
        largest = Curve(*np.maximum(curve, UNSURE))
        doubt = [DOUBT * side.fall(largest, folds, blocks) for side in (reference, tested)]
        spread[some] = np.sqrt(variance + chance + doubt[0] ** 2 + doubt[1] ** 2)
    return Gains(ratio, spread, raw, error, nothing, unknown, curve)


def learning_curve(evidence: Sequence[Evidence]) -> Curve:
    """The excess loss of the own and of the shared model, in logs, if they see half the data; never below 0."""
    rises = []
    for half, name in (("half_local", "local"), ("half_federated", "federated")):
        more, less = _means(evidence, half), _means(evidence, name)
        if not np.isfinite(more).all():
            return TYPICAL
        rises.append(max(float(log_ratio(more, less).mean()), 0.0) if len(evidence) else 0.0)
    return Curve(*rises)


def _means(evidence: Sequence[Evidence], name: str) -> np.ndarray:
    return np.array([getattr(entry, name).mean() for entry in evidence], float)


def _beyond(folds: int, blocks: bool = False) -> float:
    """What all the data save over a fold's share of them, divided by what that share saves over half; in logs, of a power law.

    Half of all the data, or in ``blocks`` half of the fold's share.
    """
    share = (folds - 1) / folds
    return math.log(1 / share) / math.log(2 if blocks else 2 * share)


def log_ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """log(top / bottom), at most LARGEST_RATIO in size."""
    tiny = 1e-9
    return np.clip(np.log((top + tiny) / (bottom + tiny)), -LARGEST_RATIO, LARGEST_RATIO)


def _bootstrap(tested: np.ndarray, reference: np.ndarray, seed: int) -> float:
    """The standard error of the log ratio, over samples drawn again."""
    n = len(tested)
    index = np.random.default_rng([seed, n]).integers(n, size=(DRAWS, n))
    return float(np.std(log_ratio(tested[index].mean(axis=1), reference[index].mean(axis=1))))


def _error_in_time(tested: np.ndarray, reference: np.ndarray, moments: np.ndarray) -> float:
    """The standard error of the log ratio of samples in the order of time, to first order; those of one moment count once."""
    from scipy.special import ndtri

    each = tested / (tested.mean() + 1e-9) - reference / (reference.mean() + 1e-9)
    begins = np.flatnonzero(np.append(True, np.diff(moments) != 0))
    sure = sureness(np.add.reduceat(each, begins) * len(begins) / len(each), NORMAL)
    return LARGEST_RATIO if sure.too_few else min(sure.half / float(ndtri(0.5 + NORMAL / 2)), LARGEST_RATIO)


def _covariance(
    error: np.ndarray, pairs: Sequence[tuple[np.ndarray, np.ndarray]], keys: Sequence[np.ndarray] | None, seed: int
) -> np.ndarray:
    """The covariance of the clients' ratios. Clients that share rows have common errors; equal rows of a client count once."""
    if keys is None:
        return np.diag(error**2)
    drawn = _drawn_together(pairs, keys, seed)
    alone = drawn.std(axis=1)
    scale = np.maximum(error, alone) / (alone + 1e-12)  # samples in time vary more than independent ones
    return np.asarray(np.cov(drawn, ddof=0) * np.outer(scale, scale))


def _drawn_together(pairs: Sequence[tuple[np.ndarray, np.ndarray]], keys: Sequence[np.ndarray], seed: int) -> np.ndarray:
    """The clients' log ratios (m, DRAWS) in different draws of rows; a row is drawn for all clients that have it."""
    ends = np.cumsum([len(values) for values, _ in pairs])
    names, place = np.unique(np.concatenate(keys), return_inverse=True)
    starts = np.concatenate([[0], ends[:-1]])
    rng, ratios = np.random.default_rng([seed, len(names)]), np.empty((DRAWS, len(pairs)))
    top, bottom = (np.concatenate(side) for side in zip(*pairs, strict=True))
    for draw in range(DRAWS):
        weight = rng.poisson(1.0, len(names)).astype(float)[place] + 1e-9  # a client with few rows may have none in a draw
        total = np.add.reduceat(weight, starts)
        ratios[draw] = log_ratio(
            np.add.reduceat(weight * top, starts) / total, np.add.reduceat(weight * bottom, starts) / total
        )
    return ratios.T


def shrink(ratio: np.ndarray, covariance: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each client's ratio moved towards the fleet's line over log n, and its variance (normal-normal, in the Bayesian way).

    ``covariance`` (m, m) is that of the ratios' errors: clients that hold the same rows err together, and their mean is then no
    surer than one of them. How much clients differ around the line is not known, and few clients say little about it: the
    answer is the mean over all spreads up to WIDEST, each weighed by how likely it makes the ratios. A small fleet, or one of a
    single size, has a level instead of a line; fewer than three clients are left as they are.
    """
    m = len(ratio)
    if m < 3:
        return ratio, np.diag(covariance)
    line = m >= 6 and np.ptp(np.log(counts)) > 0.1
    design = np.column_stack([np.ones(m), np.log(counts)]) if line else np.ones((m, 1))
    spreads = np.concatenate([[0.0], np.geomspace(0.01, WIDEST, 24)])
    each = [shrink_at(spread**2, ratio, covariance, design) for spread in spreads]
    gaps = np.diff(spreads)
    around = (np.append(gaps, 0) + np.append(0, gaps)) / 2  # each represents the values around it (trapezoids)
    fits = np.array([group.fit for group in each]) + np.log(around)
    weights = np.exp(fits - fits.max())
    weights /= weights.sum()
    middles, variances = (np.array([getattr(group, name) for group in each]) for name in ("middle", "variance"))
    middle = weights @ middles
    return middle, weights @ (variances + (middles - middle) ** 2)


class Shrunk(NamedTuple):
    """The result of `shrink` if the variance of clients around the line were known."""

    middle: np.ndarray
    variance: np.ndarray
    fit: float
    """The log of how likely that variance makes the ratios, up to a constant (restricted likelihood)."""


def shrink_at(between: float, ratio: np.ndarray, covariance: np.ndarray, design: np.ndarray) -> Shrunk:
    """The ratios moved towards the fleet's line, for a given variance of clients around it."""
    total = covariance + (between + 1e-9) * np.eye(len(ratio))  # errors of equal rows are equal: no full rank
    inverse = np.linalg.inv(total)
    precision = design.T @ inverse @ design
    known = np.linalg.inv(precision)
    level = design @ (known @ (design.T @ (inverse @ ratio)))
    rest = ratio - level
    trust = between * inverse
    drift = (np.eye(len(ratio)) - trust) @ design
    fit = -(np.linalg.slogdet(total)[1] + np.linalg.slogdet(precision)[1] + rest @ inverse @ rest) / 2
    variance = np.einsum("ij,ji->i", trust, covariance) + np.einsum("ij,jk,ik->i", drift, known, drift)
    return Shrunk(level + trust @ rest, variance, float(fit))
