"""A site's side: answers the coordinator's orders with the code of the method.

The samples, the set and the personal model stay here. A training may keep state at the client between rounds (a personal part,
a control variate). It is written to the site's disk before the answer is sent, so that a killed site resumes with it.
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
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.messages import PROTOCOL, TO_SITE, TROUBLES, Message, decode, encode
from dffl.deploy.network import COORDINATOR, Event, Link, nvflare_version
from dffl.deploy.run_state import unit_problem, units_from_arrays
from dffl.deploy.site_run import Jobs, SiteRun, federated_jobs
from dffl.deploy.site_state import Finals, SiteState
from dffl.federation import Client
from dffl.fitting import UNUSED, Fit, perform
from dffl.predictor import Normaliser
from dffl.tables.description import Agreement
from dffl.training.checkpoint import data_fingerprint
from dffl.training.history import DivergenceError
from dffl.training.optimisers import Schedule
from dffl.training.privacy.levels import ClientPrivacy
from dffl.training.trainers.federated import ServerState, sampled
from dffl.training.units import UNIT_FIELDS

MAX_REASON_LENGTH = 300
HEARTBEAT_SECONDS = 1.0
"""Seconds between two heartbeats."""
REJOIN_SECONDS = 10.0
"""Seconds after which a site that got no answer sends its join again."""


class RefusedError(ValueError):
    """The coordinator rejects this site, with a reason."""


class LostStateError(ValueError):
    """The state that this site kept of a run is missing."""


class UnreachableError(OSError):
    """The coordinator cannot be reached, or ended the run."""


class Participant:
    """One site of a federation."""

    def __init__(
        self,
        plan: FederationPlan,
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
        self._heartbeats = threading.Thread(target=self._send_heartbeats, name="dffl beat", daemon=True)
        self._connected = False
        self._disconnected_since = self._join_sent = time.monotonic()
        self._backlog: deque[Message] = deque()
        self._run: SiteRun | None = None
        self._jobs: Jobs = {}
        self._has_answered = False
        self.traffic: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        """Connect, and send heartbeats until the block ends."""
        self.link.start()
        self._heartbeats.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()  # also after a failure, so that the coordinator need not wait for a time-out
        self._over.set()
        self._heartbeats.join()
        self.link.close()

    def take_part(self) -> Fit:
        """Join, answer orders until all rounds are over, and return the site's fit."""
        while True:
            message = self._next()
            if message.kind == "open":
                self._open(message.values["run"])
            elif message.kind == "units":
                self._take_units(message.values)
            elif message.kind == "order":
                self._answer(message.values)
            elif message.kind == "stop":
                raise UnreachableError(f"the coordinator ended the run: {message.values['why']}; join again to resume")
            elif message.kind == "finish":
                return self._finish(message.values)

    def done(self, fit: Fit) -> None:
        """Report that the site has its model, with the results in the plan."""
        known = fit.members[self.client.name].choices
        scalars = {name: np.float64(known[name]) for name in self.plan.results if name in known}
        self._send("done", run=self.state.run, scalars={name: np.asarray(value) for name, value in scalars.items()})
        self._leave()

    def _leave(self) -> None:
        if self._joined.is_set():
            self._joined.clear()
            self._send("leave")

    # Messages.

    def _send_heartbeats(self) -> None:
        while not self._over.wait(HEARTBEAT_SECONDS):
            if self._joined.is_set():
                self._send("beat")

    def _send(self, kind: str, **values: Any) -> bool:
        sent = self.link.send(COORDINATOR, encode(kind, **values))
        if sent:
            self.traffic |= {(kind, name) for name in values}
        return sent

    def _next(self) -> Message:
        """The next message to act on. Network events are handled here, and outdated orders are dropped."""
        while True:
            event = self.link.next(0.0 if self._backlog else HEARTBEAT_SECONDS)
            if event is not None:
                self._on_event(event)
            elif self._backlog:
                message = self._backlog.popleft()
                if message.kind != "order" or all(other.kind != "order" for other in self._backlog):
                    return message
            elif not self._joined.is_set():
                self._check_timeouts()

    def _on_event(self, event: Event) -> None:
        if event.peer != COORDINATOR:
            return
        if event.what == "up":
            self._connected = True
            self._send_join()
        elif event.what == "refused":
            raise self._rejection(event.content.decode())
        elif event.what == "down":
            self.log.info("lost the connection to the coordinator; trying again")
            self._shown("the coordinator does not answer; trying again (Ctrl-C stops, and a later join resumes)")
            self._connected = False
            self._reset()
        elif (message := self._read(event.content)) is None or message.kind == "welcome":
            return
        elif message.kind == "rejoin":
            self.log.info("the coordinator counted this site as dead; joining again")
            self._reset()
            self._send_join()
        else:
            self._backlog.append(message)

    def _reset(self) -> None:
        """No longer joined; earlier orders are dropped."""
        self._joined.clear()
        self._backlog.clear()
        self._disconnected_since = time.monotonic()

    def _read(self, content: bytes) -> Message | None:
        try:
            message = decode(content, TO_SITE)
        except ValueError as error:
            self.log.warning("ignored a message of the coordinator: %s", error)
            return None
        self.traffic |= {(message.kind, name) for name in message.values}
        if message.kind != "welcome":
            return message if self._joined.is_set() else None
        if message.values["instance"] in ("", self._instance):
            if not message.values["accepted"]:
                raise self._rejection(message.values["why"])
            self._joined.set()
            self._shown("joined; waiting for rounds")
        return message

    def _rejection(self, why: str) -> RefusedError:
        """The coordinator's reason, in one line of bounded length."""
        reason = " ".join(why.split())[:MAX_REASON_LENGTH]
        self.log.warning("rejected: %s", reason)
        return RefusedError(reason)

    def _send_join(self) -> None:
        self._join_sent = time.monotonic()
        names = Agreement.of(self.client)
        self._send(
            "join", protocol=PROTOCOL, dffl=dffl.__version__, carrier=nvflare_version(), plan=self.plan.digest,
            columns=names.digest, rows=self.plan.min_rows if self._hides_counts else self.client.n,
            time=time.time(), finished=self.state.run_with_model(), instance=self._instance,
        )  # fmt: skip

    def _check_timeouts(self) -> None:
        timeout, now = max(self.plan.timeouts.join, self.plan.timeouts.quorum), time.monotonic()
        if self._connected and now - self._join_sent > REJOIN_SECONDS:
            self._send_join()
        if now - self._disconnected_since > timeout:
            fix = "ask whether it is running, and whether a firewall lets this machine connect to it"
            raise UnreachableError(f"no coordinator at {self.plan.address} for {timeout:.0f} s; {fix}; join again to resume")

    @cached_property
    def _rows(self) -> bytes:
        """A digest of the rows: with privacy, a round is not answered again with other rows."""
        return hashlib.sha256(self.client.x.tobytes() + self.client.c.tobytes()).digest()

    @cached_property
    def _data(self) -> str:
        """A digest of the site's data, which stays here: a run resumes with the same ones."""
        return data_fingerprint(self.client)

    @property
    def _hides_counts(self) -> bool:
        """Whether privacy hides all data of the site, also the number of rows: then all sites have the same weight."""
        return isinstance(self.plan.settings.hides, ClientPrivacy)

    # Requests of the coordinator.

    def _open(self, run: str) -> None:
        """Prepare the samples for a run, and report how many are used in training."""
        if self.plan.settings.hides is not None and self._has_answered and self.state.run != run:
            fix = "every run spends the privacy budget of the plan again; if you agree, join again"
            raise ValueError(f"the coordinator starts another run; {fix}")
        site_run = self._run if self._run is not None and self.state.run == run else self._start_run(run)
        counts: dict[str, int] = {}
        units: dict[str, np.ndarray] = {}
        for job, (_, part) in enumerate(self._jobs.values()):
            counts[str(job)] = 1 if self._hides_counts else site_run.own_units(part)[1]
        if self.plan.pools:
            for part in site_run.parts:
                unit, counts[f"part {part}"] = site_run.own_units(part)
                units |= {f"{part}/{name}": np.asarray(getattr(unit, name), np.float64) for name in UNIT_FIELDS}
        self._send("opened", run=run, counts=counts, units=units)

    def _start_run(self, run: str) -> SiteRun:
        """Start the site's side of a run, or resume it from the site's disk."""
        settings = replace(self.plan.settings, tau=self.state.begin(run, self.plan.digest, self.plan.tau, self._data))
        site_run = self._run = SiteRun(self.client, settings, len(self.plan.sites), self.state.noise())
        site_run.use_units(self.state.units())
        self._jobs = federated_jobs(site_run, self.plan.method_request)
        for job, name in enumerate(self._jobs):
            site_run.history.restore(name, self.state.seen(job))
        return site_run

    def _take_units(self, values: dict[str, Any]) -> None:
        if self._run is None or values["run"] != self.state.run:
            return
        if not self.plan.pools:
            self.log.warning("ignored the coordinator's units: the plan does not pool statistics")
            return
        units = units_from_arrays(values["units"])
        why = unit_problem(units, self.plan.inputs)
        if why is not None or not {str(part) for part in self._run.parts} <= set(units):
            raise ValueError(f"the units that the coordinator sent cannot be used: {why or 'a part of the samples has none'}")
        self._run.use_units({part: Normaliser(**arrays) for part, arrays in units.items()})
        self.state.keep_units(self._run.shared_units)

    def _answer(self, order: dict[str, Any]) -> None:
        """Train in one round and answer; a second order for the same round gives the same answer."""
        if self._run is None or order["run"] != self.state.run:
            return
        job, round = order["job"], order["round"]
        where = {"run": order["run"], "job": job, "round": round}
        started = time.monotonic()
        try:
            if (why := self._rejection_reason(order)) is not None:
                self.log.warning("job %d, round %d: %s", job, round, why)
                self._send("trouble", **where, why=why)
                return
            before = self.state.kept(job, order["last"])
            lost = not before and self.state.is_lost(job, order["last"])
            if lost and self.plan.settings.hides is not None:
                raise self._lost_state(
                    order["last"]
                )  # the noise and the record of orders are lost too: a round could be answered twice
            name, (trainer, part) = list(self._jobs.items())[job]
            engine, scope = self._run.engine(part), trainer.label
            engine.restore(scope, {self.client.name: before})
            self._run.history.forget(name, round)
            sent = dict(order["sent"]) | {"rate": order["rate"], "round": round}
            [answer] = list(self._run.ask(trainer, part, **sent))
            fields = {key: np.asarray(value)[0] for key, value in answer.fields.items()}
            kept, seen = engine.kept(scope).get(self.client.name, {}), self._run.history.saved(name)
            if lost and kept:
                raise self._lost_state(order["last"])
            self.state.keep(job, round, order["last"], kept, seen)
        except LostStateError:
            raise
        except DivergenceError as error:
            self.log.warning("%s", error)
            self._send("trouble", **where, why=TROUBLES[0])
            return
        except (ValueError, RuntimeError, KeyError, TypeError) as error:
            self.log.warning("job %d, round %d: %s", job, round, error)
            self._shown(f"could not train: {error}")
            self._send("trouble", **where, why=TROUBLES[1])
            return
        latest = self._run.history.latest(name).items()
        scalars = {key: np.asarray(value, np.float64) for key, value in latest if key in self.plan.scalars}
        count = 1 if self._hides_counts else int(engine.counts[0])
        self._has_answered = True
        self._send("answer", **where, count=count, seconds=time.monotonic() - started, fields=fields, scalars=scalars)
        which = f", training {job + 1} of {len(self._jobs)}" if len(self._jobs) > 1 else ""
        rounds = trainer.planned(self.plan.settings).rounds
        self._shown(f"{self.plan.method_request.method.name}{which}: round {round + 1} of {rounds}")

    def _lost_state(self, round: int) -> LostStateError:
        fix = "join from the folder that this site used before, or ask the coordinator for a new run"
        return LostStateError(f"{self.state.folder}: has no state of this site after round {round + 1}; {fix}")

    def _rejection_reason(self, order: dict[str, Any]) -> str | None:
        """Why a site does not answer an order, or None: a curious coordinator could ask for more than the plan allows."""
        assert self._run is not None
        job, round, jobs = order["job"], order["round"], list(self._jobs.values())
        if not 0 <= job < len(jobs):
            return TROUBLES[2]
        trainer, part = jobs[job]
        settings, names = trainer.planned(self.plan.settings), self.plan.sites
        if not 0 <= round < settings.rounds or names.index(self.client.name) not in sampled(
            names, part.seeded(settings), round
        ):
            return TROUBLES[2]
        rate = Schedule.of(settings.schedule).factor(round, settings.rounds)
        form = trainer.order_form(self._run.engine(part))
        if not math.isclose(order["rate"], rate, rel_tol=1e-9, abs_tol=1e-12) or not _has_form(order["sent"], form):
            return TROUBLES[4]
        if self.plan.settings.hides is not None and not self.state.is_same_order(job, round, order, self._rows):
            return TROUBLES[3]
        return None

    def _finish(self, values: dict[str, Any]) -> Fit:
        """All rounds are over: check and keep the shared models, and compute the rest here."""
        site_run = self._run if self._run is not None and values["run"] == self.state.run else self._start_run(values["run"])
        for job, (trainer, part) in enumerate(self._jobs.values()):
            rounds, form = trainer.planned(self.plan.settings).rounds, {str(job): trainer.begin(site_run.engine(part)).shared}
            given = {name: array for name, array in values["shared"].items() if name == str(job)}
            over = values["rounds"].get(str(job)) == rounds and values["last"].get(str(job), rounds + 1) <= rounds
            if not over or not _has_form(given, form):  # check before it is kept: the next start would resume from it
                raise ValueError(f"the coordinator's model of training {job} does not match the plan; ask the coordinator")
        finals = {
            job: (ServerState(values["rounds"][str(job)], values["shared"][str(job)], {}), values["last"][str(job)] - 1)
            for job in range(len(self._jobs))
        }
        self.state.keep_finals(finals, {name: count for name, count in values["unused"].items() if name in self.plan.sites})
        return self._fitted(finals)

    def unfinished(self) -> Fit | None:
        """The fit of a run whose rounds are over, if the site was interrupted before it had a model. It needs no network."""
        run = self.state.unfinished(self.plan.digest, self._data)
        if not run:
            return None
        self._start_run(run)
        return self._fitted(self.state.finals())

    def _fitted(self, finals: Finals) -> Fit:
        """The site's fit, from the shared models."""
        run = self._run
        assert run is not None
        self._shown("all rounds are over; the rest is computed here")
        for job, (name, (trainer, part)) in enumerate(self._jobs.items()):
            run.finals[name], last = finals[job]
            if self.state.is_lost(job, last):
                raise self._lost_state(last)
            # The state that the site keeps of a training is that of its last accepted round.
            run.engine(part).restore(trainer.label, {self.client.name: self.state.kept(job, last)})
        fit, unused = perform(run, self.plan.method_request), self.state.unused()
        return replace(fit, about=fit.about | {UNUSED: unused}) if unused else fit


def _has_form(arrays: Mapping[str, np.ndarray], template: Mapping[str, np.ndarray]) -> bool:
    """Whether the arrays are finite, with the names, shapes and dtypes of the template."""
    expected = {name: (array.shape, array.dtype) for name, array in template.items()}
    return {name: (array.shape, array.dtype) for name, array in arrays.items()} == expected and all(
        np.isfinite(array).all() for array in arrays.values()
    )
