"""One run: a federation and settings. A training that several methods need is done once."""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from dffl.federation import Client, Federation
from dffl.later import EachLater, Later
from dffl.losses import Loss
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import ConstantPredictor, NetworkPredictor, Normaliser, Predictor
from dffl.progress import Progress
from dffl.randomness import NoiseSource
from dffl.training.alone import Own
from dffl.training.checkpoint import Checkpoint
from dffl.training.engines.base import ClientAnswers, Engine, Note
from dffl.training.engines.on_ray import RayActors, RayEngine
from dffl.training.engines.parquet import ParquetEngine
from dffl.training.engines.start import precision
from dffl.training.engines.vector import LoopEngine, VectorEngine
from dffl.training.history import History
from dffl.training.padding import refuse_other_samples, refuse_seen_padding
from dffl.training.parts import ALL, FoldSamples, Part
from dffl.training.privacy import SamplePrivacy, Spending
from dffl.training.privacy.spending import most_uses
from dffl.training.settings import Settings
from dffl.training.sharing import settled
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.federated import ServerState
from dffl.training.units import pooled


@dataclass
class Outcome:
    """The result of a method: a predictor for each client, and what it chose for each."""

    predictors: Sequence[Predictor]
    shared: Predictor | None = None
    """The model for a client that did not take part, if the method has one; of clients on disk it may be made `Later`."""
    choices: dict[str, list[float]] = field(default_factory=dict)
    """Named numbers chosen for each client, such as ``lambda`` or ``epochs``."""
    unseen: Sequence[tuple[FoldSamples, Sequence[Predictor]]] = ()
    """For a method with folds: for each fold, each client's model that was trained without the samples of that fold."""


@dataclass
class Spent:
    """The effort of trainings: samples seen (each as often as it was seen), and bytes of arrays sent and answered."""

    samples: float = 0.0
    sent: float = 0.0
    answered: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.samples + other.samples, self.sent + other.sent, self.answered + other.answered)


UNKNOWN = Spent(math.nan, math.nan, math.nan)
"""Work of a training that an earlier, interrupted run has started."""

Key = tuple[Trainer, Part]


