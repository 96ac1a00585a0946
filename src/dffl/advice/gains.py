"""From held-out regrets to the expected gain of one model over another, with an interval.

All numbers are log ratios of the tested model's regret to the reference's, so that clients with small and large regrets can be
compared: a ratio of log .8 is a gain of 20 %. Four steps:

1. the ratio of the held-out means, and its standard error by the bootstrap (paired: both models judge the same samples);
2. what will decide is better than the models of a fold, which have seen a part of the data only: it is trained on all the data
   (`local`, `fedavg`), or is the mean of the models of all folds (`local-tuned`, `crossfit`). The fleet's learning curves,
   which the models of half the data show, say how much;
3. shrinkage (empirical Bayes): the ratio moves towards that of clients of the same size, and more so if its error is large;
4. the interval also covers the chance in the one training that the client will get.

The constants were fitted to synthetic federations, and are judged on others (`dffl.cases.advice.study`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dffl.advice.evidence import Evidence
from dffl.advice.folds import WEEK

FALL_OWN, FALL_SHARED = 0.4, 0.2
"""What the last fifth of the data still brings (log regret), as a share of what came between half and four fifths of it. With
another number of folds the shares are those of the same power law."""
MEAN_OWN, MEAN_CROSSFIT = 0.9, 0.6
"""What the mean of the models of five folds brings over one of them (log regret), in the same unit. These two
rest on three federations only."""
CHANCE_SMALL, CHANCE_ANY = 3.0, 0.02
"""The variance between trainings: (CHANCE_SMALL / n + CHANCE_ANY) times how steeply regret still falls with data."""
STEEP = 0.05
"""The least steepness of the fleet's learning curve."""
QUICK_SHIFT, QUICK_CHANCE = -0.15, 0.16
"""Where closed-form models replace networks: how much better federating is with networks, and the variance of that."""
QUICK_EXACT = 0.02
"""A closed-form model that loses less than this share of what the mean cost loses is no evidence about networks."""
LARGEST_RATIO = 3.0
"""The largest log ratio: beyond a factor of 20 it only matters that it is large."""
DRAWS = 400


class Curve(NamedTuple):
    """A number for the own model and one for the shared model."""

    own: float
    shared: float


TYPICAL = Curve(0.4, 0.2)
"""The learning curves of a fleet that has no models of half the data. The second is lower than it is elsewhere: without those
models there are fits, whose choice of epochs has seen the samples that judge it."""


class Side(NamedTuple):
    """A model of a comparison, by its name in `Evidence`."""

    name: str
    shared: bool
    """Whether it falls along the curve of the shared model; else along that of the own one."""
    share: float
    """What decides loses less than the model of a fold: this share of that curve, in logs."""
    more_data: bool = True
    """Because it sees all the data, which are more the fewer folds there are. Else it is a mean over the folds."""

    def fall(self, curve: Curve, folds: int = 5, blocks: bool = False) -> float:
        """By how much what decides is better than the model of a fold, in logs."""
        share = self.share * _beyond(folds, blocks) / _beyond(5) if self.more_data else self.share
        return share * (curve.shared if self.shared else curve.own)


LOCAL = Side("local", False, FALL_OWN)
LOCAL_TUNED = Side("local_tuned", False, MEAN_OWN, more_data=False)
FEDERATED = Side("federated", True, FALL_SHARED)
CROSSFIT = Side("crossfit", True, MEAN_CROSSFIT, more_data=False)


