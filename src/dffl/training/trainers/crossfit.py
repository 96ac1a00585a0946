"""Cross-fitting: as many trainings as there are folds, each judged on the samples that it has not seen.

Each fold has a start of its own, trains on the other folds and stops at every candidate number of epochs. A client chooses the
stop with the least loss over all its samples, each judged by the training that did not see it. No sample is lost to the choice,
and what decides is the mean of the models of all folds.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dffl.checks import require_whole
from dffl.losses import Loss
from dffl.training.engines.base import Fields, gathered
from dffl.training.parts import FoldSamples, Part
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.tuning import Stops
from dffl.training.trainers.turned import TurnedStops

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run

FOLDS = 5
MOST_FOLDS = 100


@dataclass(frozen=True)
class OutOfFold(Trainer):
    """For each client and stop, the judging loss, summed over its held-out samples: (clients, stops)."""

    name: ClassVar[str] = "out-of-fold"
    stops: Stops | TurnedStops = Stops()
    judge: Loss | str = "spo+"

    def train(self, run: Run, part: Part) -> np.ndarray:
        run.trained(self.stops, part)
        return gathered(run.ask(self, part, scope=self.stops.label), len(run.engine(part).names))["loss"]

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        count = len(self.stops.epochs)
        stops = site.kept("stops", np.zeros((count, site.initial.size), site.initial.dtype))
        [means] = site.judge(stops, np.eye(count), [Loss.of(self.judge)])
        return {"loss": means.astype(np.float64) * site.judging[:, None]}

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return np.zeros(self.stops.reached(run, part).shape[:2])

    def check(self, run: Run, part: Part) -> None:
        run.require_loss(self.judge)
        run.require_judging(part)


class CrossFitted(NamedTuple):
    """The result of cross-fitting: for each fold its part of the samples and one vector for each client."""

    parts: Sequence[FoldSamples]
    vectors: list[np.ndarray]
    epochs: np.ndarray
    """The choice of each client."""


def fold_parts(run: Run, folds: int) -> list[FoldSamples]:
    """The folds of a run.

    A client with fewer samples than folds lowers the number of folds for all, with a warning: every training needs samples of
    every client.
    """
    require_whole("folds", folds, least=2, most=MOST_FOLDS)
    smallest = min(run.federation, key=lambda client: client.n)
    if smallest.n < 2:
        raise ValueError(
            f"client {smallest.name!r}: x must have at least 2 samples to be held out in folds, found {smallest.n}"
        )
    count = min(folds, smallest.n)
    if count < folds:
        warnings.warn(f"{count} folds instead of {folds}: client {smallest.name!r} has {smallest.n} samples", stacklevel=2)
    return [FoldSamples(number, count) for number in range(count)]


def cross_fitted(run: Run, stops: Stops | TurnedStops, parts: Sequence[FoldSamples], judge: Loss | str = "spo+") -> CrossFitted:
    """Train in folds, and let each client choose its stop. Among equally good stops the smallest is chosen.

    Several parts may hold out the same fold; every sample counts once in the choice.
    """
    holders = Counter(part.number for part in parts)
    losses = [run.trained(OutOfFold(stops, judge), part) / holders[part.number] for part in parts]
    best = np.argmin(sum(losses), axis=1)
    everyone = np.arange(len(best))
    vectors = [stops.reached(run, part)[everyone, best] for part in parts]
    return CrossFitted(parts, vectors, np.array(stops.epochs)[best])
