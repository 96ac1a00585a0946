"""Further training from a common start, for the number of epochs that each client finds best on held-out samples.

Three steps: `Stops` trains with a stop at every candidate number of epochs; `BestStop` lets each client judge its stops on
its held-out samples; `Refit` trains on all of the samples for as long as the client chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dffl.checks import require_whole
from dffl.losses import Loss
from dffl.randomness import Purpose
from dffl.training.engines.base import Fields, gathered
from dffl.training.parts import ALL, SPLIT, Part
from dffl.training.trainers.base import Trainer, blank_rows, fetched
from dffl.training.trainers.federated import FedAvg

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run

EPOCHS = (0, 3, 10, 30, 100)
"""The candidate numbers of epochs for fine-tuning."""


def checked_epochs(value: Any) -> tuple[int, ...]:
    """Candidate numbers of epochs: one whole number, or several that increase."""
    epochs = tuple(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else (value,)
    for count in epochs:
        require_whole("epochs", count, least=0, most=10**6)
    if not epochs or list(epochs) != sorted(set(epochs)):
        raise ValueError(f"epochs must be increasing whole numbers, found {value!r}")
    return tuple(int(count) for count in epochs)


def reach_stops(site: Site, start: np.ndarray, stops: Sequence[int], **how: Any) -> list[np.ndarray]:
    """The clients' vectors at each stop of one training; ``how`` is passed on to `Site.train`."""
    reached: list[np.ndarray] = []
    current: Any = start
    for stop, done in zip(stops, (0, *stops), strict=False):
        if stop > done:
            current = site.train(current, stop - done, done, **how)
        plain = isinstance(current, np.ndarray)
        reached.append(np.broadcast_to(current, (len(site), current.shape[-1])) if plain else current.vectors)
    return reached


class Tuned(NamedTuple):
    """One vector for each client, and its number of epochs."""

    vectors: np.ndarray
    epochs: np.ndarray


@dataclass(frozen=True)
class Stops(Trainer):
    """One training for each client, with a stop at every candidate number of epochs; the client keeps them all."""

    name: ClassVar[str] = "finetune"
    start: Trainer | None = FedAvg()
    """The training that gives the common start; None: the untrained network, as in `local`."""
    epochs: tuple[int, ...] = EPOCHS

    def train(self, run: Run, part: Part) -> np.ndarray:
        for start, members in self.begin(run, part):
            for _ in run.ask(self, part, members, start=start, epochs=self.epochs):
                pass
        return fetched(run, self, part, "stops")

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        reached = reach_stops(site, sent["start"], sent["epochs"], purpose=self.purpose)
        site.keep("stops", np.stack(reached, axis=1))
        return {}

    @property
    def purpose(self) -> Purpose:
        """The purpose of the draw of the samples' order: that of `local` if there is no common training before."""
        return Purpose.SHUFFLE if self.start is None else Purpose.TUNE

    def reached(self, run: Run, part: Part) -> np.ndarray:
        """Each client's vectors at its stops, (clients, stops, numbers)."""
        return run.trained(self, part)

    def begin(self, run: Run, part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
        """The start vectors, each with the positions of the clients that start from it: one vector for all."""
        engine = run.engine(part)
        return [(engine.initial if self.start is None else run.trained(self.start, part), np.arange(len(engine.names)))]

    def blank(self, run: Run, part: Part) -> np.ndarray:
        self.begin(run, part)
        return blank_rows(run, part, len(self.epochs))

    def work(self, run: Run, part: Part) -> float:
        return float(run.engine(part).counts.sum()) * self.epochs[-1]

    @property
    def label(self) -> str:
        return super().label if self.start is not None else f"local(epochs={list(self.epochs)})"


@dataclass(frozen=True)
class BestStop(Trainer):
    """Each client's best stop on its held-out samples. Among equally good ones the smallest is chosen."""

    name: ClassVar[str] = "choice"
    stops: Stops = Stops()
    judge: Loss | str = "spo+"
    share: float = 0.0
    """The share of the common start that is mixed in when a candidate is judged."""

    def train(self, run: Run, part: Part) -> Tuned:
        run.trained(self.stops, part)
        answers = (
            answer
            for start, members in self.stops.begin(run, part)
            for answer in run.ask(self, part, members, scope=self.stops.label, start=start)
        )
        answered = gathered(answers, len(run.engine(part).names))
        return Tuned(answered["vector"], answered["epochs"])

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        epochs, size = np.array(self.stops.epochs), sent["start"].size
        # A candidate is a row: its own model and, in the last column, the common start.
        mixing = np.hstack([(1 - self.share) * np.eye(len(epochs)), np.full((len(epochs), 1), self.share)])
        stops = site.kept("stops", np.zeros((len(epochs), size), site.initial.dtype))
        models = np.concatenate([stops, np.broadcast_to(sent["start"], (len(site), 1, size))], axis=1)
        [losses] = site.judge(models, mixing, [Loss.of(self.judge)])
        best = np.argmin(losses, axis=1)
        return {"vector": stops[np.arange(len(site)), best], "epochs": epochs[best]}

    def blank(self, run: Run, part: Part) -> Tuned:
        stops = run.trained(self.stops, part)
        return Tuned(stops[:, 0], np.zeros(len(stops), int))

    def check(self, run: Run, part: Part) -> None:
        run.require_loss(self.judge)
        run.require_judging(part)


@dataclass(frozen=True)
class Refit(Trainer):
    """Training on all of each client's samples, for as long as the client chose on the split."""

    name: ClassVar[str] = "refit"
    chosen: BestStop = BestStop()

    def train(self, run: Run, part: Part) -> Tuned:
        epochs = run.trained(self.chosen, SPLIT).epochs
        vectors = blank_rows(run, part)
        for start, everyone in self.chosen.stops.begin(run, part):
            vectors[everyone] = start
            for count in sorted(set(epochs[everyone].tolist()) - {0}):
                some = everyone[epochs[everyone] == count]
                for members, fields in run.ask(self, part, some, start=start, epochs=(count,)):
                    vectors[members] = fields["vector"]
        return Tuned(vectors, epochs)

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        return {"vector": reach_stops(site, sent["start"], sent["epochs"], purpose=self.chosen.stops.purpose)[-1]}

    def blank(self, run: Run, part: Part) -> Tuned:
        chosen = run.trained(self.chosen, SPLIT)
        self.chosen.stops.begin(run, part)
        return chosen

    def work(self, run: Run, part: Part) -> float:
        # The length is known only afterwards: half of the maximum is a guess.
        return 0.5 * float(run.engine(part).counts.sum()) * self.chosen.stops.epochs[-1]


def tuned(run: Run, chosen: BestStop, refit: bool) -> tuple[Tuned, Part]:
    """The models tuned for as long as each client finds best, and the part of the samples on which they were trained.

    Without ``refit`` they are those of the split: the held-out samples help more in training than the choice itself gains.
    """
    return (run.trained(Refit(chosen), ALL), ALL) if refit else (run.trained(chosen, SPLIT), SPLIT)
