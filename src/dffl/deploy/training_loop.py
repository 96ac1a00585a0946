"""The rounds of a run's trainings with sites on a network: the server's side of `Federated.next`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.fleet_choice import FleetChoice
from dffl.deploy.jobs import RunJob
from dffl.predictor import Normaliser
from dffl.randomness import NoiseSource
from dffl.training.engines.base import ClientAnswers, Engine, Fields
from dffl.training.engines.start import precision, starting_recipe
from dffl.training.history import History
from dffl.training.parts import Part
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import Federated, ServerState

if TYPE_CHECKING:
    from dffl.deploy.coordinator import Coordinator


class TrainingLoop:
    """Runs the trainings of a run one after the other, and writes the state after every round."""

    def __init__(self, coordinator: Coordinator, path: Path, noise: NoiseSource):
        self.settings, self.noise = coordinator.plan.settings, noise
        self.history = History(coordinator.plan.sites)
        self._coordinator, self._path = coordinator, path
        self._engines: dict[int, RemoteEngine] = {}
        self._job = 0
        self._wanted: RunJob
        self._state: ServerState | None = None

    def run_training(self, job: int, wanted: RunJob, needed: bool = True) -> None:
        """Run all remaining rounds of one training; none of one that is not needed, whose model stays as it begins."""
        run = self._coordinator.run
        assert run is not None
        self._job, self._wanted, self.settings = job, wanted, wanted.settings
        state = run.state if run.state is not None else self._begun(run.finals)
        for _ in range(state.round, wanted.rounds if needed else 0):
            self._state = state
            state = wanted.trainer.next(self, wanted.part, state)
            run.state = state
            run.write(self._path)
        run.finals.append(state)
        run.job, run.state = job + 1, None
        run.write(self._path)

    def _begun(self, finals: list[ServerState]) -> ServerState:
        """The state before the first round; the choice begins with the models before it."""
        trainer = self._wanted.trainer
        state = trainer.begin(self.engine(self._wanted.part))
        return trainer.after(finals, state) if isinstance(trainer, FleetChoice) else state

    def engine(self, part: Part) -> Engine:
        if self._job not in self._engines:
            self._engines[self._job] = RemoteEngine(self._coordinator.plan, self._wanted)
        engine = self._engines[self._job]
        engine.counts = self._coordinator.counts(self._job)
        return engine

    def ask(self, trainer: Trainer, part: Part, members: np.ndarray | None = None, **sent: Any) -> Iterator[ClientAnswers]:
        assert isinstance(trainer, Federated)
        assert members is not None
        assert self._state is not None
        engine = self.engine(part)
        names = [engine.names[member] for member in members]
        arrays = {name: np.asarray(value) for name, value in sent.items() if name not in ("round", "rate")}
        rate = float(sent["rate"])
        accepted = self._coordinator.run_round(self._job, trainer, engine, self._state, names, arrays, rate)
        engine.counts = self._coordinator.counts(self._job)  # includes sites that joined in this round
        for name, fields in accepted.items():
            index = engine.names.index(name)
            yield ClientAnswers(np.array([index]), {key: value[None] for key, value in fields.items()})

    def leave_out(self, trainer: Trainer, part: Part, round: int, refused: Mapping[str, str]) -> Mapping[str, str]:
        self._coordinator.record(refused)
        return refused


class RemoteEngine:
    """An `Engine` without samples: the server only knows the names of the sites and their counts."""

    in_process, all_answer, judges = False, False, False

    def __init__(self, plan: FederationPlan, job: RunJob):
        self.names, self.counts = plan.sites, np.zeros(len(plan.sites), int)
        with precision(job.settings):
            recipe, self.initial = starting_recipe(job.part.seeded(job.settings), job.inputs, plan.dimension)
        self.template, self.units = recipe.form.template, list[Normaliser]()

    def ask(self, *_: Any, **__: Any) -> Iterator[ClientAnswers]:
        raise NotImplementedError("only the coordinator asks sites, in rounds")

    def kept(self, scope: str) -> dict[str, Fields]:
        return {}

    def restore(self, scope: str, client_state: Any) -> None:
        pass