class Run:
    """The interface of a method to its training."""

    def __init__(
        self,
        federation: Federation | ParquetFederation,
        settings: Settings,
        validation: Federation | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
        noise: NoiseSource | None = None,
    ):
        settings = settled(federation, settings.for_clients(federation)).at(federation.dim)
        self.federation, self.settings = federation, settings
        self.on_disk = isinstance(federation, ParquetFederation)
        """The clients' rows are in files, and read when they are asked for."""
        self.performing = ""
        """The method that is under way, for messages."""
        self._secret = noise
        self.noise = noise or NoiseSource.public(settings.seed)
        """The source of noise, here and in the engines of this process: public in a simulation; a deployed server or site gives
        one with its own secret.
        """
        self.trained_on = federation.relaxed() if settings.relax else federation
        """The clients in the form of the engines."""
        self._tried: list[Loss] = []
        """The losses that were tested with rows that fill up a batch."""
        self.require_loss(settings.loss)
        if validation is not None:
            self._refuse_on_disk("chooses by a validation federation")
        self.validation = None if validation is None else _matched(federation, validation)
        if self.validation is not None and settings.relax:
            self.validation = self.validation.relaxed()
        self.progress = progress or Progress(show=False)
        self.history = History(federation.names)
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)
        """The effort of each job, by its name."""
        self.left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """For each job, the number of updates of each client that were left out because they change too much."""
        self._checkpoint = checkpoint
        self._engines: dict[Part, Engine] = {}
        self._trained: dict[Key, Any] = {}
        self._labelled: dict[str, Trainer] = {}
        self._below: dict[Key, dict[Key, None]] = {}
        """The trainings that each training asked for, including itself."""
        self._asking: list[dict[Key, None]] = []
        self._rehearsal: Rehearsal | None = None
        self.judged: set[Part] = set()
        """The parts whose held-out samples were asked for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self.close()
        finally:
            if self._checkpoint is not None:
                self._checkpoint.explain(error)

    def close(self) -> None:
        """Write the state of an unfinished training."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    @property
    def clients(self) -> int:
        """The number of clients of the federation; also at a deployed site, which has only one of them."""
        return len(self.federation)

    # For methods.

    def trained(self, trainer: Trainer, part: Part = ALL) -> Any:
        """The models of a training; it is done once for all methods."""
        self._require_trainer(trainer)
        key = (trainer, part)
        if self._rehearsal is not None:
            return self._rehearsal.trained(self, key)
        if key not in self._trained:
            self._asking.append({key: None})
            try:
                trainer.check(self, part)
                self._trained[key] = self._result(trainer, part)
                self.history.flush()
            finally:
                self._below[key] = self._asking.pop()
        for asking in self._asking:
            asking.update(self._below[key])
        return self._trained[key]

    def _require_trainer(self, trainer: Any) -> None:
        if not isinstance(trainer, Trainer):
            raise TypeError(f"run.trained takes a trainer, such as FedAvg(), found {type(trainer).__name__}")
        parameters = type(trainer).__dict__.get("__dataclass_params__")
        if parameters is None or not parameters.frozen:
            raise TypeError(f"trainer {type(trainer).__name__} must be a @dataclass(frozen=True): equal ones are trained once")
        if self._labelled.setdefault(trainer.label, trainer) != trainer:
            raise ValueError(f"two different trainers are named {trainer.label!r}; give one of them another name")

    def engine(self, part: Part = ALL) -> Engine:
        """The samples of this part, in the form for training."""
        if part not in self._engines:
            self._engines[part] = self._laid_out(part)
        return self._engines[part]

    def personal(self, vectors: np.ndarray, part: Part = ALL) -> list[Predictor]:
        """Each client's predictor, from one vector for each client."""
        engine = self.engine(part)
        return self._each(lambda place: self._predictor(self._network(engine, vectors[place]), engine.units[place]))

    def common(self, vector: np.ndarray, part: Part = ALL) -> tuple[list[Predictor], Any]:
        """One network in each client's own units, and one in the units of all for a client that did not take part."""
        engine = self.engine(part)
        network = self._network(engine, vector)
        each = self._each(lambda place: self._predictor(network, engine.units[place]))
        shared = Later(lambda: self._predictor(network, self.pooled_units(part)))
        return each, shared if self.on_disk else shared.make()

    def _each(self, make: Callable[[int], Predictor]) -> Any:
        """A predictor for each client; of clients on disk each is made, and its rows are read, when it is asked for."""
        each = EachLater(make, len(self.federation))
        return each if self.on_disk else [*each]

    def pooled_units(self, part: Part = ALL) -> Normaliser:
        """The units of all clients together, for a client that did not take part."""
        engine = self.engine(part)
        if self.settings.pooled_units:
            return engine.units[0]
        return pooled(engine.units, engine.names, engine.counts.tolist(), self.settings, self.federation.dim)

    def alone(self, make: Callable[[Client], Own]) -> Outcome:
        """The models that each client makes of its own samples, without an engine. A rehearsal skips them."""
        self._refuse_on_disk("makes its models of all clients' samples")
        if self._rehearsal is not None:
            self._rehearsal.hand_out(work=float(sum(self.federation.counts)))
            return Outcome([ConstantPredictor(np.zeros(self.federation.dim))] * len(self.federation))
        results = []
        for client in self.federation:
            results.append(make(client))
            self.progress.advance(client.n, self.performing)
        choices = {label: [result.choices[label] for result in results] for label in results[0].choices}
        return Outcome([result.predictor for result in results], choices=choices)

    def asked_by(self, method: Callable[[Run], Any]) -> tuple[Any, list[str]]:
        """The result of a function of a run, and the jobs that it asked for, in order: its own history."""
        self._asking.append({})
        try:
            result = method(self)
        finally:
            asked = self._asking.pop()
        return result, [job_name(trainer, part) for trainer, part in asked]

    # For trainers.

    def ask(
        self, trainer: Trainer, part: Part, members: np.ndarray | None = None, *, scope: str | None = None, **sent: Any
    ) -> Iterator[ClientAnswers]:
        """Send a trainer's order to clients. Their notes go to the history and the progress bar.

        ``scope`` names another training whose kept vectors the visit uses.
        """
        engine, job = self.engine(part), job_name(trainer, part)

        def note(seen: Note) -> None:
            self.history.add(job, seen)
            samples = float(engine.counts[seen.members].sum()) * seen.epochs
            self.spent[job] += Spent(samples)
            self.progress.advance(samples, trainer.name)

        order = _bytes(sent)
        for answer in engine.ask(trainer, members, scope=trainer.label if scope is None else scope, note=note, **sent):
            self.spent[job] += Spent(sent=order * len(answer.members), answered=_bytes(answer.fields))
            yield answer

    def leave_out(self, trainer: Trainer, part: Part, round: int, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Record the clients that are left out of a round; each is named on the screen once in a training."""
        noted = self.left_out[job_name(trainer, part)] if refused else Counter[str]()
        for name, why in refused.items():
            if not noted[name]:
                where = f"training ({job_name(trainer, part)}), round {round}"
                fix = "look at this client's data; change_limit sets what is allowed"
                warnings.warn(f"client {name!r}: {where}: its update is left out: {why}; {fix}", stacklevel=2)
            noted[name] += 1
        return refused

    def spending(self, jobs: Sequence[str]) -> Spending | None:
        """What these trainings released of what `Settings.privacy` protects; None without privacy."""
        privacy = self.settings.hides
        if privacy is None:
            return None
        released = [(trainer, part) for trainer, part in self._trained if job_name(trainer, part) in jobs]
        uses = [trainer.uses(self, part) for trainer, part in released]
        trainings = {job_name(*key): count for key, count in zip(released, uses, strict=True) if count}
        if not isinstance(privacy, SamplePrivacy):
            return Spending(privacy, trainings, sum(uses))
        folds = [(p.number, p.count, n) for (_, p), n in zip(released, uses, strict=True) if n and isinstance(p, FoldSamples)]
        others = [n for (_, p), n in zip(released, uses, strict=True) if not isinstance(p, FoldSamples)]
        return Spending(privacy, trainings, most_uses(folds, others))

    def require_loss(self, loss: Loss | str) -> None:
        """Refuse a loss that cannot be computed on some client's set."""
        loss_value = Loss.of(loss)
        for name, oracle in self.trained_on.oracles():
            try:
                loss_value.check(oracle)
            except ValueError as error:
                raise ValueError(f"client {name!r}: {error}") from None
        if loss_value not in self._tried and not type(loss_value).__module__.startswith("dffl.losses."):
            refuse_seen_padding(loss_value, self.trained_on[0])
            if isinstance(self.settings.hides, SamplePrivacy) and loss_value.trains:
                refuse_other_samples(loss_value, self.trained_on[0])
            self._tried.append(loss_value)

    def require_judging(self, part: Part) -> None:
        """Refuse a choice on held-out samples if there are none."""
        self.judged.add(part)
        if not self.engine(part).judges:
            raise ValueError(f"method {self.performing!r} chooses on a separate validation federation: pass validation=...")

    def restored(self, trainer: Trainer, part: Part, rounds: int) -> ServerState | None:
        """The state of the server if an earlier run was interrupted in this training, which has this number of rounds."""
        if self._checkpoint is None:
            return None
        job_state = self._checkpoint.saved(job_name(trainer, part), done=False)
        if job_state is None:
            return None
        self.engine(part).restore(trainer.label, job_state.kept)
        self.history.restore(job_name(trainer, part), job_state.history)
        self.spent[job_name(trainer, part)] = UNKNOWN
        state = ServerState(int(job_state.state["round"]), job_state.state["shared"], job_state.memory)
        if not 0 <= state.round <= rounds or state.shared.shape != self.engine(part).initial.shape:
            raise ValueError(f"a model of shape {state.shared.shape} after round {state.round} of {rounds}")
        self.progress.advance(trainer.work(self, part) * state.round / rounds, trainer.name)
        return state

    def save(self, trainer: Trainer, part: Part, state: ServerState) -> None:
        """Store the state of the server and of the clients, so that an interrupted run can resume from here."""
        engine, saved = self.engine(part), self._checkpoint
        if saved is None or not (engine.in_process or saved.due):
            return
        # The state of the clients is copied now: when it is written, they may be in the middle of the next round.
        client_state, job = engine.kept(trainer.label), job_name(trainer, part)
        saved.reached(job, state._asdict(), client_state, lambda: self.history.saved(job, before=state.round))

    # Internals.

    def rehearse(self, methods: Sequence[Callable[[Run], Any]], known: Mapping[Key, Any] | None = None) -> Rehearsal:
        """Run methods on models of zeros, to find what they ask for, the amount of work, and what must be refused.

        Trainings whose results are ``known`` return these results.
        """
        self._rehearsal = Rehearsal()
        self._rehearsal.blanks.update(known or {})
        try:
            for method in methods:
                self._rehearsal.perform(self, method)
            return self._rehearsal
        finally:
            self._rehearsal = None

    def _result(self, trainer: Trainer, part: Part) -> Any:
        if self._checkpoint is None:
            return trainer.train(self, part)
        job = job_name(trainer, part)
        job_state = self._checkpoint.saved(job, done=True)
        if job_state is not None:
            # A rehearsal gives its form; the numbers are the saved ones.
            blank = self.rehearse([lambda run: run.trained(trainer, part)]).blanks[trainer, part]
            self.engine(part).restore(trainer.label, job_state.kept)
            self.history.restore(job, job_state.history)
            self.spent[job] = UNKNOWN
            self.progress.advance(trainer.work(self, part), trainer.name)
            return self._checkpoint.rebuilt(job_state, blank)
        result = trainer.train(self, part)
        self._checkpoint.finish(job, result, self.engine(part).kept(trainer.label), self.history.saved(job))
        return result

    def _laid_out(self, part: Part) -> Engine:
        if isinstance(self.trained_on, ParquetFederation):
            if part != ALL:
                self._refuse_on_disk("holds samples out")
            if self.settings.engine == "ray":
                return RayEngine(self._ray_actors, str(part), self.trained_on, self.settings, None, None, self._secret)
            return ParquetEngine(self.trained_on, self.settings, self._secret)
        divided, settings = part.divide(self.trained_on, self.settings, self.validation), part.seeded(self.settings)
        units = self._units(part, divided.train)
        if self.settings.engine == "ray":
            return RayEngine(self._ray_actors, str(part), divided.train, settings, divided.judge, units, self._secret)
        kind = LoopEngine if self.settings.engine == "loop" else VectorEngine
        return kind(divided.train, settings, divided.judge, units, self._secret)

    @cached_property
    def _ray_actors(self) -> RayActors:
        return RayActors()

    def _units(self, part: Part, train: Federation) -> list[Normaliser]:
        return part.units(train, self.settings)

    def _refuse_on_disk(self, what: str) -> None:
        if self.on_disk:
            fix = "dffl.Federation(list(federation)) holds them; fedavg, fedprox, scaffold and local read them as they train"
            raise ValueError(f"method {self.performing!r} {what}, which needs the clients in memory: {fix}")

    def _network(self, engine: Engine, vector: np.ndarray) -> Any:
        template = engine.template
        with precision(self.settings):
            return template.assemble([jnp.asarray(array) for array in template.cut(np.asarray(vector))])

    def _predictor(self, network: Any, unit: Normaliser) -> NetworkPredictor:
        return NetworkPredictor(network, unit, np.asarray(self.settings.clip(self.federation.dim)))


class Rehearsal:
    """A run of methods on models of zeros, before training."""

    def __init__(self) -> None:
        self.blanks: dict[Key, Any] = {}
        self.work = 0.0
        self.complete = True
        """Whether every method ran to its end."""
        self._refused: BaseException | None = None
        self._handed_out = False

    def perform(self, run: Run, method: Callable[[Run], Any]) -> None:
        """Run one method. An error after it was given zeros may be caused by them, so it is left to the real run."""
        self._handed_out = False
        try:
            with np.errstate(all="ignore"):
                method(run)
        except Exception as error:
            if error is self._refused or not self._handed_out:
                raise
            self.complete = False

    def hand_out(self, work: float) -> None:
        """Record that a method was given zeros in place of this amount of work."""
        self.work += work
        self._handed_out = True

    def trained(self, run: Run, key: Key) -> Any:
        """Zeros in place of trained models."""
        trainer, part = key
        if key not in self.blanks:
            try:
                trainer.check(run, part)
                self.blanks[key] = trainer.blank(run, part)
                self.work += trainer.work(run, part)
            except Exception as error:
                self._refused = error
                raise
        self._handed_out = True
        return self.blanks[key]


def job_name(trainer: Trainer, part: Part) -> str:
    """The name of a training on a part of the samples, in histories and checkpoints."""
    return f"{trainer.label}/{part}"


def _bytes(values: Mapping[str, Any]) -> int:
    """The size of the arrays among these values."""
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))


def _matched(federation: Federation | ParquetFederation, validation: Federation) -> Federation:
    """The validation clients in the federation's order."""
    known, offered = set(federation.names), set(validation.names)
    for client in validation:
        if client.name not in known:
            raise ValueError(f"validation: client {client.name!r} is not in the federation")
    for name in federation.names:
        if name not in offered:
            raise ValueError(f"validation: client {name!r} is missing; every client needs validation samples")
    matched = Federation([validation[name] for name in federation.names])
    for field_name in ("features", "dim"):
        mine, theirs = getattr(matched, field_name), getattr(federation, field_name)
        if mine != theirs:
            raise ValueError(f"validation: {field_name} must be {theirs}, as in the federation, found {mine}")
    if matched.has_forecast != federation.has_forecast:
        raise ValueError("validation: its clients must bring a forecast if those of the federation do, and only then")
    if matched.item_features != federation.item_features:
        what = f"{federation.item_features} features of each item, as in the federation, found {matched.item_features}"
        raise ValueError(f"validation: its clients must have {what}")
    return matched
