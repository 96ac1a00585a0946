"""What a site computes in a run: the samples of each job, and its own model at the end. `site_work` gives that of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.fleet_choice import MODEL, NUMBERS, FleetChoice
from dffl.deploy.jobs import CHOICE, Jobs, RunJob, as_jobs, is_needed, jobs_of_choice, rule_of, training_of
from dffl.deploy.site_run import SiteRun, federated_jobs
from dffl.federation import Client
from dffl.fitting import Fit, perform
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.time.chosen import Chosen
from dffl.time.outcome import Backtest
from dffl.time.own_past import JudgedRows, OwnPast
from dffl.training.engines.base import Fields
from dffl.training.methods import Request
from dffl.training.run import job_name
from dffl.training.trainers.federated import ServerState


class SiteWork(Protocol):
    """The site's side of a run."""

    jobs: Jobs
    backtest: Backtest | None
    """With `chosen`, once there is a model: the site's own backtest."""

    def run_of(self, job: RunJob) -> SiteRun:
        """The run that trains a job."""

    def count(self, job: RunJob) -> int:
        """The number of training samples of a job."""

    def numbers(self, sent: Mapping[str, np.ndarray]) -> Fields:
        """The answer to the choice, from the models of the backtest."""

    def rounds(self, shared: Mapping[str, np.ndarray]) -> list[int]:
        """How many rounds each job must have had, by the models of the finish."""

    def fitted(self, finals: Sequence[ServerState]) -> Fit | Chosen:
        """The site's model."""


class MethodWork:
    """A plan with one method: the run of that method."""

    backtest: Backtest | None = None

    def __init__(self, plan: FederationPlan, client: Client, tau: float, noise: NoiseSource, units: dict[str, Normaliser]):
        self._asked, settings = plan.one_method, replace(plan.settings, tau=tau)
        self.run = SiteRun(client, settings, len(plan.sites), noise)
        self.run.use_units(units)
        self.jobs = as_jobs(federated_jobs(self.run, self._asked), plan.settings, plan.inputs)

    def run_of(self, job: RunJob) -> SiteRun:
        return self.run

    def count(self, job: RunJob) -> int:
        return self.run.own_units(job.part)[1]

    def numbers(self, sent: Mapping[str, np.ndarray]) -> Fields:
        raise NotImplementedError("a plan with one method has no choice")

    def rounds(self, shared: Mapping[str, np.ndarray]) -> list[int]:
        return [job.rounds for job in self.jobs.values()]

    def fitted(self, finals: Sequence[ServerState]) -> Fit:
        self.run.use_finals(dict(zip(self.jobs, finals, strict=True)))
        return perform(self.run, self._asked)


class ChoiceWork:
    """A plan with `chosen`: a run for each training, each on other rows or with other settings, and the site's own past."""

    def __init__(self, plan: FederationPlan, client: Client, tau: float, noise: NoiseSource):
        assert plan.choice is not None, "the plan chooses"
        self.recipe = plan.choice
        self.backtest: Backtest | None = None
        self.own = OwnPast(client, self.recipe)
        self._runs: dict[tuple[int, str], tuple[SiteRun, Request]] = {}
        self._judged: tuple[bytes, JudgedRows] | None = None
        trainings: dict[str, Jobs] = {}
        for origin in range(len(self.recipe.origins) + 1):
            prepared = self.own.prepared(origin)
            [alone] = prepared.federation([self.own.known(origin)]).clients
            for candidate in self.recipe.candidates:
                asked, settings = training_of(prepared, candidate, self.recipe, plan.dimension)
                run = SiteRun(alone, replace(settings, tau=tau), len(plan.sites), noise)
                self._runs[origin, candidate.label] = run, asked
                trainings[candidate.label] = as_jobs(federated_jobs(run, asked), settings, alone.x.shape[1])
        self.jobs = jobs_of_choice(self.recipe, trainings, plan.dimension)

    def run_of(self, job: RunJob) -> SiteRun:
        """The choice, which trains nothing, has the run of the first training."""
        return self._runs[job.origin, job.label or self.recipe.labels[0]][0]

    def count(self, job: RunJob) -> int:
        return 1 if isinstance(job.trainer, FleetChoice) else self.run_of(job).own_units(job.part)[1]

    def numbers(self, sent: Mapping[str, np.ndarray]) -> Fields:
        before = list(self.jobs)[: list(self.jobs).index(CHOICE)]
        states = [ServerState(0, sent[f"{MODEL}{number}"], {}) for number in range(len(before))]
        return {NUMBERS: self.own.margins(self._judge(states))}

    def rounds(self, shared: Mapping[str, np.ndarray]) -> list[int]:
        middle = shared.get(str(list(self.jobs).index(CHOICE)))
        known = middle is not None and middle.shape == (len(self.recipe.names),)
        rule = self.recipe.chosen(middle) if middle is not None and known else self.recipe.usual
        return [job.rounds if is_needed(self.recipe, job, rule) else 0 for job in self.jobs.values()]

    def fitted(self, finals: Sequence[ServerState]) -> Chosen:
        rule = rule_of(self.recipe, self.jobs, finals)
        judged = self._judge(finals)
        backtest = self.backtest = self.own.outcome(judged, rule)
        origin, states = len(self.recipe.origins), dict(zip(self.jobs, finals, strict=True))
        fits = {candidate.label: self._fit(origin, candidate.label, states) for candidate in self.recipe.needs(rule)}
        return self.own.model(backtest, rule, fits)

    def _judge(self, states: Sequence[ServerState]) -> JudgedRows:
        """The site's rows judged with the models of the backtest; done once for the same models."""
        named = dict(zip(self.jobs, states, strict=False))
        earlier = {name: job for name, job in self.jobs.items() if job.label and job.origin < len(self.recipe.origins)}
        known = b"".join(named[name].shared.tobytes() for name in earlier)
        if self._judged is None or self._judged[0] != known:
            keys = dict.fromkeys((job.origin, job.label) for job in earlier.values())
            fits = {key: self._fit(*key, named) for key in keys}
            self._judged = known, self.own.judged(fits)
        return self._judged[1]

    def _fit(self, origin: int, label: str, states: Mapping[str, ServerState]) -> Fit:
        """The fit of a candidate at an origin, from the shared models of its jobs."""
        run, asked = self._runs[origin, label]
        mine = {name: job for name, job in self.jobs.items() if (job.origin, job.label) == (origin, label)}
        run.use_finals({job_name(job.trainer, job.part): states[name] for name, job in mine.items()})
        return perform(run, asked)


def site_work(plan: FederationPlan, client: Client, tau: float, noise: NoiseSource, units: dict[str, Normaliser]) -> SiteWork:
    """The site's side of a run of a plan."""
    if plan.choice is None:
        return MethodWork(plan, client, tau, noise, units)
    return ChoiceWork(plan, client, tau, noise)
