"""The jobs of a run, in order: the trainings of the plan's method; or those of `chosen`, with the choice between them.

They follow from the plan alone, so that the coordinator, which has no data, and every site have the same ones. With `chosen`
they are a training of each candidate at each origin of the backtest, the choice, and a training of each candidate on all rows.
The coordinator leaves out those last trainings that the chosen rule does not need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.fleet_choice import FleetChoice
from dffl.deploy.site_run import federated_jobs, placeholder_run
from dffl.time.fleet import FleetRecipe
from dffl.time.refits import Candidate, Prepared
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.methods import Request, request
from dffl.training.parts import ALL, Part
from dffl.training.settings import Settings
from dffl.training.trainers.federated import Federated, ServerState

PLACEHOLDER_ROWS = 100
"""Rows of the placeholder data: at least as many as a method may have folds."""
CHOICE = "choice"
"""The name of the job that chooses."""


class RunJob(NamedTuple):
    """A federated training of a run, or the choice."""

    trainer: Federated
    part: Part
    settings: Settings
    inputs: int
    """The features of the network, a forecast's among them."""
    origin: int = 0
    """With `chosen`: the number of the origin; one behind the last for a training on all rows."""
    label: str = ""
    """With `chosen`: the candidate."""

    @property
    def rounds(self) -> int:
        return self.trainer.planned(self.settings).rounds


Jobs = dict[str, RunJob]
"""The jobs by their names, in order."""
Pairs = Mapping[str, tuple[Federated, Part]]
"""The federated trainings of one method, by name."""


def as_jobs(pairs: Pairs, settings: Settings, inputs: int) -> Jobs:
    """The jobs of a plan with one method."""
    return {name: RunJob(trainer, part, settings, inputs) for name, (trainer, part) in pairs.items()}


def jobs_of(plan: FederationPlan) -> Jobs:
    """The jobs of a plan, from placeholder samples of the right shape."""
    names = dict.fromkeys(plan.sites, max(plan.min_rows, PLACEHOLDER_ROWS))
    if plan.choice is None:
        with placeholder_run(names, plan.settings, plan.inputs, plan.dimension) as run:
            return as_jobs(federated_jobs(run, plan.one_method), plan.settings, plan.inputs)
    recipe = plan.choice
    form = recipe.form(plan.inputs, plan.dimension, plan.settings.item_features)
    inputs, trainings = form.federation([form.rows]).features, {}
    for candidate in recipe.candidates:
        asked, settings = training_of(form, candidate, recipe, plan.dimension)
        with placeholder_run(names, settings, inputs, plan.dimension) as run:
            trainings[candidate.label] = as_jobs(federated_jobs(run, asked), settings, inputs)
    return jobs_of_choice(recipe, trainings, plan.dimension)


def training_of(form: Prepared, candidate: Candidate, recipe: FleetRecipe, dim: int) -> tuple[Request, Settings]:
    """The method of a candidate and its settings, as `dffl.fit` has them."""
    asked, settings = request(candidate.method, form.keywords(candidate, recipe.settings))
    return asked, replace(Settings.of(**settings), forecast=True).at(dim)  # predictions start at the base


def jobs_of_choice(recipe: FleetRecipe, trainings: Mapping[str, Jobs], dim: int) -> Jobs:
    """The jobs of `chosen`, from those of each candidate."""
    jobs: Jobs = {}
    for origin in range(len(recipe.origins) + 1):
        if origin == len(recipe.origins):
            first = next(iter(jobs.values()))
            forms = tuple((_size(job, dim), job.settings.dtype) for job in jobs.values())
            jobs[CHOICE] = RunJob(FleetChoice(rules=len(recipe.names), models=forms), ALL, first.settings, first.inputs)
        when = f"origin {origin + 1}" if origin < len(recipe.origins) else "all rows"
        for label, candidate_jobs in trainings.items():
            jobs |= {
                f"{label}, {when}: {name}": job._replace(origin=origin, label=label) for name, job in candidate_jobs.items()
            }
    return jobs


def _size(job: RunJob, dim: int) -> int:
    """How many numbers the shared model of a training has."""
    with precision(job.settings):
        _, vector = starting_recipe(job.part.seeded(job.settings), job.inputs, dim)
    return int(vector.size)


def rule_of(recipe: FleetRecipe | None, jobs: Jobs, finals: Sequence[ServerState]) -> str:
    """The rule of a run whose choice is over; an empty text without a choice, or before it."""
    place = list(jobs).index(CHOICE) if CHOICE in jobs else len(finals)
    return recipe.chosen(finals[place].shared) if recipe is not None and place < len(finals) else ""


def is_needed(recipe: FleetRecipe | None, job: RunJob, rule: str) -> bool:
    """Whether a job is run: all are, but for trainings on all rows of candidates that the chosen rule does not need."""
    if recipe is None or job.origin < len(recipe.origins):
        return True
    return job.label in [candidate.label for candidate in recipe.needs(rule)]
