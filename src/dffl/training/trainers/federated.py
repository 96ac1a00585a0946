"""Trainings in federated rounds: sample clients, let them train, aggregate, repeat (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dffl.losses import Loss
from dffl.randomness import NoiseSource, Purpose, stream
from dffl.training.aggregators import Aggregator, Memory, Moment, Update
from dffl.training.change_limit import LEAST, Change, is_on, left_out, length_of
from dffl.training.engines.base import ClientAnswers, Engine, Fields, in_name_order
from dffl.training.history import DivergenceError, History
from dffl.training.optimisers import Schedule
from dffl.training.parts import Part
from dffl.training.privacy.levels import ClientPrivacy, SamplePrivacy, protected, require_mean
from dffl.training.settings import Settings, trainable
from dffl.training.trainers.base import Trainer
from dffl.training.update import Recipe

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run


class ServerState(NamedTuple):
    """The state of the server between rounds. With it, a training resumes to the same bits."""

    round: int
    shared: np.ndarray
    memory: Memory


class Server(Protocol):
    """The interface that a round requires from its host: a `Run` in a simulation, the coordinator's process in a deployment."""

    settings: Settings
    history: History
    noise: NoiseSource
    """The source of the server's noise, if the settings ask for it."""

    def engine(self, part: Part) -> Engine: ...

    def ask(self, trainer: Trainer, part: Part, members: np.ndarray | None = None, **sent: Any) -> Iterator[ClientAnswers]: ...

    def leave_out(self, trainer: Trainer, part: Part, round: int, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Called once in each round, after all answers: record which clients are left out and why, and return it."""


@dataclass(frozen=True)
class Federated(Trainer):
    """The rounds. A subclass defines what happens at a client (`visit`), and what else the server remembers.

    An answer's ``vector`` goes to the aggregator; its other fields go to `absorb`.
    """

    loss: Loss | str | None = None
    """The loss of clients; None: that of the run's settings."""
    aggregate: Aggregator | str | None = None
    """The aggregator; None: that of the run's settings."""

    needs_all_clients: ClassVar[bool] = True
    AGGREGATE: ClassVar[str] = "aggregate/"
    CHANGES: ClassVar[str] = "changes/last"
    """The key of the server's memory for the length of each client's last accepted change; -1 if there is none."""

    def train(self, run: Run, part: Part) -> Any:
        rounds = self.planned(run.settings).rounds
        state = run.restored(self, part, rounds)
        if state is None:
            state = self.begin(run.engine(part))
        while state.round < rounds:
            state = self.next(run, part, state)
            run.save(self, part, state)
        return self.finish(run, part, state)

    def next(self, run: Server, part: Part, state: ServerState) -> ServerState:
        """One round."""
        engine, settings = run.engine(part), self.planned(run.settings)
        # A fold samples its own clients, because it has its own start.
        members = sampled(engine.names, part.seeded(settings), state.round)
        moment = Moment(state.round, settings.rounds)
        rate = Schedule.of(settings.schedule).factor(*moment)
        answers = run.ask(self, part, members, round=state.round, shared=state.shared, rate=rate, **self.sent(state))
        heard = list(in_name_order(answers, members, engine.names, engine.all_answer))
        for _, fields in heard:
            if "vector" not in fields:
                raise ValueError(f"{type(self).__name__}.visit must answer with a field 'vector', found {list(fields)}")
        aggregator = self.aggregator(settings)
        changes = {} if aggregator.limits_clients else self._changes(engine, state, heard)
        judged = left_out(settings, rate, list(changes.values()), self._missing(engine, state, changes))
        outside = run.leave_out(self, part, state.round, judged)
        if changes and len(outside) == len(heard):  # no client is left: the shared vector does not change
            return state._replace(round=state.round + 1)
        known = {name: value for name, value in state.memory.items() if name != self.CHANGES}
        memory = {name: value for name, value in known.items() if not name.startswith(self.AGGREGATE)}
        mine = {name.removeprefix(self.AGGREGATE): v for name, v in known.items() if name not in memory}

        def updates() -> Iterator[tuple[Update, Fields]]:
            for member, fields in heard:
                if engine.names[member] in outside:
                    continue
                # After the answers: only in this round a site may have reported its number of samples for the first time.
                self.absorb(memory, fields, float(engine.counts[member]) / float(engine.counts.sum()))
                samples = 1 if isinstance(settings.hides, ClientPrivacy) else int(engine.counts[member])
                yield Update(engine.names[member], samples, fields["vector"]), fields

        used = protected(settings.hides, aggregator, len(members), run.noise, f"{self.label}/{part}")
        shared, mine = self.combined(used, state, updates(), mine, moment)
        if not np.isfinite(shared).all():
            run.history.flush()  # names the client that diverged, if there is one
            raise DivergenceError(f"aggregator {aggregator.name!r}: the shared vector of round {state.round} is not finite")
        memory |= {self.AGGREGATE + name: value for name, value in mine.items()}
        if not engine.all_answer and is_on(settings):
            memory |= self._remembered(engine, state, changes, outside)
        return ServerState(state.round + 1, shared.astype(engine.initial.dtype), memory)

    def _changes(self, engine: Engine, state: ServerState, heard: Sequence[tuple[int, Fields]]) -> dict[int, Change]:
        """The change of each client's answer relative to the vector that it was sent."""
        changes = {}
        for member, fields in heard:
            vector, before = np.asarray(fields["vector"], np.float64), self.before(fields, state)
            if vector.shape != before.shape:  # a method of another kind, whose vectors are not changes of the sent vector
                return {}
            name, count = engine.names[member], int(engine.counts[member])
            changes[member] = Change(name, count, length_of(vector - before), vector.size)
        return changes

    def _missing(self, engine: Engine, state: ServerState, changes: Mapping[int, Change]) -> list[Change]:
        """The last accepted changes of clients that are not in this round."""
        last = state.memory.get(self.CHANGES)
        if last is None or not changes:
            return []
        size = next(iter(changes.values())).size
        others = [member for member in np.flatnonzero(last >= 0).tolist() if member not in changes]
        return [Change(engine.names[k], int(engine.counts[k]), float(last[k]), size) for k in others]

    def _remembered(
        self, engine: Engine, state: ServerState, changes: Mapping[int, Change], outside: Mapping[str, str]
    ) -> Memory:
        """The last accepted changes after this round; empty until a round had enough answers to compare them."""
        last = state.memory.get(self.CHANGES)
        if last is None and len(changes) < LEAST:
            return {}
        last = np.full(len(engine.names), -1.0) if last is None else last.copy()
        for member, change in changes.items():
            if change.client not in outside:
                last[member] = change.length
        return {self.CHANGES: last}

    def before(self, fields: Fields, state: ServerState) -> np.ndarray:
        """The sent vector of which the answer's vector is the next version."""
        return state.shared

    def begin(self, engine: Engine) -> ServerState:
        """The server's state before the first round."""
        return ServerState(0, engine.initial, {})

    def sent(self, state: ServerState) -> dict[str, Any]:
        """The arrays that the server sends in addition to the shared vector, the round and the rate."""
        return {}

    def absorb(self, memory: Memory, fields: Fields, share: float) -> None:
        """Add one client's answer to the memory of the server; called in the order of names.

        ``share`` is the client's share of the samples of all clients, including those that do not take part in the round.
        """

    def answer_form(self, engine: Engine, state: ServerState) -> Fields:
        """Template of a client's answer; a deployment rejects any other fields, shapes or dtypes."""
        return {"vector": np.zeros_like(state.shared)}

    def order_form(self, engine: Engine) -> Fields:
        """Template of the arrays that the server sends in a round; a deployed site answers no other order."""
        state = self.begin(engine)
        return {"shared": state.shared, **self.sent(state)}

    def refusal(self, fields: Mapping[str, np.ndarray], engine: Engine, state: ServerState) -> str | None:
        """The reason why one client's answer must not be used, or None."""
        form = self.answer_form(engine, state)
        if set(fields) != set(form):
            return f"must have the fields {', '.join(sorted(form))}, found {', '.join(sorted(fields)) or 'none'}"
        for name, wanted in form.items():
            array = fields[name]
            if array.shape != wanted.shape or array.dtype != wanted.dtype:
                return f"{name} must be {wanted.dtype} of shape {wanted.shape}, found {array.dtype} of shape {array.shape}"
            if not np.isfinite(array).all():
                return f"{name} is not finite"
        return None

    def combined(
        self,
        aggregator: Aggregator,
        state: ServerState,
        updates: Iterator[tuple[Update, Fields]],
        memory: Memory,
        moment: Moment,
    ) -> tuple[np.ndarray, Memory]:
        """The next shared vector and the aggregator's memory, from each client's update and its whole answer."""
        vectors = (update for update, _ in updates)
        return checked_aggregate(aggregator, aggregator.combine(state.shared, vectors, memory, moment), state)

    def finish(self, run: Run, part: Part, state: ServerState) -> Any:
        """The result of the training: by default the shared vector."""
        return state.shared

    def blank(self, run: Run, part: Part) -> Any:
        return np.zeros_like(run.engine(part).initial)

    def check(self, run: Run, part: Part) -> None:
        settings = self.planned(run.settings)
        aggregator = self.aggregator(settings)
        aggregator.check(participants(run.clients, settings.client_fraction))
        if settings.hides is not None:
            self._require_hidden(run, part, aggregator)
        if self.loss is not None:
            run.require_loss(trainable(self.loss))

    def _require_hidden(self, run: Run, part: Part, aggregator: Aggregator) -> None:
        """Refuse what the setting `privacy` would not cover."""
        who, engine = f"privacy: method {run.performing!r}", run.engine(part)
        if others := ", ".join(name for name in self.answer_form(engine, self.begin(engine)) if name != "vector"):
            raise ValueError(f"{who} sends {others} in addition to its vector, and no noise would hide it")
        if isinstance(run.settings.hides, SamplePrivacy) and self.passes(run.settings) is None:
            raise ValueError(f"{who} is not covered at the level of samples; use level = 'client', or another method")
        require_mean(run.settings.hides, aggregator)

    def in_round(self, settings: Settings, sent: Mapping[str, Any]) -> bool:
        """Whether this order belongs to a round, whose answer goes to the server. Other answers stay at a deployed site."""
        return "shared" in sent and "round" in sent and sent["round"] < self.planned(settings).rounds

    def passes(self, settings: Settings) -> int | None:
        """How often a round uses each sample of a client for what leaves it; None: unknown."""
        return None

    def uses(self, run: Run, part: Part) -> int:
        """The largest number of noisy sums that include a client, or a sample, over all rounds."""
        settings, rounds = self.planned(run.settings), 0
        names = run.engine(part).names
        if participants(len(names), settings.client_fraction) == len(names):
            rounds = settings.rounds
        else:  # everyone knows which clients take part in which round, so this is a count, not a probability
            taken = [sampled(names, part.seeded(settings), round) for round in range(settings.rounds)]
            rounds = int(np.bincount(np.concatenate(taken)).max())
        return rounds * (self.passes(settings) or 1) if isinstance(settings.hides, SamplePrivacy) else rounds

    def work(self, run: Run, part: Part) -> float:
        counts, settings = run.engine(part).counts, self.planned(run.settings)
        share = participants(len(counts), settings.client_fraction) / len(counts)
        return float(counts.sum()) * share * settings.rounds * settings.local_epochs

    def planned(self, settings: Settings) -> Settings:
        """The settings of this training: those of the run, unless it has its own rounds."""
        return settings

    def aggregator(self, settings: Settings) -> Aggregator:
        return Aggregator.of(settings.aggregate if self.aggregate is None else self.aggregate)

    def recipe(self, recipe: Recipe) -> Recipe:
        """The run's recipe with this training's own loss."""
        return recipe if self.loss is None else replace(recipe, loss=trainable(self.loss))


def checked_aggregate(aggregator: Aggregator, result: Any, state: ServerState) -> tuple[np.ndarray, Memory]:
    """What an aggregator returned, if it is a vector of the right size and a memory of arrays."""
    who = f"aggregator {aggregator.name!r} in round {state.round}"
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)):
        raise ValueError(f"{who}: combine must return a vector and a dictionary of arrays, found {type(result).__name__}")
    shared = np.asarray(result[0])
    if shared.dtype.kind not in "fiu" or shared.shape != state.shared.shape:
        raise ValueError(f"{who}: must give a vector of shape {state.shared.shape}, found {shared.dtype} {shared.shape}")
    memory = {name: np.asarray(value) for name, value in result[1].items()}
    for name, value in memory.items():
        if value.dtype.kind not in "fiub":
            raise ValueError(f"{who}: its memory must be arrays of numbers, found {value.dtype} under {name!r}")
    return shared, memory


