"""`scaffold`: federated averaging in which control variates take out the drift of each client (Karimireddy et al., 2020).

A client's control variate is the mean of its raw gradients over the steps of its last round. With plain gradient steps that is
the form (x - y) / (K eta) of the paper; with Adam, whose steps are no gradients, only this form makes sense. Clients weigh
as much as they have samples (in the paper, all equally).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.training.aggregators import Memory
from dffl.training.engines.base import Engine, Fields
from dffl.training.methods.registry import method
from dffl.training.run import Outcome, Run
from dffl.training.trainers import Federated, ServerState

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


@dataclass(frozen=True)
class ScaffoldTrainer(Federated):
    """The control variate of the server is sent with the shared vector; each client keeps its own."""

    name: ClassVar[str] = "scaffold"

    def begin(self, engine: Engine) -> ServerState:
        return ServerState(0, engine.initial, {"control": np.zeros(engine.initial.size)})

    def sent(self, state: ServerState) -> dict[str, Any]:
        return {"control": state.memory["control"].astype(state.shared.dtype)}

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        epochs, round = site.settings.local_epochs, sent["round"]
        before = site.kept("control", np.zeros_like(site.initial))
        trained = site.train(
            sent["shared"], epochs, round * epochs, recipe=replace(self.recipe(site.recipe), measure=True),
            correction=sent["control"] - before, rate=sent["rate"], round=round,
        )  # fmt: skip
        site.keep("control", trained.gradients)
        return {"vector": trained.vectors, "change": trained.gradients - before}

    def answer_form(self, engine: Engine, state: ServerState) -> Fields:
        return {"vector": np.zeros_like(state.shared), "change": np.zeros_like(state.shared)}

    def absorb(self, memory: Memory, fields: Fields, share: float) -> None:
        # The mean over all clients, also over those that did not take part and whose variate stays as it is; weighted by
        # samples, as the shared vector is: otherwise the two would pull towards different optima.
        memory["control"] = memory["control"] + share * fields["change"].astype(np.float64)


@method("scaffold", label="SCAFFOLD", colour="#117733")
def scaffold(run: Run) -> Outcome:
    """The shared model of clients whose drift is corrected."""
    return Outcome(*run.common(run.trained(ScaffoldTrainer())))
