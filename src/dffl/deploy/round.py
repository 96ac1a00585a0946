"""One round: orders are sent, answers are checked on arrival, and every selected site gets exactly one outcome.

The round closes when every site has answered, is dead or is late. If fewer updates than the quorum were accepted, it stays
open until a time-out for sites that return.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.ledger import ACCEPTED, DEAD, LATE, LEFT_OUT, REFUSED, RoundRecord
from dffl.deploy.messages import TROUBLES
from dffl.deploy.site_view import ActiveClock, SiteView
from dffl.training.engines.base import Engine, Fields
from dffl.training.trainers.federated import Federated, ServerState


class QuorumError(RuntimeError):
    """Too few sites took part until the time-out; the state is kept."""


class Round:
    """The current round."""

    def __init__(
        self,
        plan: FederationPlan,
        sites: Mapping[str, SiteView],
        counts: Mapping[str, Mapping[str, int]],
        job: int,
        trainer: Federated,
        engine: Engine,
        state: ServerState,
        members: Sequence[str],
        clock: ActiveClock,
        log: logging.Logger,
    ):
        self.plan, self.sites, self.clock, self.log = plan, sites, clock, log
        self.counts = counts
        """The numbers of samples of all sites that have joined."""
        self.job, self.round = job, state.round
        self.members = list(members)
        self.trainer, self.engine, self.state = trainer, engine, state
        self.started = time.monotonic()
        self.waiting = dict.fromkeys(members, clock.now())
        """The sites without an outcome, each with the start of the wait for it."""
        self.outcomes: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        """The process of each site whose answer was refused: the site may fix the problem and restart."""
        self.fields: dict[str, Fields] = {}
        self.scalars: dict[str, dict[str, float]] = {}
        self.slowest = 0.0
        """The longest computing time that a site has reported."""
        self.sent = self.received = 0
        self.needed = self._needed()
        self._quorum_missing_since: float | None = None

    @property
    def accepted(self) -> int:
        """The number of accepted updates so far."""
        return list(self.outcomes.values()).count(ACCEPTED)

    def take_answer(self, name: str, values: Mapping[str, Any]) -> None:
        """Check a site's answer, and set the site's outcome."""
        why = self._rejection_reason(name, values)
        if why is not None:
            self.settle(name, f"{REFUSED}: {why}")
            return
        self.settle(name, ACCEPTED)
        self.fields[name] = dict(values["fields"])
        self.scalars[name] = {key: float(value) for key, value in values["scalars"].items()}
        self.slowest = max(self.slowest, min(values["seconds"], time.monotonic() - self.started))

    def take_trouble(self, name: str, why: str) -> None:
        """Set the outcome of a site that cannot answer."""
        self.settle(name, f"{REFUSED}: {why if why in TROUBLES else 'the site gave an unknown reason'}")

    def _rejection_reason(self, name: str, values: Mapping[str, Any]) -> str | None:
        """Why an answer is refused, or None."""
        why = self.trainer.refusal(values["fields"], self.engine, self.state)
        count = self.sites[name].counts.get(str(self.job), 0)
        scalars = values["scalars"]
        if why is not None:
            return why
        if values["count"] != count or count < 1:
            return f"it reports {values['count']} samples, and reported {count} before"
        if (why := self.plan.too_many(self.counts).get(name)) is not None:
            return why
        if any(np.abs(array).max(initial=0.0) > self.plan.largest_parameter for array in values["fields"].values()):
            return f"it contains a number above {self.plan.largest_parameter:g}"
        if set(scalars) - set(self.plan.scalars) or not all(map(_is_scalar, scalars.values())):
            return "its scalars are not in the plan, or not finite"
        return None

    def settle(self, name: str, outcome: str) -> None:
        """Set the outcome of a site in `waiting`."""
        del self.waiting[name]
        self.outcomes[name] = outcome
        if outcome.startswith(REFUSED):
            self._refused[name] = self.sites[name].instance
        site = self.sites[name]
        if (
            outcome == DEAD and not site.logged_dead
        ):  # log it once, not in every round until the site returns; the ledger has every round
            self.log.warning("%s: dead from job %d, round %d, until it joins again", name, self.job, self.round)
        elif outcome not in (ACCEPTED, DEAD):
            self.log.warning("%s: job %d, round %d: %s", name, self.job, self.round, outcome)
        site.logged_dead = outcome == DEAD

    def leave_out(self, sites: Mapping[str, str]) -> None:
        """Mark accepted answers that are not used, each with the reason."""
        for name, why in sites.items():
            self.outcomes[name] = f"{LEFT_OUT}: {why}"
            self.log.warning("%s: job %d, round %d: %s", name, self.job, self.round, self.outcomes[name])

    def closed(self, order: Callable[[str], None], run: str) -> bool:
        """Whether the round is over.

        Sites that are dead or late get their outcome. While too few updates are accepted, the order is sent again to sites
        that returned, or restarted after a refusal.
        """
        now, timeouts = self.clock.now(), self.plan.timeouts
        for name, since in list(self.waiting.items()):
            if self.sites[name].away > timeouts.dead:
                self.settle(name, DEAD)
            elif now - since > timeouts.round:
                self.settle(name, LATE if self.sites[name].joined else DEAD)
        if self.waiting:
            return False
        if self.accepted >= self.needed:
            return True
        self._quorum_missing_since = now if self._quorum_missing_since is None else self._quorum_missing_since
        if now - self._quorum_missing_since > timeouts.quorum:
            what = f"job {self.job}, round {self.round}: {self.accepted} updates were accepted, {self.needed} are needed"
            outcomes = ", ".join(f"{name} {outcome}" for name, outcome in self.outcomes.items())
            raise QuorumError(f"{what} ({outcomes}); not enough sites returned within {timeouts.quorum:g} s")
        for name, outcome in list(self.outcomes.items()):
            restarted = outcome.startswith(REFUSED) and self._refused.get(name) != self.sites[name].instance
            if (outcome in (DEAD, LATE) or restarted) and self.sites[name].is_ready(run):
                del self.outcomes[name]
                self.waiting[name] = now
                order(name)
        return False

    def record(self) -> RoundRecord:
        """The round, for the ledger."""
        means = {}
        for key in self.plan.scalars:
            # In the order of members: a floating-point sum depends on its order, and answers arrive in any order.
            accepted = [name for name in self.members if self.outcomes[name] == ACCEPTED]
            reported = [self.scalars[name][key] for name in accepted if key in self.scalars[name]]
            if reported:
                means[key] = float(np.mean(reported))
        outcomes = {name: self.outcomes[name] for name in self.members}
        seconds = time.monotonic() - self.started
        return RoundRecord(self.job, self.round, outcomes, seconds, self.slowest, self.sent, self.received, means)

    def _needed(self) -> int:
        """The number of updates that the round needs, by the quorum and the aggregator."""
        aggregator = self.trainer.aggregator(self.trainer.planned(self.plan.settings))
        for count in range(max(math.ceil(self.plan.quorum * len(self.members) - 1e-9), 1), len(self.members)):
            try:
                aggregator.check(count)
                return count
            except ValueError:
                continue
        return len(self.members)


def _is_scalar(value: np.ndarray) -> bool:
    """Whether it is a single number within the range of float32, so that a sum of many is finite."""
    return value.shape == () and bool(np.abs(value.astype(np.float64)) <= np.finfo(np.float32).max)
