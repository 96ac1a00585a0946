"""How much of the shared model to mix into each client's own, chosen on held-out samples (Algorithm 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.losses import Loss
from dffl.training.engines.base import Fields, gathered
from dffl.training.parts import Part
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import FedAvg
from dffl.training.trainers.local import Local

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run


@dataclass(frozen=True)
class Weights(Trainer):
    """Each client's best weight of the shared model, on a grid from 0 to 1; among equally good ones the smallest."""

    name: ClassVar[str] = "weights"
    ANSWER: ClassVar[str] = "weight"
    judge: Loss | str = "spo+"
    step: float = 0.05
    own: Local = Local()
    shared: Trainer = FedAvg()

    @property
    def grid(self) -> np.ndarray:
        """The weights to choose from, with both ends."""
        inner = np.arange(1, round(1 / self.step)) * self.step
        return np.round(np.concatenate([[0.0], inner[inner < 1 - 1e-9], [1.0]]), 12)

    def train(self, run: Run, part: Part) -> np.ndarray:
        run.trained(self.own, part)
        answers = run.ask(self, part, scope=self.own.label, shared=run.trained(self.shared, part))
        return gathered(answers, len(run.engine(part).names))[self.ANSWER]

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        return {self.ANSWER: self.grid[np.argmin(self.losses(site, sent), axis=1)]}

    def losses(self, site: Site, sent: Mapping[str, Any]) -> np.ndarray:
        """The mean loss of each weight of the grid on the clients' held-out samples, (clients, weights)."""
        grid = self.grid
        own_vectors = site.kept("vector", site.initial)
        models = np.stack([own_vectors, np.broadcast_to(sent["shared"], own_vectors.shape)], axis=1)
        [losses] = site.judge(models, np.stack([1 - grid, grid], axis=1), [Loss.of(self.judge)])
        return losses

    def blank(self, run: Run, part: Part) -> np.ndarray:
        run.trained(self.shared, part)
        return np.zeros(len(run.trained(self.own, part)))

    def check(self, run: Run, part: Part) -> None:
        run.require_loss(self.judge)
        run.require_judging(part)


@dataclass(frozen=True)
class WeightLosses(Weights):
    """For each client and weight of the grid, the sum of the judging loss over its held-out samples, (clients, weights)."""

    name: ClassVar[str] = "weight-losses"
    ANSWER: ClassVar[str] = "loss"

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        return {self.ANSWER: self.losses(site, sent).astype(np.float64) * site.judging[:, None]}

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return np.zeros((len(super().blank(run, part)), len(self.grid)))