@dataclass(frozen=True, eq=False)
class Gains:
    """One entry per client. Log ratios: negative where the tested model is better than the reference."""

    ratio: np.ndarray
    """Expected, after all steps."""
    spread: np.ndarray
    """Its standard deviation, chance included."""
    raw: np.ndarray
    """The ratio of held-out means alone."""
    error: np.ndarray
    """The standard error of ``raw``."""
    nothing: np.ndarray
    """Clients whose decisions lose nothing by the reference or by the mean of past costs: there is nothing to gain."""
    unknown: np.ndarray
    """Clients about whom there is no evidence."""
    curve: Curve
    """How much log regret rises, on average over the fleet, when models see half the data instead of the folds' share."""

    def interval(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the central interval of the gain, as a share of the reference's regret."""
        from scipy.special import ndtri  # slow to import, and needed here alone

        reach = float(ndtri(0.5 + confidence / 2)) * self.spread
        return 1 - np.exp(self.ratio + reach), 1 - np.exp(self.ratio - reach)

    @property
    def gain(self) -> np.ndarray:
        """The expected gain, as a share of the reference's regret; negative for a loss."""
        return 1 - np.exp(self.ratio)

    @property
    def probability(self) -> np.ndarray:
        """That the tested model will lose less than the reference."""
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
) -> Gains:
    """The gains of all clients; each estimate also uses the others' evidence."""
    top, bottom, naive = (_means(evidence, name) for name in (tested.name, reference.name, "mean_cost"))
    counts = np.array([one.n for one in evidence], float)
    # A regression may fit exactly where a network does not.
    nothing = (naive if quick else np.minimum(bottom, naive)) <= 1e-9
    unknown = ~nothing & quick & (bottom < QUICK_EXACT * naive)
    some = ~nothing & ~unknown
    m = len(evidence)
    ratio, spread, raw, error = np.zeros(m), np.full(m, 1e-6), np.zeros(m), np.zeros(m)
    spread[unknown] = LARGEST_RATIO
    curve = learning_curve([one for one, keep in zip(evidence, some, strict=True) if keep])
    if some.any():
        raw[some] = log_ratio(top[some], bottom[some])
        pairs = [(getattr(one, tested.name), getattr(one, reference.name)) for one in evidence]
        error[some] = [_bootstrap(*pair, blocks, seed) for pair, keep in zip(pairs, some, strict=True) if keep]
        whole = raw[some] + reference.fall(curve, folds, blocks) - tested.fall(curve, folds, blocks)
        ratio[some], variance = shrink(whole, error[some] ** 2, counts[some])
        chance = max(curve.own, STEEP) * (CHANCE_SMALL / counts[some] + CHANCE_ANY)
        if quick:
            ratio[some] += QUICK_SHIFT
            chance = chance + QUICK_CHANCE
        spread[some] = np.sqrt(variance + chance)
    return Gains(ratio, spread, raw, error, nothing, unknown, curve)


def learning_curve(evidence: Sequence[Evidence]) -> Curve:
    """How much more the own and the shared model lose, in logs, when they see half the data; never less than nothing."""
    rises = []
    for half, name in (("half_local", "local"), ("half_federated", "federated")):
        more, less = _means(evidence, half), _means(evidence, name)
        if not np.isfinite(more).all():
            return TYPICAL
        rises.append(max(float(log_ratio(more, less).mean()), 0.0) if len(evidence) else 0.0)
    return Curve(*rises)


def _means(evidence: Sequence[Evidence], name: str) -> np.ndarray:
    return np.array([getattr(one, name).mean() for one in evidence], float)


def _beyond(folds: int, blocks: bool = False) -> float:
    """What all the data save over a fold's share of them, divided by what that share saves over half; in logs, of a power law.

    Half of all the data, or in ``blocks`` half of the fold's share.
    """
    share = (folds - 1) / folds
    return math.log(1 / share) / math.log(2 if blocks else 2 * share)


def log_ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """log(top / bottom), no further from 0 than LARGEST_RATIO."""
    tiny = 1e-9
    return np.clip(np.log((top + tiny) / (bottom + tiny)), -LARGEST_RATIO, LARGEST_RATIO)


def _bootstrap(tested: np.ndarray, reference: np.ndarray, blocks: bool, seed: int) -> float:
    """The standard error of the log ratio, over samples drawn again; in ``blocks``, weeks of them."""
    n = len(tested)
    rng = np.random.default_rng([seed, n])
    length = max(1, min(WEEK, n // 6)) if blocks else 1  # some blocks at least, or nothing varies
    starts = rng.integers(n - length + 1, size=(DRAWS, -(-n // length)))
    index = (starts[..., None] + np.arange(length)).reshape(DRAWS, -1)[:, :n]
    return float(np.std(log_ratio(tested[index].mean(axis=1), reference[index].mean(axis=1))))


def shrink(ratio: np.ndarray, variance: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each client's ratio moved towards the fleet's line over log n, and its variance (empirical Bayes, normal-normal).

    The spread of clients around the line is the variance of their ratios that their standard errors do not explain. A small
    fleet, or one of a single size, has a level instead of a line; fewer than three clients are left as they are.
    """
    m = len(ratio)
    if m < 3:
        return ratio, variance
    line = m >= 6 and np.ptp(np.log(counts)) > 0.1
    design = np.column_stack([np.ones(m), np.log(counts)]) if line else np.ones((m, 1))
    between = 0.1
    for _ in range(100):
        weight = 1 / (variance + between)
        precision = np.linalg.inv((design.T * weight) @ design)
        middle = design @ (precision @ (design.T @ (weight * ratio)))
        excess = (weight * ((ratio - middle) ** 2 * m / (m - design.shape[1]) - variance)).sum() / weight.sum()
        before, between = between, max(float(excess), 1e-3)
        if abs(between - before) < 1e-9:
            break
    trust = between / (between + variance)
    drift = np.einsum("ij,jk,ik->i", design, precision, design)
    return middle + trust * (ratio - middle), trust * variance + (1 - trust) ** 2 * drift
