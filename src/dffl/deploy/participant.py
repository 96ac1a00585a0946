"""A site's side: answers the coordinator's orders with the methods' own code, and keeps what is its own.

The samples, the set and the personal model stay here. What a training keeps at the client between rounds (a personal part, a
control variate) is on the site's disk before the answer leaves, so that a site that was killed goes on with its own state.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

import dffl
from dffl.data.agreement import Agreement
from dffl.deploy.messages import PROTOCOL, TO_SITE, TROUBLES, Message, decode, encode
from dffl.deploy.network import COORDINATOR, Event, Link, carrier_version
from dffl.deploy.plan import Plan
from dffl.deploy.site_run import Jobs, SiteRun, federated_jobs
from dffl.deploy.site_state import Finals, SiteState
from dffl.deploy.state import deep_units, wrong_units
from dffl.federation import Client
from dffl.fitting import UNUSED, Fit, perform
from dffl.predictor import Normaliser
from dffl.training.engines.processes import UNIT_FIELDS
from dffl.training.history import DivergenceError
from dffl.training.privacy.levels import ClientPrivacy
from dffl.training.schedules import Schedule
from dffl.training.trainers.federated import ServerState, sampled

LONGEST_REASON = 300
BEAT = 1.0
"""Seconds between two signs of life."""
AGAIN = 10.0
"""Seconds after which a site that got no answer offers itself again."""


class RefusedError(ValueError):
    """The coordinator refuses this site, and says why."""


class LostStateError(ValueError):
    """What this site kept of a run is not where it should be."""


class UnreachableError(OSError):
    """The coordinator is not there, or ended the run."""


class Participant:
    """One site of a federation."""

    def __init__(
        self,
        plan: Plan,
        client: Client,
        link: Link,
        state: SiteState,
        log: logging.Logger,
        shown: Callable[[str], None] = lambda line: None,
    ):
        self.plan, self.client, self.link, self.state, self.log, self._shown = plan, client, link, state, log, shown
        self._instance = uuid.uuid4().hex
        self._joined = threading.Event()
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._beat, name="dffl beat", daemon=True)
        self._connected = False
        self._alone_since = self._offered = time.monotonic()
        self._backlog: deque[Message] = deque()
        self._run: SiteRun | None = None
        self._jobs: Jobs = {}
        self._has_answered = False
        self.traffic: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        """Connect, and give signs of life until the block ends."""
        self.link.start()
        self._beats.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()  # also after a failure: so it need not be missed first
        self._over.set()
        self._beats.join()
        self.link.close()

    def take_part(self) -> Fit:
        """Join, answer orders until all rounds are over, and return the site's own fit."""
        while True:
            message = self._next()
            if message.kind == "open":
                self._open(message.values["run"])
            elif message.kind == "units":
                self._take_units(message.values)
            elif message.kind == "order":
                self._answer(message.values)
            elif message.kind == "stop":
                raise UnreachableError(f"the coordinator ended the run: {message.values['why']}; join again to go on")
            elif message.kind == "finish":
                return self._finish(message.values)

    def done(self, fit: Fit) -> None:
        """Say that the site has its model, with the results that the plan names."""
        known = fit.members[self.client.name].choices
        scalars = {name: np.float64(known[name]) for name in self.plan.results if name in known}
        self._send("done", run=self.state.run, scalars={name: np.asarray(value) for name, value in scalars.items()})
        self._leave()

    def _leave(self) -> None:
        if self._joined.is_set():
            self._joined.clear()
            self._send("leave")

    # Messages.

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            if self._joined.is_set():
                self._send("beat")

    def _send(self, kind: str, **values: Any) -> bool:
        sent = self.link.send(COORDINATOR, encode(kind, **values))
        if sent:
            self.traffic |= {(kind, name) for name in values}
        return sent

    def _next(self) -> Message:
        """The next message to act on; the network's ups and downs are dealt with here, and old orders are left out."""
        while True:
            event = self.link.next(0.0 if self._backlog else BEAT)
            if event is not None:
                self._take(event)
            elif self._backlog:
                message = self._backlog.popleft()
                if message.kind != "order" or all(other.kind != "order" for other in self._backlog):
                    return message
            elif not self._joined.is_set():
                self._give_up()

    def _take(self, event: Event) -> None:
        if event.peer != COORDINATOR:
            return
        if event.what == "up":
            self._connected = True
            self._offer()
        elif event.what == "refused":
            raise self._refused(event.content.decode())
        elif event.what == "down":
            self.log.info("the connection to the coordinator is lost; it is tried again")
            self._shown("the coordinator does not answer; trying again (Ctrl-C stops, and joining later goes on)")
            self._connected = False
            self._alone()
        elif (message := self._read(event.content)) is None or message.kind == "welcome":
            return
        elif message.kind == "rejoin":
            self.log.info("the coordinator had taken this site for dead; it offers itself again")
            self._alone()
            self._offer()
        else:
            self._backlog.append(message)

    def _alone(self) -> None:
        """Not joined any more; what was asked before does not count."""
        self._joined.clear()
        self._backlog.clear()
        self._alone_since = time.monotonic()

    def _read(self, content: bytes) -> Message | None:
        try:
            message = decode(content, TO_SITE)
        except ValueError as error:
            self.log.warning("a message of the coordinator is left out: %s", error)
            return None
        self.traffic |= {(message.kind, name) for name in message.values}
        if message.kind != "welcome":
            return message if self._joined.is_set() else None
        if message.values["instance"] in ("", self._instance):
            if not message.values["accepted"]:
                raise self._refused(message.values["why"])
            self._joined.set()
            self._shown("joined; waiting for rounds")
        return message

    def _refused(self, why: str) -> RefusedError:
        """The coordinator's reason, in one line of bounded length."""
        told = " ".join(why.split())[:LONGEST_REASON]
        self.log.warning("refused: %s", told)
        return RefusedError(told)

    def _offer(self) -> None:
        self._offered = time.monotonic()
        names = Agreement.of(self.client)
        self._send(
            "join", protocol=PROTOCOL, dffl=dffl.__version__, carrier=carrier_version(), plan=self.plan.digest,
            columns=names.digest, rows=self.plan.min_rows if self._hides_itself else self.client.n,
            time=time.time(), finished=self.state.with_model(), instance=self._instance,
        )  # fmt: skip

    def _give_up(self) -> None:
        most, now = max(self.plan.patience.join, self.plan.patience.quorum), time.monotonic()
        if self._connected and now - self._offered > AGAIN:
            self._offer()
        if now - self._alone_since > most:
            fix = "ask whether it runs, and whether a firewall lets this machine dial out to it"
            raise UnreachableError(f"no coordinator at {self.plan.address} for {most:.0f} s; {fix}; join again to go on")

    @cached_property
    def _rows(self) -> bytes:
        """Which rows these are: with privacy, a round that was answered is not answered of other rows."""
        return hashlib.sha256(self.client.x.tobytes() + self.client.c.tobytes()).digest()

    @property
    def _hides_itself(self) -> bool:
        """Whether all of the site's data are hidden, their number too: then all sites weigh the same."""
        return isinstance(self.plan.settings.hides, ClientPrivacy)

    # What is asked.

    def _open(self, run: str) -> None:
        """Lay out the samples for a run, and say how many train."""
        if self.plan.settings.hides is not None and self._has_answered and self.state.run != run:
            fix = "every run spends the privacy of the plan once more; if you agree, join again"
            raise ValueError(f"the coordinator begins another run; {fix}")
        own = self._run if self._run is not None and self.state.run == run else self._begun(run)
        counts: dict[str, int] = {}
        units: dict[str, np.ndarray] = {}
        for place, (_, part) in enumerate(self._jobs.values()):
            counts[str(place)] = 1 if self._hides_itself else own.own_units(part)[1]
        if self.plan.pools:
            for part in own.parts:
                unit, counts[f"part {part}"] = own.own_units(part)
                units |= {f"{part}/{name}": np.asarray(getattr(unit, name), np.float64) for name in UNIT_FIELDS}
        self._send("opened", run=run, counts=counts, units=units)

    def _begun(self, run: str) -> SiteRun:
        """The site's side of a run, from where its own disk says it is."""
        settings = replace(self.plan.settings, tau=self.state.begin(run, self.plan.digest, self.plan.tau))
        made = self._run = SiteRun(self.client, settings, len(self.plan.sites), self.state.noise())
        made.use_units(self.state.units())
        self._jobs = federated_jobs(made, self.plan.asked)
        for place, name in enumerate(self._jobs):
            made.history.restore(name, self.state.seen(place))
        return made

    def _take_units(self, values: dict[str, Any]) -> None:
        if self._run is None or values["run"] != self.state.run:
            return
        if not self.plan.pools:
            self.log.warning("units of the coordinator are left out: the plan pools no statistics")
            return
        found = deep_units(values["units"])
        why = wrong_units(found, self.plan.inputs)
        if why is not None or not {str(part) for part in self._run.parts} <= set(found):
            raise ValueError(f"the units that the coordinator sent cannot be used: {why or 'a part of the samples has none'}")
        self._run.use_units({part: Normaliser(**own) for part, own in found.items()})
        self.state.keep_units(self._run.shared_units)

    def _answer(self, order: dict[str, Any]) -> None:
        """Train in one round and answer; a second order for the same round gives the same answer."""
        if self._run is None or order["run"] != self.state.run:
            return
        place, round = order["job"], order["round"]
        where = {"run": order["run"], "job": place, "round": round}
        begun = time.monotonic()
        try:
            if (why := self._objection(order)) is not None:
                self.log.warning("job %d, round %d: %s", place, round, why)
                self._send("trouble", **where, why=why)
                return
            before = self.state.kept(place, order["last"])
            lost = not before and self.state.lost(place, order["last"])
            if lost and self.plan.settings.hides is not None:
                raise self._lost_state(order["last"])  # with its noise, and with what was asked: a round could be asked twice
            name, (trainer, part) = list(self._jobs.items())[place]
            engine, scope = self._run.engine(part), trainer.label
            engine.restore(scope, {self.client.name: before})
            self._run.history.forget(name, round)
            sent = dict(order["sent"]) | {"rate": order["rate"], "round": round}
            [answer] = list(self._run.ask(trainer, part, **sent))
            fields = {key: np.asarray(value)[0] for key, value in answer.fields.items()}
            kept, seen = engine.kept(scope).get(self.client.name, {}), self._run.history.saved(name)
            if lost and kept:
                raise self._lost_state(order["last"])
            self.state.keep(place, round, order["last"], kept, seen)
        except LostStateError:
            raise
        except DivergenceError as error:
            self.log.warning("%s", error)
            self._send("trouble", **where, why=TROUBLES[0])
            return
        except (ValueError, RuntimeError, KeyError, TypeError) as error:
            self.log.warning("job %d, round %d: %s", place, round, error)
            self._shown(f"could not train: {error}")
            self._send("trouble", **where, why=TROUBLES[1])
            return
        said = {key: value for key, value in self._run.history.latest(name).items() if key in self.plan.scalars}
        scalars = {key: np.asarray(value, np.float64) for key, value in said.items()}
        count = 1 if self._hides_itself else int(engine.counts[0])
        self._has_answered = True
        self._send("answer", **where, count=count, seconds=time.monotonic() - begun, fields=fields, scalars=scalars)
        which = f", training {place + 1} of {len(self._jobs)}" if len(self._jobs) > 1 else ""
        rounds = trainer.planned(self.plan.settings).rounds
        self._shown(f"{self.plan.asked.method.name}{which}: round {round + 1} of {rounds}")

    def _lost_state(self, round: int) -> LostStateError:
        fix = "join from the folder with which this site took part, or ask the coordinator for a new run"
        return LostStateError(f"{self.state.folder}: has nothing of what this site kept after round {round + 1}; {fix}")

    def _objection(self, order: dict[str, Any]) -> str | None:
        """Why a site does not answer an order, if it does not: a curious coordinator could ask for more than the plan says."""
        assert self._run is not None
        place, round, jobs = order["job"], order["round"], list(self._jobs.values())
        if not 0 <= place < len(jobs):
            return TROUBLES[2]
        trainer, part = jobs[place]
        settings, names = trainer.planned(self.plan.settings), self.plan.sites
        if not 0 <= round < settings.rounds or names.index(self.client.name) not in sampled(
            names, part.seeded(settings), round
        ):
            return TROUBLES[2]
        rate = Schedule.of(settings.schedule).factor(round, settings.rounds)
        form = trainer.order_form(self._run.engine(part))
        if not math.isclose(order["rate"], rate, rel_tol=1e-9, abs_tol=1e-12) or not _has_form(order["sent"], form):
            return TROUBLES[4]
        if self.plan.settings.hides is not None and not self.state.asked_once(place, round, order, self._rows):
            return TROUBLES[3]
        return None

    def _finish(self, values: dict[str, Any]) -> Fit:
        """All rounds are over: what is left happens here."""
        own = self._run if self._run is not None and values["run"] == self.state.run else self._begun(values["run"])
        for place, (trainer, part) in enumerate(self._jobs.values()):
            rounds, form = trainer.planned(self.plan.settings).rounds, {str(place): trainer.begin(own.engine(part)).shared}
            given = {name: array for name, array in values["shared"].items() if name == str(place)}
            over = values["rounds"].get(str(place)) == rounds and values["last"].get(str(place), rounds + 1) <= rounds
            if not over or not _has_form(given, form):  # before it is kept: the next start would go on from it
                raise ValueError(f"the coordinator's model of training {place} is not of the plan's form; ask the coordinator")
        finals = {
            place: (ServerState(values["rounds"][str(place)], values["shared"][str(place)], {}), values["last"][str(place)] - 1)
            for place in range(len(self._jobs))
        }
        self.state.keep_finals(finals, {name: count for name, count in values["unused"].items() if name in self.plan.sites})
        return self._fitted(finals)

    def unfinished(self) -> Fit | None:
        """The fit of a run whose rounds are over, if the site was interrupted before it had a model. It needs nobody for it."""
        run = self.state.unfinished(self.plan.digest)
        if not run:
            return None
        self._begun(run)
        return self._fitted(self.state.finals())

    def _fitted(self, finals: Finals) -> Fit:
        """The site's own fit, from the shared models."""
        run = self._run
        assert run is not None
        self._shown("all rounds are over; the rest is computed here")
        for place, (name, (trainer, part)) in enumerate(self._jobs.items()):
            run.finals[name], last = finals[place]
            if self.state.lost(place, last):
                raise self._lost_state(last)
            # What the site keeps of a training is that of its last accepted round.
            run.engine(part).restore(trainer.label, {self.client.name: self.state.kept(place, last)})
        fit, unused = perform(run, self.plan.asked), self.state.unused()
        return replace(fit, about=fit.about | {UNUSED: unused}) if unused else fit


def _has_form(found: Mapping[str, np.ndarray], form: Mapping[str, np.ndarray]) -> bool:
    """Whether these are finite arrays of this form."""
    alike = {name: (array.shape, array.dtype) for name, array in form.items()}
    return {name: (array.shape, array.dtype) for name, array in found.items()} == alike and all(
        np.isfinite(array).all() for array in found.values()
    )
