"""What decisions will cost: a range around what held-out rows suggest for a row with such features.

A row is held out if the model that decided on it was not trained on it: the test rows and, for a method with folds, the
training rows out of fold. Two ridges on the features, and on the cost that the model itself expects, say where the cost of a
decision lies and how far it strays. The ends are quantiles of the held-out errors of these ridges, in units of how far such
rows stray (conformal prediction with a local scale). The cost that the model expects is only an input here: it is trained for
decisions, and is not a forecast.

Where there is an order in time, the test rows are the latest: the ridges learn from the rows before them, and the test rows
alone give the quantiles. Where the features do not make the range better, by the interval score on held-out rows, the range is
that of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dffl.federation import Client
from dffl.fitting import Fit
from dffl.training.ridge import ridges

LOW, HIGH = 0.1, 0.9
"""The shares of held-out rows below the two ends of a range."""
FEWEST_TO_LEARN = 30
"""Ridges of fewer rows, or of fewer than two for each feature, are noise: then the range is that of all held-out rows."""
FEWEST_LATEST = 20
"""With fewer test rows than this, those before them are used too, also where there is an order."""
BETTER = 0.95
"""The range follows the features only if its score is below this share of the other's: a tie goes to the simple one."""
FLOOR = 0.05
"""The smallest error, as a share of the mean error, whose logarithm is taken."""


class HeldOut(NamedTuple):
    """Rows that a model decided on without having been trained on them."""

    known: np.ndarray
    """(n, p + 1): the features, and the cost that the model expects of its decision."""
    cost: np.ndarray
    """(n,): what the decisions cost, or earned."""


@dataclass(frozen=True)
class Line:
    """A number that is linear in what is known of a row; beyond the rows that it was learned from it stays level."""

    intercept: float
    slopes: list[float]
    least: list[float]
    most: list[float]

    def __post_init__(self) -> None:
        parts = (self.slopes, self.least, self.most)
        if any(not isinstance(part, list) or len(part) != len(self.slopes) for part in parts):
            raise ValueError(f"a range must have one number for each feature, found {parts!r:.80}")
        _require_numbers(self.intercept, *self.slopes, *self.least, *self.most)

    def at(self, known: np.ndarray) -> np.ndarray:
        """The number for each row."""
        return self.intercept + np.clip(known, self.least, self.most) @ np.array(self.slopes)


@dataclass(frozen=True)
class Guide:
    """How the range follows the features: middle, the logarithm of how far costs stray from it, and ends in such units."""

    middle: Line
    log_stray: Line
    low: float
    median: float
    high: float

    def __post_init__(self) -> None:
        _require_numbers(self.low, self.median, self.high)

    def at(self, known: np.ndarray) -> np.ndarray:
        """Low end, median and high end for each row."""
        middle, stray = self.middle.at(known), np.exp(self.log_stray.at(known))
        return middle[:, None] + stray[:, None] * np.array([self.low, self.median, self.high])


