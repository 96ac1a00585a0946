"""`fedrep`: a shared body and a personal head, which never leaves its client (Collins et al., 2021).

In each of its rounds a client first trains its head on the shared body, then the body under its head, and sends the body alone.
After the last round every client trains its head once more, on the final body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.checks import require_whole
from dffl.training.engines.base import Engine, Fields
from dffl.training.methods.registry import method
from dffl.training.parts import Part
from dffl.training.run import Outcome, Run
from dffl.training.trainers import Federated, ServerState
from dffl.training.trainers.base import blank_rows, fetched

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


@dataclass(frozen=True)
class FedRepTrainer(Federated):
    """The aggregator sees only the numbers of the body; a client keeps its whole vector."""

    name: ClassVar[str] = "fedrep"
    personal: tuple[str, ...] = ("last",)
    head_epochs: int | None = None

    def begin(self, engine: Engine) -> ServerState:
        return ServerState(0, engine.initial[engine.template.layers(self.personal).others.mask], {})

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        epochs, round = site.settings.local_epochs, sent["round"]
        head = site.template.layers(self.personal)
        body = head.others.mask
        vectors = site.kept("vector", site.initial).copy()
        vectors[:, body] = sent["shared"]
        recipe = self.recipe(site.recipe)
        common = {"rate": sent["rate"], "round": round}
        heads = self.head_epochs or epochs
        trained = site.train(vectors, heads, heads * round, recipe=replace(recipe, trains=head), label="head", **common)
        if round < site.settings.rounds:
            recipe = replace(recipe, trains=head.others)
            trained = site.train(trained.vectors, epochs, epochs * round, recipe=recipe, **common)
        site.keep("vector", trained.vectors)
        return {"vector": trained.vectors[:, body]}

    def finish(self, run: Run, part: Part, state: ServerState) -> np.ndarray:
        # One more visit, of all clients and only for the head: a client may not have taken part for many rounds.
        for _ in run.ask(self, part, round=state.round, shared=state.shared, rate=1.0):
            pass
        return fetched(run, self, part)

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return blank_rows(run, part)

    def check(self, run: Run, part: Part) -> None:
        super().check(run, part)
        template = run.engine(part).template
        if template.layers(self.personal).mask.all():
            raise ValueError(f"personal: {self.personal!r} is the whole network: nothing would be shared; use method 'local'")

    def work(self, run: Run, part: Part) -> float:
        epochs = run.settings.local_epochs
        heads = (self.head_epochs or epochs) / epochs
        return super().work(run, part) * (1 + heads) + float(run.engine(part).counts.sum()) * heads * epochs


@method("fedrep", label="FedRep", colour="#AA4499")
def fedrep(run: Run, *, personal: str | Sequence[str] = "last", head_epochs: int | None = None) -> Outcome:
    """A shared body under each client's own head.

    ``personal`` names the arrays that stay with the client: ``last``, the last layer, or names and patterns such as ``*.1``.
    ``head_epochs`` is how long a client trains its head in a round, else local_epochs.
    """
    if head_epochs is not None:
        require_whole("head_epochs", head_epochs, least=1, most=10**5)
    names = (personal,) if isinstance(personal, str) else tuple(personal)
    return Outcome(run.personal(run.trained(FedRepTrainer(personal=names, head_epochs=head_epochs))))
