"""Every client alone, from the common start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.training.engines.base import Fields
from dffl.training.optimisers import Schedule
from dffl.training.parts import Part
from dffl.training.trainers.base import Trainer, blank_rows, fetched

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run


@dataclass(frozen=True)
class Local(Trainer):
    """One vector for each client. The optimiser's state lasts for the whole training."""

    name: ClassVar[str] = "local"
    epochs: int | None = None
    """None: rounds x local_epochs, as much as a client that takes part in every round."""
    scheduled: bool = False
    """The step size changes as `Settings.schedule` says, every local_epochs epochs."""

    def train(self, run: Run, part: Part) -> np.ndarray:
        for _ in run.ask(self, part):
            pass
        return fetched(run, self, part)

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        settings = site.settings
        epochs = settings.rounds * settings.local_epochs if self.epochs is None else self.epochs
        starts = range(0, epochs, settings.local_epochs)  # of what takes the place of rounds
        schedule, current = Schedule.of(settings.schedule if self.scheduled else "constant"), site.train(site.initial, 0)
        for number, first in enumerate(starts):
            count, rate = min(settings.local_epochs, epochs - first), schedule.factor(number, len(starts))
            current = site.train(current, count, first, rate=rate)
        site.keep("vector", current.vectors)
        return {}

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return blank_rows(run, part)

    def work(self, run: Run, part: Part) -> float:
        settings = run.settings
        epochs = settings.rounds * settings.local_epochs if self.epochs is None else self.epochs
        return float(run.engine(part).counts.sum()) * epochs