@dataclass(frozen=True)
class CostRange:
    """What the decisions of a client cost, or earn."""

    rows: int
    """The held-out rows behind it."""
    low: float
    median: float
    high: float
    """Of all held-out rows."""
    share: float
    """The share of new rows that lies inside, if they are like those held out."""
    guide: Guide | None = None
    why: str = ""
    """Why the range does not follow the features, where it does not."""

    def __post_init__(self) -> None:
        _require_numbers(self.rows, self.low, self.median, self.high, self.share)
        if not isinstance(self.why, str) or not (self.why or "-").isprintable():
            raise ValueError(f"the reason for one range must be a text that can be printed, found {self.why!r:.80}")

    def at(self, known: np.ndarray) -> np.ndarray:
        """Low end, median and high end (n, 3) for new rows."""
        if self.guide is None:
            return np.tile([self.low, self.median, self.high], (len(known), 1))
        return self.guide.at(known)

    def as_json(self) -> dict[str, Any]:
        """Plain values, to be saved with a model."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> CostRange:
        """What `as_json` gave."""
        guide = plain["guide"]
        if guide is not None:
            guide = Guide(**{**guide, **{name: Line(**guide[name]) for name in ("middle", "log_stray")}})
        return cls(**{**plain, "guide": guide})


def cost_range(fit: Fit, test: Client, train: Client, ordered: bool) -> CostRange:
    """The range of a client, from its test rows and, where the method keeps them, its training rows out of fold."""
    member = fit.members[test.name]
    predicted = fit.predict(test.name, test.x)
    latest = HeldOut(
        known(test.x, predicted, fit.decide_at(test.name, predicted)), test.best_objective + test.sense * fit.regrets(test)
    )
    if member.out_of_fold is None:
        return learned(latest, None, ordered)
    found = member.out_of_fold
    decided = fit.decide_at(test.name, found["predicted"].astype(np.float64))
    return learned(latest, HeldOut(known(train.x, found["predicted"], decided), found["objective"]), ordered)


def known(x: np.ndarray, predicted: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """What is known of rows before their costs are: the features, and the cost that the model expects of its decisions."""
    return np.column_stack([x, np.sum(predicted * decisions[:, : predicted.shape[1]], axis=1)])


def learned(latest: HeldOut, before: HeldOut | None, ordered: bool) -> CostRange:
    """The range, given the test rows and those held out before them."""
    apart = ordered and before is not None and len(latest.cost) >= FEWEST_LATEST
    if before is None or apart:
        rows = latest
    else:
        rows = HeldOut(np.concatenate([before.known, latest.known]), np.concatenate([before.cost, latest.cost]))
    low, median, high, share = ends(rows.cost)
    plain = CostRange(len(rows.cost), low, median, high, share)
    teachers = before if apart and before is not None else rows
    needed = max(FEWEST_TO_LEARN, 2 * teachers.known.shape[1])
    if len(teachers.cost) < needed:
        few = f"{len(teachers.cost)} held-out rows are too few for a range that follows the features ({needed} are needed)"
        return replace(plain, why=few)
    middle, errors = _line(teachers.known, teachers.cost)
    log_stray, log_errors = _line(teachers.known, _log_size(errors))
    if apart:
        errors, stray = rows.cost - middle.at(rows.known), np.exp(log_stray.at(rows.known))
    else:
        stray = np.exp(_log_size(errors) - log_errors)  # out of sample too: of the ridge of all the other rows
    guide = Guide(middle, log_stray, *ends(errors / stray)[:3])
    mine = interval_score(errors, guide.low * stray, guide.high * stray)
    if not mine < BETTER * interval_score(rows.cost, low, high):
        return replace(plain, why="on held-out rows a range that follows the features is no better")
    return replace(plain, guide=guide)


def ends(values: np.ndarray) -> tuple[float, float, float, float]:
    """Low end, median and high end of a sample, and the share of new values that lies between the ends.

    The ends are values of the sample, so far out that a new value lies between them with at least that share, whatever the
    sample's distribution. A small sample has no such ends: its least and largest value hold a smaller share.
    """
    ordered, n = np.sort(values), len(values)
    below, above = max(int((n + 1) * LOW + 1e-9), 1), min(int(np.ceil((n + 1) * HIGH - 1e-9)), n)
    return float(ordered[below - 1]), float(np.median(values)), float(ordered[above - 1]), (above - below) / (n + 1)


def interval_score(values: np.ndarray, low: Any, high: Any) -> float:
    """How poor ranges are, on average: their width, and a fine for each value outside (Winkler's score)."""
    fine = 2 / (1 - (HIGH - LOW))
    return float(np.mean(high - low + fine * (np.maximum(low - values, 0) + np.maximum(values - high, 0))))


def _require_numbers(*values: Any) -> None:
    """Refuse what is no finite number: a model's file may say anything."""
    for value in values:
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e300:
            raise ValueError(f"a range must be of finite numbers, found {value!r:.80}")


def _line(known: np.ndarray, values: np.ndarray) -> tuple[Line, np.ndarray]:
    """The ridge of values on what is known, and each row's error under the ridge of all the other rows."""
    centre, scale = known.mean(axis=0), known.std(axis=0)
    scale = np.where(scale > 1e-9 * (1 + np.abs(centre)), scale, np.inf)  # what does not change says nothing
    best = min(ridges((known - centre) / scale, values[:, None]), key=lambda one: float(np.mean(one.residuals**2)))
    slopes = best.coefficients[1:, 0] / scale
    least, most = known.min(axis=0), known.max(axis=0)
    line = Line(float(best.coefficients[0, 0] - centre @ slopes), slopes.tolist(), least.tolist(), most.tolist())
    return line, best.residuals[:, 0]


def _log_size(errors: np.ndarray) -> np.ndarray:
    size = np.abs(errors)
    return np.log(size + FLOOR * size.mean() + 1e-300)
