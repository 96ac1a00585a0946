"""The range of a decision's cost: a range around the cost that held-out rows suggest for a row with such features.

A row is held out if the model that decided on it was not trained on it. These are the test rows and, for a method with
folds, the training rows out of fold. Two ridge regressions predict the cost of a decision and the size of its deviation.
Their inputs are the features and the cost that the model itself expects. The ends of the range are quantiles of the held-out
errors, in units of the predicted deviation (conformal prediction with a local scale). The cost that the model expects is
only an input: the model is trained for decisions, and this cost is not a forecast.

With an order in time, the test rows are the latest. The ridges are trained on the rows before them, and only the test rows
give the quantiles. If the features do not improve the range (by the interval score on held-out rows), the range of all
held-out rows is used.
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
"""The shares of held-out rows below the lower and the upper end of a range."""
FEWEST_TO_LEARN = 30
"""With fewer rows, or fewer than two rows per feature, ridges fit noise. Then the range is that of all held-out rows."""
FEWEST_LATEST = 20
"""With fewer test rows than this, the rows before them are used too, also if there is an order."""
BETTER = 0.95
"""The range depends on the features only if its score is below this share of the other's. A tie goes to the simpler one."""
FLOOR = 0.05
"""The smallest error, as a share of the mean error, of which the logarithm is taken."""


class HeldOut(NamedTuple):
    """Held-out rows: the model that decided on them was not trained on them."""

    known: np.ndarray
    """(n, p + 1): the features, and the cost that the model expects of its decision."""
    cost: np.ndarray
    """(n,): what the decisions cost, or earned."""


@dataclass(frozen=True)
class Line:
    """A linear function of a row's known values. Outside the range of its training rows it is constant."""

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
    """A range that depends on the features: the middle, the logarithm of the deviation, and the ends in units of it."""

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
    """The number of held-out rows that it is based on."""
    low: float
    median: float
    high: float
    """The low end, the median and the high end of all held-out rows."""
    share: float
    """The share of new rows inside the range, if they are like the held-out rows."""
    guide: Guide | None = None
    why: str = ""
    """The reason why the range does not depend on the features, or an empty text."""

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
        """The inverse of `as_json`."""
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
    out_of_fold = member.out_of_fold
    decided = fit.decide_at(test.name, out_of_fold["predicted"].astype(np.float64))
    return learned(latest, HeldOut(known(train.x, out_of_fold["predicted"], decided), out_of_fold["objective"]), ordered)


def known(x: np.ndarray, predicted: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """What is known of rows before their costs: the features, and the cost that the model expects of its decisions."""
    return np.column_stack([x, np.sum(predicted * decisions[:, : predicted.shape[1]], axis=1)])


def learned(latest: HeldOut, before: HeldOut | None, ordered: bool) -> CostRange:
    """The range, from the test rows and the rows that were held out before them."""
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
        stray = np.exp(_log_size(errors) - log_errors)  # each row itself left out
    guide = Guide(middle, log_stray, *ends(errors / stray)[:3])
    mine = interval_score(errors, guide.low * stray, guide.high * stray)
    if not mine < BETTER * interval_score(rows.cost, low, high):
        return replace(plain, why="on held-out rows a range that follows the features is no better")
    return replace(plain, guide=guide)


def ends(values: np.ndarray) -> tuple[float, float, float, float]:
    """The low end, the median and the high end of a sample, and the share of new values between the ends.

    The ends are values of the sample. A new value lies between them with at least the wanted share, for any distribution. A
    small sample has no such ends: then they are its smallest and largest value, which cover a smaller share.
    """
    ordered, n = np.sort(values), len(values)
    below, above = max(int((n + 1) * LOW + 1e-9), 1), min(int(np.ceil((n + 1) * HIGH - 1e-9)), n)
    return float(ordered[below - 1]), float(np.median(values)), float(ordered[above - 1]), (above - below) / (n + 1)


def interval_score(values: np.ndarray, low: Any, high: Any) -> float:
    """The mean interval score of ranges (Winkler): the width, plus a penalty for each value outside. Lower is better."""
    fine = 2 / (1 - (HIGH - LOW))
    return float(np.mean(high - low + fine * (np.maximum(low - values, 0) + np.maximum(values - high, 0))))


def _require_numbers(*values: Any) -> None:
    """Refuse a number that is not finite: a model's file may contain anything."""
    for value in values:
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e300:
            raise ValueError(f"a range must be of finite numbers, found {value!r:.80}")


def _line(known: np.ndarray, values: np.ndarray) -> tuple[Line, np.ndarray]:
    """The ridge regression of values on the known values, and each row's error when the row itself is left out."""
    centre, scale = known.mean(axis=0), known.std(axis=0)
    scale = np.where(scale > 1e-9 * (1 + np.abs(centre)), scale, np.inf)  # a constant column carries no information
    best = min(ridges((known - centre) / scale, values[:, None]), key=lambda ridge: float(np.mean(ridge.residuals**2)))
    slopes = best.coefficients[1:, 0] / scale
    least, most = known.min(axis=0), known.max(axis=0)
    line = Line(float(best.coefficients[0, 0] - centre @ slopes), slopes.tolist(), least.tolist(), most.tolist())
    return line, best.residuals[:, 0]


def _log_size(errors: np.ndarray) -> np.ndarray:
    size = np.abs(errors)
    return np.log(size + FLOOR * size.mean() + 1e-300)
