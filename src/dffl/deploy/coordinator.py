"""The coordinator's side: runs the rounds with the connected sites; every wait has a time-out."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dffl.deploy.credentials import persistent_secret
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.jobs import Jobs, is_needed, jobs_of, rule_of
from dffl.deploy.ledger import DEAD, Ledger, unused
from dffl.deploy.messages import MAX_HEADER_BYTES
from dffl.deploy.network import Link
from dffl.deploy.round import QuorumError, Round
from dffl.deploy.run_state import FINISHED, LOST, STOPPED, TRAINING, WAITING, RunState, read_status, unit_arrays, write_status
from dffl.deploy.site_registry import SiteRegistry, StopRequestedError
from dffl.deploy.site_view import SiteView
from dffl.deploy.training_loop import RemoteEngine, TrainingLoop
from dffl.randomness import NoiseSource
from dffl.training.engines.base import Engine, Fields
from dffl.training.trainers.federated import Federated, ServerState
from dffl.training.units import pooled


class Coordinator(SiteRegistry):
    """One federation: its sites, and at most one run at a time."""

    def __init__(self, plan: FederationPlan, link: Link, log: logging.Logger, stop: Callable[[], str] = lambda: ""):
        super().__init__(plan, link, log, stop)
        self.run: RunState | None = None
        self.status = WAITING
        self._ledger: Ledger
        self._round: Round | None = None
        self._closed_round: Round | None = None
        self._order: Callable[[str], None]
        self._path: Path
        self._trainings = 0

    # A whole run.

    def train(self, folder: Path) -> RunState:
        """Start a run, or resume it from its folder, and run it to its end."""
        path = self._path = folder / "state.dffl"
        run = self.run = RunState.read(path) if path.exists() else RunState.new(self.plan.digest, self.plan.tau)
        if run.plan != self.plan.digest:
            self.run = None
            raise ValueError(f"{folder}: belongs to another plan; start a new run, or restore the earlier plan")
        jobs, recipe = self._jobs(), self.plan.choice
        self._require_message_size(jobs)
        self._trainings, self.columns = len(jobs), run.columns
        self._ledger = Ledger(folder / "rounds.jsonl")
        self._ledger.keep_before(run.job, run.state.round if run.state is not None else 0)
        run.write(path)
        about = {"run": run.run, "jobs": list(jobs), "rounds": sum(job.rounds for job in jobs.values())}
        self.status = TRAINING
        write_status(folder, TRAINING, **about)
        for site in self.sites.values():
            if site.joined:
                self.on_joined(site)
        try:
            self._wait_for_sites(run, lambda missing: write_status(folder, TRAINING, **about, missing=missing))
            loop = TrainingLoop(self, path, NoiseSource(persistent_secret(folder / "noise.key")))
            for job, (name, wanted) in enumerate(jobs.items()):
                if job >= run.job:
                    rule = rule_of(recipe, jobs, run.finals)
                    needed = is_needed(recipe, wanted, rule)
                    self.log.info("training %s: %s", name, "first round starts" if needed else f"not needed by {rule}")
                    loop.run_training(job, wanted, needed)
        except QuorumError as lost:
            self._end(folder, LOST, str(lost))
            raise
        except StopRequestedError as stopped:
            if not stopped.server:  # otherwise the sites wait for the server to restart
                self._end(folder, STOPPED, str(stopped))
            raise
        self.status = FINISHED
        self._send_models(run)
        about |= {"results": {site.name: site.results for site in self.sites.values() if site.results}}
        write_status(folder, FINISHED, **about, **({"rule": rule} if (rule := rule_of(recipe, jobs, run.finals)) else {}))
        return run

    def serve_finished(self, folder: Path) -> None:
        """Send the models of a finished run to sites that connect later."""
        self.run, self._ledger = RunState.read(folder / "state.dffl"), Ledger(folder / "rounds.jsonl")
        self.status, self._path, self._trainings = FINISHED, folder / "state.dffl", len(self.run.finals)
        self.columns = self.run.columns

    def _end(self, folder: Path, status: str, why: str) -> None:
        assert self.run is not None
        write_status(folder, status, run=self.run.run, rounds=read_status(folder).get("rounds"), why=why)
        self.log.warning("%s: %s", status, why)
        self.abandon(why)

    def abandon(self, why: str) -> None:
        """End the run for the connected sites."""
        self.status, self.run, self.columns = WAITING, None, ""
        for site in self.sites.values():
            if site.joined:
                self.send(site.name, "stop", why=why)

    def _jobs(self) -> Jobs:
        return jobs_of(self.plan)

    def _require_message_size(self, jobs: Jobs) -> None:
        """Reject models that do not fit into a message. The last message is the largest: it has the models of all trainings."""
        sizes, orders = [0], [0]
        for job in jobs.values():
            form = job.trainer.order_form(RemoteEngine(self.plan, job))
            sizes.append(form["shared"].nbytes)
            orders.append(sum(array.nbytes for array in form.values()))
        needed = max(sum(sizes), *orders) + MAX_HEADER_BYTES
        if needed > self.plan.max_message_bytes:
            fix = f"set most_megabytes under [wire] to {-(-needed // 2**20)} or more"
            raise ValueError(f"the shared models of this plan take {needed} bytes, more than the limit of a message; {fix}")

    def _wait_for_sites(self, run: RunState, report_missing: Callable[[list[str]], None]) -> None:
        """Wait for all sites except those that were dead when last asked. After the time-out, a quorum is enough."""
        last = {name: outcome for record in self._ledger.records for name, outcome in record.outcomes.items()}
        wanted = {name for name in self.plan.sites if last.get(name) != DEAD}
        needed, timeout = max(math.ceil(self.plan.quorum * len(self.plan.sites) - 1e-9), 1), self.plan.timeouts.join
        deadline, before = self.clock.now() + timeout, list[str]()
        while not all(self.sites[name].is_ready(run.run) for name in wanted):
            missing = [name for name in self.plan.sites if not self.sites[name].is_ready(run.run)]
            if missing != before:
                report_missing(missing)
                before = missing
            if self.clock.now() > deadline:
                joined = len(self.sites) - len(missing)
                if joined < needed:
                    what = f"{joined} of {len(self.sites)} sites joined within {timeout:g} s, {needed} are needed"
                    raise QuorumError(f"{what}; missing: {', '.join(missing)}")
                break
            self.step()
        report_missing([])
        run.columns = self.columns = self.agreed_columns
        if self.plan.pools:
            self._pool_units(run)
        run.write(self._path)

    def _pool_units(self, run: RunState) -> None:
        """Send all sites the units of all sites together. A resumed run keeps its units, whichever sites are connected."""
        ready = [site for site in self.sites.values() if site.is_ready(run.run)] if not run.units else []
        counted = [site for site in ready if site.name not in self.plan.too_many(run.counts)]
        for part in sorted({part for site in counted for part in site.units}):
            rows = [(site.units[part], site.name, site.counts[f"part {part}"]) for site in counted if part in site.units]
            units, names, counts = (list(column) for column in zip(*rows, strict=True))
            run.units[part] = pooled(units, names, counts, self.plan.settings, self.plan.dimension)
        for site in ready:
            self._send_units(site.name, run)

    def _send_units(self, name: str, run: RunState) -> None:
        self.send(name, "units", run=run.run, units=unit_arrays(run.units))

    def _send_models(self, run: RunState) -> None:
        """Send the shared models to every site, and wait until the connected sites have their own models."""
        for site in self.sites.values():
            if site.is_ready(run.run):
                self._send_finish(site.name, run)
        deadline = self.clock.now() + self.plan.timeouts.round
        while any(site.joined and site.finished != run.run for site in self.sites.values()) and self.clock.now() < deadline:
            self.step()

    def _send_finish(self, name: str, run: RunState) -> None:
        finals = {str(job): final for job, final in enumerate(run.finals)}
        self.send(
            name, "finish", run=run.run,
            rounds={job: final.round for job, final in finals.items()},
            last={job: 1 + self._ledger.last_taken(int(job), name) for job in finals},
            shared={job: final.shared for job, final in finals.items()},
            unused=unused(self._ledger.records),
        )  # fmt: skip

    # Messages of sites.

    def on_joined(self, site: SiteView) -> None:
        if self.run is not None and (self.status == TRAINING or (self.status == FINISHED and site.finished != self.run.run)):
            self.send(site.name, "open", run=self.run.run)

    def on_message(self, site: SiteView, kind: str, values: dict[str, Any], size: int) -> None:
        run, current = self.run, self._round
        if current is not None:
            current.received += size
        if run is None or values["run"] != run.run:
            self.log.info("%s: ignored %r of another run", site.name, kind)
        elif kind == "opened":
            already = site.is_ready(run.run)
            if (why := self.on_opened(site, run, self._trainings, values)) is None:
                if site.name not in run.counts:
                    run.counts[site.name] = site.counts
                    run.write(self._path)
                if not already:  # otherwise a site could request a whole model repeatedly with a few bytes
                    self._send_pending(site, run)
            else:  # the others do not wait for a site that cannot take part
                self.log.warning("%s: rejected: %s", site.name, why)
                self.send(site.name, "stop", why=why)
                site.mark_lost()
        elif kind == "done":
            site.finished = run.run
            named = {name: value for name, value in values["scalars"].items() if name in self.plan.results}
            site.results = {name: float(value) for name, value in named.items() if value.shape == () and np.isfinite(value)}
            self.log.info("%s: has its own model", site.name)
        elif current is None or (values["job"], values["round"]) != (current.job, current.round):
            self.log.info("%s: ignored an answer to another round", site.name)
        elif site.name not in current.waiting:
            self.log.info("%s: ignored an answer that is repeated or was not requested", site.name)
        elif kind == "answer":
            current.take_answer(site.name, values)
        else:
            current.take_trouble(site.name, values["why"])

    def on_unreadable(self, site: SiteView, why: str) -> None:
        if self._round is not None and site.name in self._round.waiting and site.joined:
            self._round.settle(site.name, f"refused: {why}")

    def _send_pending(self, site: SiteView, run: RunState) -> None:
        """Send a site that is ready the messages that it has missed."""
        if run.units:
            self._send_units(site.name, run)
        if self.status == FINISHED:
            self._send_finish(site.name, run)
        elif self._round is not None and site.name in self._round.waiting:
            self._order(site.name)

    # One round.

    def counts(self, job: int) -> np.ndarray:
        """Each site's number of samples in a training; 0 for a site that never joined, or claims too many."""
        assert self.run is not None
        known = {name: counts for name, counts in self.run.counts.items() if name not in self.plan.too_many(self.run.counts)}
        return np.array([known.get(name, {}).get(str(job), 0) for name in self.plan.sites])

    def run_round(
        self,
        job: int,
        trainer: Federated,
        engine: Engine,
        state: ServerState,
        members: Sequence[str],
        sent: Fields,
        rate: float,
    ) -> dict[str, Fields]:
        """Run one round with these sites, and return the accepted answers when the round has closed."""
        assert self.run is not None
        run, counts = self.run.run, self.run.counts
        current = self._round = self._closed_round = Round(
            self.plan, self.sites, counts, job, trainer, engine, state, members, self.clock, self.log
        )

        def order(name: str) -> None:
            last = self._ledger.last_taken(job, name)
            current.sent += self.send(name, "order", run=run, job=job, round=state.round, last=last, rate=rate, sent=sent)

        self._order = order
        try:
            for name in members:
                if self.sites[name].is_ready(run):
                    order(name)
            while not current.closed(order, run):
                self.step()
        finally:
            self._round = None
        return current.fields

    def record(self, left_out: Mapping[str, str]) -> None:
        """Write the closed round to the ledger; ``left_out`` are accepted answers that are not used in the model."""
        assert self._closed_round is not None
        self._closed_round.leave_out(left_out)
        self._ledger.add(self._closed_round.record())
