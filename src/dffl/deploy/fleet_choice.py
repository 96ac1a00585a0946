"""The choice of a fleet as a job of one round: a site gets the models of the backtest, and answers one number per rule.

So a choice has what a round has: its form is checked on both sides, it waits for a quorum, it is recorded, and it resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.time.fleet import FEWEST_SITES, middle_of
from dffl.training.aggregators import Aggregator
from dffl.training.aggregators.robust import Median
from dffl.training.engines.base import Engine, Fields, in_name_order
from dffl.training.parts import Part
from dffl.training.settings import Settings
from dffl.training.trainers.federated import Federated, Server, ServerState

if TYPE_CHECKING:
    from dffl.training.engines.site import Site

MODEL = "model "
"""How the models of the backtest are called in an order, each with the number of its training behind it."""
NUMBERS = "margins"
"""The field of an answer."""


class _EnoughSites(Median):
    """The median of as many sites as one cannot outvote. Without a name of its own: no plan asks for it."""

    def check(self, participants: int) -> None:
        if participants < FEWEST_SITES:
            raise ValueError(f"the choice of a fleet needs {FEWEST_SITES} or more sites, found {participants}")


@dataclass(frozen=True)
class FleetChoice(Federated):
    """The job. Its result is the median of each rule's number."""

    name: ClassVar[str] = "fleet-choice"
    rules: int = 0
    models: tuple[tuple[int, str], ...] = ()
    """The size and the type of each model of the backtest."""

    def planned(self, settings: Settings) -> Settings:
        """One round, in which all sites are asked."""
        return replace(settings, rounds=1, client_fraction=1.0, schedule="constant")

    def begin(self, engine: Engine) -> ServerState:
        blank = {f"{MODEL}{number}": np.zeros(size, dtype) for number, (size, dtype) in enumerate(self.models)}
        return ServerState(0, np.zeros(self.rules), blank)

    def after(self, finals: Sequence[ServerState], state: ServerState) -> ServerState:
        """The state before the round, with the models of the trainings before it."""
        trained = zip(state.memory, finals[: len(self.models)], strict=True)
        return state._replace(memory={name: final.shared for name, final in trained})

    def sent(self, state: ServerState) -> dict[str, Any]:
        return dict(state.memory)

    def answer_form(self, engine: Engine, state: ServerState) -> Fields:
        return {NUMBERS: np.zeros(self.rules)}

    def aggregator(self, settings: Settings) -> Aggregator:
        return _EnoughSites()

    def next(self, run: Server, part: Part, state: ServerState) -> ServerState:
        engine = run.engine(part)
        members = np.arange(len(engine.names))
        answers = run.ask(self, part, members, round=state.round, shared=state.shared, rate=1.0, **self.sent(state))
        heard = [fields[NUMBERS] for _, fields in in_name_order(answers, members, engine.names, False)]
        run.leave_out(self, part, state.round, {})
        return ServerState(state.round + 1, middle_of(heard), {})

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        raise NotImplementedError("a site judges its own rows by itself, see dffl.deploy.site_work")
