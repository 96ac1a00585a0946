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
from dffl.deploy.fleet_choice import FleetChoice
from dffl.deploy.jobs import RunJob
from dffl.deploy.messages import PROTOCOL, TO_SITE, TROUBLES, Message, decode, encode
from dffl.deploy.network import COORDINATOR, Event, Link, nvflare_version
from dffl.deploy.run_state import unit_problem, units_from_arrays
from dffl.deploy.site_state import Finals, SiteState
from dffl.deploy.site_work import MethodWork, SiteWork, site_work
from dffl.federation import Client
from dffl.fitting import UNUSED, Fit
from dffl.predictor import Normaliser
from dffl.tables.description import Agreement
from dffl.time.chosen import Chosen
from dffl.time.outcome import Backtest
from dffl.training.checkpoint import data_fingerprint
from dffl.training.engines.base import Fields
from dffl.training.history import DivergenceError
from dffl.training.optimisers import Schedule
from dffl.training.privacy.levels import ClientPrivacy
from dffl.training.run import job_name
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
        self._work: SiteWork | None = None
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

    @property
    def backtest(self) -> Backtest | None:
        """With `chosen`, once the site has its model: its own backtest."""
        return None if self._work is None else self._work.backtest

    def take_part(self) -> Fit | Chosen:
        """Join, answer orders until all rounds are over, and return the site's model."""
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

    def done(self, fit: Fit | Chosen) -> None:
        """Report that the site has its model, with the results in the plan."""
        known = fit.members[self.client.name].choices if isinstance(fit, Fit) else {}
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
        work = self._work if self._work is not None and self.state.run == run else self._start_run(run)
        counts: dict[str, int] = {}
        units: dict[str, np.ndarray] = {}
        for number, job in enumerate(work.jobs.values()):
            counts[str(number)] = 1 if self._hides_counts else work.count(job)
        if self.plan.pools and isinstance(work, MethodWork):
            site_run = work.run
            for part in site_run.parts:
                unit, counts[f"part {part}"] = site_run.own_units(part)
                units |= {f"{part}/{name}": np.asarray(getattr(unit, name), np.float64) for name in UNIT_FIELDS}
        self._send("opened", run=run, counts=counts, units=units)

    def _start_run(self, run: str) -> SiteWork:
        """Start the site's side of a run, or resume it from the site's disk."""
        tau = self.state.begin(run, self.plan.digest, self.plan.tau, self._data)
        work = self._work = site_work(self.plan, self.client, tau, self.state.noise(), self.state.units())
        for number, job in enumerate(work.jobs.values()):
            work.run_of(job).history.restore(job_name(job.trainer, job.part), self.state.seen(number))
        return work

    def _take_units(self, values: dict[str, Any]) -> None:
        if self._work is None or values["run"] != self.state.run:
            return
        if not self.plan.pools or not isinstance(self._work, MethodWork):
            self.log.warning("ignored the coordinator's units: the plan does not pool statistics")
            return
        run, units = self._work.run, units_from_arrays(values["units"])
        why = unit_problem(units, self.plan.inputs)
        if why is not None or not {str(part) for part in run.parts} <= set(units):
            raise ValueError(f"the units that the coordinator sent cannot be used: {why or 'a part of the samples has none'}")
        run.use_units({part: Normaliser(**arrays) for part, arrays in units.items()})
        self.state.keep_units(run.shared_units)

    def _answer(self, order: dict[str, Any]) -> None:
        """Train in one round and answer; a second order for the same round gives the same answer."""
        work = self._work
        if work is None or order["run"] != self.state.run:
            return
        number, round = order["job"], order["round"]
        where = {"run": order["run"], "job": number, "round": round}
        started = time.monotonic()
        try:
            if (why := self._rejection_reason(order)) is not None:
                self.log.warning("job %d, round %d: %s", number, round, why)
                self._send("trouble", **where, why=why)
                return
            job = list(work.jobs.values())[number]
            chooses = isinstance(job.trainer, FleetChoice)
            fields = self._chosen(work, order) if chooses else self._trained(work, job, order)
        except LostStateError:
            raise
        except DivergenceError as error:
            self.log.warning("%s", error)
            self._send("trouble", **where, why=TROUBLES[0])
            return
        except (ValueError, RuntimeError, KeyError, TypeError) as error:
            self.log.warning("job %d, round %d: %s", number, round, error)
            self._shown(f"could not train: {error}")
            self._send("trouble", **where, why=TROUBLES[1])
            return
        latest = {} if chooses else work.run_of(job).history.latest(job_name(job.trainer, job.part))
        scalars = {key: np.asarray(value, np.float64) for key, value in latest.items() if key in self.plan.scalars}
        count = 1 if self._hides_counts or chooses else int(work.run_of(job).engine(job.part).counts[0])
        self._has_answered = True
        self._send("answer", **where, count=count, seconds=time.monotonic() - started, fields=fields, scalars=scalars)
        which = f", training {number + 1} of {len(work.jobs)}" if len(work.jobs) > 1 else ""
        done = "the choice: the rules are judged" if chooses else f"round {round + 1} of {job.rounds}"
        self._shown(f"{self.plan.method}{which}: {done}")

    def _trained(self, work: SiteWork, job: RunJob, order: dict[str, Any]) -> Fields:
        """Train in one round; the state that the site keeps is on its disk before the answer is sent."""
        number, round, last = order["job"], order["round"], order["last"]
        before = self.state.kept(number, last)
        lost = not before and self.state.is_lost(number, last)
        if lost and self.plan.settings.hides is not None:
            raise self._lost_state(last)  # noise and the record of orders are lost too: a round could be answered twice
        run, name = work.run_of(job), job_name(job.trainer, job.part)
        engine, scope = run.engine(job.part), job.trainer.label
        engine.restore(scope, {self.client.name: before})
        run.history.forget(name, round)
        sent = dict(order["sent"]) | {"rate": order["rate"], "round": round}
        [answer] = list(run.ask(job.trainer, job.part, **sent))
        client_state, seen = engine.kept(scope).get(self.client.name, {}), run.history.saved(name)
        if lost and client_state:
            raise self._lost_state(last)
        self.state.keep(number, round, last, client_state, seen)
        return {key: np.asarray(value)[0] for key, value in answer.fields.items()}

    def _chosen(self, work: SiteWork, order: dict[str, Any]) -> Fields:
        """Judge the rules on the site's own rows with the models of the backtest."""
        fields = work.numbers(order["sent"])
        self.state.keep(order["job"], order["round"], order["last"], {}, {})
        return fields

    def _lost_state(self, round: int) -> LostStateError:
        fix = "join from the folder that this site used before, or ask the coordinator for a new run"
        return LostStateError(f"{self.state.folder}: has no state of this site after round {round + 1}; {fix}")

    def _rejection_reason(self, order: dict[str, Any]) -> str | None:
        """Why a site does not answer an order, or None: a curious coordinator could ask for more than the plan allows."""
        assert self._work is not None
        number, round, jobs = order["job"], order["round"], list(self._work.jobs.values())
        if not 0 <= number < len(jobs):
            return TROUBLES[2]
        job = jobs[number]
        settings, names = job.trainer.planned(job.settings), self.plan.sites
        if not 0 <= round < settings.rounds or names.index(self.client.name) not in sampled(
            names, job.part.seeded(settings), round
        ):
            return TROUBLES[2]
        rate = Schedule.of(settings.schedule).factor(round, settings.rounds)
        form = job.trainer.order_form(self._work.run_of(job).engine(job.part))
        if not math.isclose(order["rate"], rate, rel_tol=1e-9, abs_tol=1e-12) or not _has_form(order["sent"], form):
            return TROUBLES[4]
        if self.plan.settings.hides is not None and not self.state.is_same_order(number, round, order, self._rows):
            return TROUBLES[3]
        return None

    def _finish(self, values: dict[str, Any]) -> Fit | Chosen:
        """All rounds are over: check and keep the shared models, and compute the rest here."""
        known = self._work is not None and values["run"] == self.state.run
        work = self._work if self._work is not None and known else self._start_run(values["run"])
        finals: Finals = {}
        for number, (job, rounds) in enumerate(zip(work.jobs.values(), work.rounds(values["shared"]), strict=True)):
            name, form = str(number), {str(number): job.trainer.begin(work.run_of(job).engine(job.part)).shared}
            arrays = {key: array for key, array in values["shared"].items() if key == name}
            over = values["rounds"].get(name) == rounds and values["last"].get(name, rounds + 1) <= rounds
            if not over or not _has_form(arrays, form):  # check before it is kept: the next start would resume from it
                raise ValueError(f"the coordinator's model of training {number} does not match the plan; ask the coordinator")
            finals[number] = ServerState(rounds, arrays[name], {}), values["last"][name] - 1
        self.state.keep_finals(finals, {name: count for name, count in values["unused"].items() if name in self.plan.sites})
        return self._fitted(finals)

    def unfinished(self) -> Fit | Chosen | None:
        """The model of a run whose rounds are over, if the site was interrupted before it had a model. It needs no network."""
        run = self.state.unfinished(self.plan.digest, self._data)
        if not run:
            return None
        self._start_run(run)
        return self._fitted(self.state.finals())

    def _fitted(self, finals: Finals) -> Fit | Chosen:
        """The site's model, from the shared ones."""
        work = self._work
        assert work is not None
        self._shown("all rounds are over; the rest is computed here")
        for number, job in enumerate(work.jobs.values()):
            _, last = finals[number]
            if self.state.is_lost(number, last):
                raise self._lost_state(last)
            # The state that the site keeps of a training is that of its last accepted round.
            if not isinstance(job.trainer, FleetChoice):
                engine = work.run_of(job).engine(job.part)
                engine.restore(job.trainer.label, {self.client.name: self.state.kept(number, last)})
        fit, unused = work.fitted([finals[number][0] for number in range(len(finals))]), self.state.unused()
        return replace(fit, about=fit.about | {UNUSED: unused}) if unused else fit


def _has_form(arrays: Mapping[str, np.ndarray], template: Mapping[str, np.ndarray]) -> bool:
    """Whether the arrays are finite, with the names, shapes and dtypes of the template."""
    expected = {name: (array.shape, array.dtype) for name, array in template.items()}
    return {name: (array.shape, array.dtype) for name, array in arrays.items()} == expected and all(
        np.isfinite(array).all() for array in arrays.values()
    )
