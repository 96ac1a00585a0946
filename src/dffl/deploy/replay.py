"""A recorded run in one process: `dffl.fit` with the participants of the record in each round.

If all sites were accepted in every round, it equals `dffl.fit`. A deployment can therefore be compared with a simulation bit
for bit, whatever failed during the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.jobs import CHOICE, jobs_of, training_of
from dffl.deploy.ledger import RoundRecord
from dffl.deploy.site_run import federated_jobs
from dffl.federation import Federation
from dffl.fitting import Fit, perform
from dffl.time.chosen import Chosen
from dffl.time.fleet import fit_apart
from dffl.time.refits import Candidate, Prepared
from dffl.training.engines.base import ClientAnswers, Engine
from dffl.training.methods import Request
from dffl.training.parts import Part
from dffl.training.run import Run, job_name
from dffl.training.settings import Settings
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import Federated


class ReplayedRun(Run):
    """A run whose rounds ask only the clients with valid answers, and leave out the same clients as the record."""

    def __init__(self, federation: Federation, settings: Settings, asked: Request, records: Sequence[RoundRecord]):
        super().__init__(federation, settings)
        names = list(federated_jobs(self, asked))
        self._records = {(names[record.job], record.round): record for record in records}

    def ask(
        self, trainer: Trainer, part: Part, members: np.ndarray | None = None, *, scope: str | None = None, **sent: Any
    ) -> Iterator[ClientAnswers]:
        record = self._records.get((job_name(trainer, part), sent.get("round", -1)))
        if isinstance(trainer, Federated) and record is not None and members is not None:
            members = np.array([member for member in members if self.federation.names[member] in record.taken], int)
        return super().ask(trainer, part, members, scope=scope, **sent)

    def leave_out(self, trainer: Trainer, part: Part, round: int, refused: Mapping[str, str]) -> Mapping[str, str]:
        record = self._records.get((job_name(trainer, part), round))
        return super().leave_out(trainer, part, round, refused) if record is None else record.left_out

    def _laid_out(self, part: Part) -> Engine:
        engine = super()._laid_out(part)
        engine.all_answer = False
        return engine


def replayed(federation: Federation, settings: Settings, asked: Request, records: Sequence[RoundRecord]) -> Fit:
    """The fit of a recorded run, in one process."""
    with ReplayedRun(federation, settings, asked, records) as run:
        return perform(run, asked)


def replayed_choice(federation: Federation, plan: FederationPlan, records: Sequence[RoundRecord]) -> dict[str, Chosen]:
    """The models of a recorded run of `chosen`, in one process."""
    recipe, jobs = plan.choice, jobs_of(plan)
    assert recipe is not None, "the plan chooses"

    def trained(prepared: Prepared, candidate: Candidate, known: Sequence[int], origin: int) -> Fit:
        mine = [number for number, job in enumerate(jobs.values()) if (job.origin, job.label) == (origin, candidate.label)]
        own_records = [replace(record, job=mine.index(record.job)) for record in records if record.job in mine]
        asked, settings = training_of(prepared, candidate, recipe, plan.dimension)
        return replayed(prepared.federation(known), settings, asked, own_records)

    [choice] = [record for record in records if record.job == list(jobs).index(CHOICE)]
    return fit_apart(federation, recipe, trained, choice.accepted)