@dataclass(frozen=True)
class FedAvg(Federated):
    """Federated averaging. Each client's optimiser is new in every round.

    With a ``pull`` it is FedProx: a proximal term keeps clients near the shared vector from which they started.
    """

    name: ClassVar[str] = "fedavg"
    pull: float = 0.0

    def passes(self, settings: Settings) -> int | None:
        return settings.local_epochs

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        epochs, round = site.settings.local_epochs, sent["round"]
        recipe = replace(self.recipe(site.recipe), pull=self.pull)
        trained = site.train(
            sent["shared"], epochs, round * epochs, recipe=recipe, anchor=sent["shared"], rate=sent["rate"], round=round
        )
        return {"vector": trained.vectors}


def participants(total: int, fraction: float) -> int:
    """The number of clients that a round samples."""
    return max(int(np.floor(fraction * total + 1e-9)), 1)


def sampled(names: Sequence[str], settings: Settings, round: int) -> np.ndarray:
    """The positions of the clients that take part in a round.

    They are drawn from the sorted names: the same clients in another order give the same model.
    """
    total, count = len(names), participants(len(names), settings.client_fraction)
    if count == total:
        return np.arange(total)
    drawn = stream(settings.seed, Purpose.SAMPLE_CLIENTS, counter=round).choice(total, count, replace=False)
    return np.sort(_by_name(tuple(names))[drawn])


@lru_cache(maxsize=16)
def _by_name(names: tuple[str, ...]) -> np.ndarray:
    """The positions of the names in sorted order: the same in every round."""
    return np.argsort(np.array(names, dtype=object), kind="stable")
