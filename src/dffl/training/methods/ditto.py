"""`ditto`: each client also trains its own model, pulled towards the shared one (Li et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dffl.checks import require_number, require_whole
from dffl.randomness import Purpose
from dffl.training.engines.base import Fields
from dffl.training.methods.registry import method
from dffl.training.parts import Part
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg, ServerState
from dffl.training.trainers.base import blank_rows, fetched

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


class DittoModels(NamedTuple):
    """The shared vector, and each client's own vector."""

    shared: np.ndarray
    own: np.ndarray


@dataclass(frozen=True)
class DittoTrainer(FedAvg):
    """The rounds of FedAvg; in each of its rounds, a client also trains its own vector, which never leaves it."""

    name: ClassVar[str] = "ditto"
    towards: float = 0.1
    """The strength of the pull of the own vector towards the shared one."""
    own_epochs: int | None = None

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        answer = super().visit(site, sent)
        epochs = self.own_epochs or site.settings.local_epochs
        own_vectors = site.train(
            site.kept("vector", site.initial), epochs, sent["round"] * epochs, purpose=Purpose.TUNE,
            recipe=replace(self.recipe(site.recipe), pull=self.towards, protects=None), anchor=sent["shared"],
            rate=sent["rate"], round=sent["round"], label="own",
        )  # fmt: skip
        site.keep("vector", own_vectors.vectors)
        return answer

    def finish(self, run: Run, part: Part, state: ServerState) -> DittoModels:
        return DittoModels(state.shared, fetched(run, self, part))

    def blank(self, run: Run, part: Part) -> DittoModels:
        return DittoModels(super().blank(run, part), blank_rows(run, part))

    def work(self, run: Run, part: Part) -> float:
        epochs = run.settings.local_epochs
        return super().work(run, part) * (1 + (self.own_epochs or epochs) / epochs)


@method("ditto", label="Ditto", colour="#44AA99")
def ditto(run: Run, *, pull: float = 0.1, own_epochs: int | None = None) -> Outcome:
    """Each client's own model, trained with a pull towards the shared one; ``own_epochs`` in a round, else local_epochs."""
    require_number("pull", pull, 0.0, float("inf"), "> 0 and finite")
    if own_epochs is not None:
        require_whole("own_epochs", own_epochs, least=1, most=10**5)
    trained = run.trained(DittoTrainer(towards=float(pull), own_epochs=own_epochs))
    return Outcome(run.personal(trained.own), run.common(trained.shared)[1])
