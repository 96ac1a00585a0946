"""One round: orders go out, answers are checked as they come, and every selected site gets exactly one outcome.

It closes when every site has answered, is dead or is late. If fewer updates than the quorum were accepted, it stays open for
those who come back, for a bounded time.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dffl.deploy.clock import LivedClock
from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, LEFT_OUT, REFUSED, RoundRecord
from dffl.deploy.messages import TROUBLES
from dffl.deploy.plan import Plan
from dffl.deploy.sites import SiteView
from dffl.training.engines.base import Engine, Fields
from dffl.training.trainers.federated import Federated, ServerState


class QuorumError(RuntimeError):
    """Too few sites were there for too long; the state is kept."""


class HeldRound:
    """The round that is held now."""

    def __init__(
        self,
        plan: Plan,
        sites: Mapping[str, SiteView],
        counts: Mapping[str, Mapping[str, int]],
        place: int,
        trainer: Federated,
        engine: Engine,
        state: ServerState,
        members: Sequence[str],
        clock: LivedClock,
        log: logging.Logger,
    ):
        self.plan, self.sites, self.clock, self.log = plan, sites, clock, log
        self.counts = counts
        """The numbers of samples of all sites that have been there."""
        self.place, self.round = place, state.round
        self.members = list(members)
        self.trainer, self.engine, self.state = trainer, engine, state
        self.begun = time.monotonic()
        self.waiting = dict.fromkeys(members, clock.now())
        """The sites that have no outcome yet, each with the moment since which it is waited for."""
        self.outcomes: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        """The process of each site whose answer was refused: the site may mend what was wrong and start again."""
        self.fields: dict[str, Fields] = {}
        self.scalars: dict[str, dict[str, float]] = {}
        self.slowest = 0.0
        """The longest time that a site has computed, by its own word."""
        self.sent = self.received = 0
        self.needed = self._needed()
        self._too_few_since: float | None = None

    @property
    def accepted(self) -> int:
        """How many updates count so far."""
        return list(self.outcomes.values()).count(ACCEPTED)

    def take_answer(self, name: str, values: Mapping[str, Any]) -> None:
        """A site's answer, which is checked and settles its outcome."""
        why = self._objection(name, values)
        if why is not None:
            self.settle(name, f"{REFUSED}: {why}")
            return
        self.settle(name, ACCEPTED)
        self.fields[name] = dict(values["fields"])
        self.scalars[name] = {key: float(value) for key, value in values["scalars"].items()}
        self.slowest = max(self.slowest, min(values["seconds"], time.monotonic() - self.begun))

    def take_trouble(self, name: str, why: str) -> None:
        """A site cannot answer."""
        self.settle(name, f"{REFUSED}: {why if why in TROUBLES else 'the site gave no reason that is known'}")

    def _objection(self, name: str, values: Mapping[str, Any]) -> str | None:
        """Why an answer must not be used, if it must not."""
        why = self.trainer.refusal(values["fields"], self.engine, self.state)
        count = self.sites[name].counts.get(str(self.place), 0)
        scalars = values["scalars"]
        if why is not None:
            return why
        if values["count"] != count or count < 1:
            return f"it counts {values['count']} samples, and said {count} before"
        if (why := self.plan.too_many(self.counts).get(name)) is not None:
            return why
        if any(np.abs(array).max(initial=0.0) > self.plan.largest_parameter for array in values["fields"].values()):
            return f"a number in it is larger than {self.plan.largest_parameter:g}"
        if set(scalars) - set(self.plan.scalars) or not all(map(_is_scalar, scalars.values())):
            return "its scalars are not those of the plan, or not finite"
        return None

    def settle(self, name: str, outcome: str) -> None:
        """Give a site that is waited for its outcome."""
        del self.waiting[name]
        self.outcomes[name] = outcome
        if outcome.startswith(REFUSED):
            self._refused[name] = self.sites[name].instance
        site = self.sites[name]
        if outcome == DEAD and not site.told_dead:  # once, not in every round until it is back; the ledger has them all
            self.log.warning("%s: dead from job %d, round %d, until it joins again", name, self.place, self.round)
        elif outcome not in (ACCEPTED, DEAD):
            self.log.warning("%s: job %d, round %d: %s", name, self.place, self.round, outcome)
        site.told_dead = outcome == DEAD

    def leave_out(self, sites: Mapping[str, str]) -> None:
        """Of the sites whose answers were accepted, those that are left out, each with the reason."""
        for name, why in sites.items():
            self.outcomes[name] = f"{LEFT_OUT}: {why}"
            self.log.warning("%s: job %d, round %d: %s", name, self.place, self.round, self.outcomes[name])

    def closed(self, order: Callable[[str], None], run: str) -> bool:
        """Whether the round is over.

        Who will not answer gets an outcome; while too few are accepted, those who came back, or have started again after a
        refusal, get the order again.
        """
        now, patience = self.clock.now(), self.plan.patience
        for name, since in list(self.waiting.items()):
            if self.sites[name].away > patience.dead:
                self.settle(name, DEAD)
            elif now - since > patience.round:
                self.settle(name, LATE if self.sites[name].joined else DEAD)
        if self.waiting:
            return False
        if self.accepted >= self.needed:
            return True
        self._too_few_since = now if self._too_few_since is None else self._too_few_since
        if now - self._too_few_since > patience.quorum:
            what = f"job {self.place}, round {self.round}: {self.accepted} updates were accepted, {self.needed} are needed"
            outcomes = ", ".join(f"{name} {outcome}" for name, outcome in self.outcomes.items())
            raise QuorumError(f"{what} ({outcomes}); not enough came back within {patience.quorum:g} s")
        for name, outcome in list(self.outcomes.items()):
            started_again = outcome.startswith(REFUSED) and self._refused.get(name) != self.sites[name].instance
            if (outcome in (DEAD, LATE) or started_again) and self.sites[name].here(run):
                del self.outcomes[name]
                self.waiting[name] = now
                order(name)
        return False

    def record(self) -> RoundRecord:
        """The round, for the ledger."""
        means = {}
        for key in self.plan.scalars:
            # In the order of members: a sum depends on its order, and answers come in any.
            accepted = [name for name in self.members if self.outcomes[name] == ACCEPTED]
            found = [self.scalars[name][key] for name in accepted if key in self.scalars[name]]
            if found:
                means[key] = float(np.mean(found))
        outcomes = {name: self.outcomes[name] for name in self.members}
        seconds = time.monotonic() - self.begun
        return RoundRecord(self.place, self.round, outcomes, seconds, self.slowest, self.sent, self.received, means)

    def _needed(self) -> int:
        """How many updates the round needs: the quorum, and what the aggregator asks for."""
        aggregator = self.trainer.aggregator(self.trainer.planned(self.plan.settings))
        for count in range(max(math.ceil(self.plan.quorum * len(self.members) - 1e-9), 1), len(self.members)):
            try:
                aggregator.check(count)
                return count
            except ValueError:
                continue
        return len(self.members)


def _is_scalar(found: np.ndarray) -> bool:
    """A single number, also as a float32, of which many can be added up."""
    return found.shape == () and bool(np.abs(found.astype(np.float64)) <= np.finfo(np.float32).max)
