"""The coordinator's side: holds a run with whoever is there, and never waits without an end."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dffl.deploy.credentials import kept_secret
from dffl.deploy.held_round import HeldRound, QuorumError
from dffl.deploy.ledger import DEAD, Ledger, unused
from dffl.deploy.messages import MOST_HEADER
from dffl.deploy.network import Link
from dffl.deploy.plan import Plan
from dffl.deploy.reception import Reception, StopRequestedError
from dffl.deploy.rounds import Rounds, SitesEngine
from dffl.deploy.site_run import Jobs, federated_jobs, stand_in
from dffl.deploy.sites import SiteView
from dffl.deploy.state import FINISHED, LOST, STOPPED, TRAINING, WAITING, RunState, flat_units, said, say
from dffl.randomness import NoiseSource
from dffl.training.engines.base import Engine, Fields
from dffl.training.trainers.federated import Federated, ServerState
from dffl.training.units import pooled

STAND_IN_ROWS = 100
"""As many samples as a method may have folds."""


class Coordinator(Reception):
    """One federation: its sites, and at most one run at a time."""

    def __init__(self, plan: Plan, link: Link, log: logging.Logger, stop: Callable[[], str] = lambda: ""):
        super().__init__(plan, link, log, stop)
        self.run: RunState | None = None
        self.status = WAITING
        self._ledger: Ledger
        self._held: HeldRound | None = None
        self._closed: HeldRound | None = None
        self._order: Callable[[str], None]
        self._path: Path
        self._trainings = 0

    # A whole run.

    def train(self, folder: Path) -> RunState:
        """Hold a run from where its folder says it is, to its end."""
        path = self._path = folder / "state.dffl"
        run = self.run = RunState.read(path) if path.exists() else RunState.new(self.plan.digest, self.plan.tau)
        if run.plan != self.plan.digest:
            self.run = None
            raise ValueError(f"{folder}: belongs to another plan; begin a new run, or put the plan back as it was")
        jobs = self._jobs()
        self._require_room(jobs)
        self._trainings, self.columns = len(jobs), run.columns
        self._ledger = Ledger(folder / "rounds.jsonl")
        self._ledger.keep_before(run.job, run.state.round if run.state is not None else 0)
        run.write(path)
        about = {"run": run.run, "jobs": list(jobs), "rounds": self._all_rounds(jobs)}
        self.status = TRAINING
        say(folder, TRAINING, **about)
        for site in self.sites.values():
            if site.joined:
                self.joined(site)
        try:
            self._wait_for_sites(run, lambda missing: say(folder, TRAINING, **about, missing=missing))
            rounds = Rounds(self, path, NoiseSource(kept_secret(folder / "noise.key")))
            for place, (name, (trainer, part)) in enumerate(jobs.items()):
                if place >= run.job:
                    self.log.info("training %s: rounds begin", name)
                    rounds.hold(place, trainer, part)
        except QuorumError as lost:
            self._end(folder, LOST, str(lost))
            raise
        except StopRequestedError as stopped:
            if not stopped.server:  # else sites wait for the server to come back
                self._end(folder, STOPPED, str(stopped))
            raise
        self.status = FINISHED
        self._hand_over(run)
        say(folder, FINISHED, **about, results={site.name: site.results for site in self.sites.values() if site.results})
        return run

    def serve_finished(self, folder: Path) -> None:
        """Hand the models of a run that is over to sites that come late."""
        self.run, self._ledger = RunState.read(folder / "state.dffl"), Ledger(folder / "rounds.jsonl")
        self.status, self._path, self._trainings = FINISHED, folder / "state.dffl", len(self.run.finals)
        self.columns = self.run.columns

    def _end(self, folder: Path, status: str, why: str) -> None:
        assert self.run is not None
        say(folder, status, run=self.run.run, rounds=said(folder).get("rounds"), why=why)
        self.log.warning("%s: %s", status, why)
        self.abandon(why)

    def abandon(self, why: str) -> None:
        """End the run for the sites that are there."""
        self.status, self.run, self.columns = WAITING, None, ""
        for site in self.sites.values():
            if site.joined:
                self.send(site.name, "stop", why=why)

    def _jobs(self) -> Jobs:
        names = dict.fromkeys(self.plan.sites, max(self.plan.min_rows, STAND_IN_ROWS))
        with stand_in(names, self.plan.settings, self.plan.inputs, self.plan.dimension) as run:
            return federated_jobs(run, self.plan.asked)

    def _require_room(self, jobs: Jobs) -> None:
        """Refuse models that do not go into a message: the last one, with those of all trainings, is the largest."""
        sizes, orders = [0], [0]
        for trainer, part in jobs.values():
            form = trainer.order_form(SitesEngine(self, part))
            sizes.append(form["shared"].nbytes)
            orders.append(sum(array.nbytes for array in form.values()))
        needed = max(sum(sizes), *orders) + MOST_HEADER
        if needed > self.plan.most_bytes:
            fix = f"set most_megabytes under [wire] to {-(-needed // 2**20)} or more"
            raise ValueError(f"the shared models of this plan take {needed} bytes, more than a message may have; {fix}")

    def _all_rounds(self, jobs: Jobs) -> int:
        return sum(trainer.planned(self.plan.settings).rounds for trainer, _ in jobs.values())

    def _wait_for_sites(self, run: RunState, told: Callable[[list[str]], None]) -> None:
        """Wait for all sites that were not dead when they were last asked; with a quorum it begins when time is up."""
        last = {name: outcome for record in self._ledger.records for name, outcome in record.outcomes.items()}
        wanted = {name for name in self.plan.sites if last.get(name) != DEAD}
        needed, patience = max(math.ceil(self.plan.quorum * len(self.plan.sites) - 1e-9), 1), self.plan.patience.join
        deadline, before = self.clock.now() + patience, list[str]()
        while not all(self.sites[name].here(run.run) for name in wanted):
            missing = [name for name in self.plan.sites if not self.sites[name].here(run.run)]
            if missing != before:
                told(missing)
                before = missing
            if self.clock.now() > deadline:
                there = len(self.sites) - len(missing)
                if there < needed:
                    what = f"{there} of {len(self.sites)} sites joined within {patience:g} s, {needed} are needed"
                    raise QuorumError(f"{what}; missing: {', '.join(missing)}")
                break
            self.step()
        told([])
        run.columns = self.columns = self.agreed_columns
        if self.plan.pools:
            self._pool_units(run)
        run.write(self._path)

    def _pool_units(self, run: RunState) -> None:
        """Send everybody the units of all sites together. In a run that goes on they stay what they are, whoever is there."""
        there = [site for site in self.sites.values() if site.here(run.run)] if not run.units else []
        counted = [site for site in there if site.name not in self.plan.too_many(run.counts)]
        for part in sorted({part for site in counted for part in site.units}):
            own = [(site.units[part], site.name, site.counts[f"part {part}"]) for site in counted if part in site.units]
            units, names, counts = (list(column) for column in zip(*own, strict=True))
            run.units[part] = pooled(units, names, counts, self.plan.settings, self.plan.dimension)
        for site in there:
            self._send_units(site.name, run)

    def _send_units(self, name: str, run: RunState) -> None:
        self.send(name, "units", run=run.run, units=flat_units(run.units))

    def _hand_over(self, run: RunState) -> None:
        """Give every site the shared models, and wait until those that are there have a model of their own."""
        for site in self.sites.values():
            if site.here(run.run):
                self._send_finish(site.name, run)
        deadline = self.clock.now() + self.plan.patience.round
        while any(site.joined and site.finished != run.run for site in self.sites.values()) and self.clock.now() < deadline:
            self.step()

    def _send_finish(self, name: str, run: RunState) -> None:
        finals = {str(place): final for place, final in enumerate(run.finals)}
        self.send(
            name, "finish", run=run.run,
            rounds={place: final.round for place, final in finals.items()},
            last={place: 1 + self._ledger.last_taken(int(place), name) for place in finals},
            shared={place: final.shared for place, final in finals.items()},
            unused=unused(self._ledger.records),
        )  # fmt: skip

    # What sites say.

    def joined(self, site: SiteView) -> None:
        if self.run is not None and (self.status == TRAINING or (self.status == FINISHED and site.finished != self.run.run)):
            self.send(site.name, "open", run=self.run.run)

    def said(self, site: SiteView, kind: str, values: dict[str, Any], size: int) -> None:
        run, held = self.run, self._held
        if held is not None:
            held.received += size
        if run is None or values["run"] != run.run:
            self.log.info("%s: %r of another run is left out", site.name, kind)
        elif kind == "opened":
            already = site.here(run.run)
            if (why := self.opened(site, run, self._trainings, values)) is None:
                if site.name not in run.counts:
                    run.counts[site.name] = site.counts
                    run.write(self._path)
                if not already:  # else a few bytes would bring it a whole model, again and again
                    self._go_on(site, run)
            else:  # nobody waits for a site that cannot take part
                self.log.warning("%s: refused: %s", site.name, why)
                self.send(site.name, "stop", why=why)
                site.lost()
        elif kind == "done":
            site.finished = run.run
            found = {name: one for name, one in values["scalars"].items() if name in self.plan.results}
            site.results = {name: float(one) for name, one in found.items() if one.shape == () and np.isfinite(one)}
            self.log.info("%s: has its own model", site.name)
        elif held is None or (values["job"], values["round"]) != (held.place, held.round):
            self.log.info("%s: an answer to another round is left out", site.name)
        elif site.name not in held.waiting:
            self.log.info("%s: a second answer, or one that was not asked for, is left out", site.name)
        elif kind == "answer":
            held.take_answer(site.name, values)
        else:
            held.take_trouble(site.name, values["why"])

    def unreadable(self, site: SiteView, why: str) -> None:
        if self._held is not None and site.name in self._held.waiting and site.joined:
            self._held.settle(site.name, f"refused: {why}")

    def _go_on(self, site: SiteView, run: RunState) -> None:
        """A site can be sent what it is waited for."""
        if run.units:
            self._send_units(site.name, run)
        if self.status == FINISHED:
            self._send_finish(site.name, run)
        elif self._held is not None and site.name in self._held.waiting:
            self._order(site.name)

    # One round.

    def counts(self, place: int) -> np.ndarray:
        """Each site's number of samples in a training; 0 for one that was not there yet, or claims too many."""
        assert self.run is not None
        known = {name: own for name, own in self.run.counts.items() if name not in self.plan.too_many(self.run.counts)}
        return np.array([known.get(name, {}).get(str(place), 0) for name in self.plan.sites])

    def hold(
        self,
        place: int,
        trainer: Federated,
        engine: Engine,
        state: ServerState,
        members: Sequence[str],
        sent: Fields,
        rate: float,
    ) -> dict[str, Fields]:
        """Ask these sites in one round, and return what was accepted when the round has closed."""
        assert self.run is not None
        run, counts = self.run.run, self.run.counts
        held = self._held = self._closed = HeldRound(
            self.plan, self.sites, counts, place, trainer, engine, state, members, self.clock, self.log
        )

        def order(name: str) -> None:
            last = self._ledger.last_taken(place, name)
            held.sent += self.send(name, "order", run=run, job=place, round=state.round, last=last, rate=rate, sent=sent)

        self._order = order
        try:
            for name in members:
                if self.sites[name].here(run):
                    order(name)
            while not held.closed(order, run):
                self.step()
        finally:
            self._held = None
        return held.fields

    def record(self, left_out: Mapping[str, str]) -> None:
        """Write the round that has closed; of the answers that were accepted, some are left out of the model."""
        assert self._closed is not None
        self._closed.leave_out(left_out)
        self._ledger.add(self._closed.record())
