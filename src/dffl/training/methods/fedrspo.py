"""`fedrspo`: FedRSPO+, as its authors publish it (github.com/kziliask/RSPO_Plus, 2026). Everything trains on RSPO+.

First a federated warm start: averaging with a fresh optimiser in each round, and with constants of each client's own, its
smoothing l0 (mean |c|_2 / R, see `dffl.losses.rspo_plus`) and its step size a l0 / 4. Then every client trains the shared
model further, alone and with one optimiser throughout: in round t = 1, 2, ... with smoothing l0 / (1 + k (t - 1)), and with a
step size that falls in the same way. Once the smoothed decisions for the true costs are nearly the best ones, that is, once
D = mean(c . w_l(c) - z*) / mean |z*| <= ``freeze_at``, both stay as they are, and the client stops after three more rounds.
The last iterate is kept.

The defaults are those of the authors' synthetic study. Its costs are divided by their mean absolute value, client by client,
and so are ours (scaled units): a means the same. In raw units l0, and with it the step size, grows with the costs.

Two readings are our own. D depends on costs and on no model, so it cannot be overfitted: it is taken on at most eight random
samples of the client's own, and none is held out for it. The gradient's norm is clipped as a whole, as everywhere here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.checks import require_number, require_whole
from dffl.losses import Loss, Rows
from dffl.losses.rspo_plus import RSPOPlus
from dffl.randomness import Purpose
from dffl.sets import FeasibleSet
from dffl.training.engines.base import Fields, gathered
from dffl.training.methods.registry import method
from dffl.training.parts import Part
from dffl.training.run import Outcome, Run
from dffl.training.settings import LARGEST, Settings
from dffl.training.trainers import Federated
from dffl.training.trainers.base import Trainer, blank_rows
from dffl.training.update import Recipe

if TYPE_CHECKING:
    from dffl.training.engines.site import Site

FREEZE_ROWS = 8
"""The most samples for the decision to freeze."""
ROUNDS_AFTER_FREEZE = 3


def with_own_steps(recipe: Recipe) -> Recipe:
    """A recipe with the learning rate 1: each client's own rate is then the whole step size."""
    return replace(recipe, loss=RSPOPlus(), learning_rate=1.0)


@dataclass(frozen=True)
class WarmStart(Federated):
    """The federated rounds; None: those of the run's settings."""

    name: ClassVar[str] = "fedrspo-warm"
    loss: Loss | str | None = RSPOPlus.name
    rounds: int | None = 10
    epochs: int | None = 3
    fraction: float | None = 0.4
    step: float = 0.01

    def planned(self, settings: Settings) -> Settings:
        return replace(
            settings,
            rounds=self.rounds or settings.rounds,
            local_epochs=self.epochs or settings.local_epochs,
            client_fraction=self.fraction or settings.client_fraction,
        )

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        epochs, round = self.planned(site.settings).local_epochs, sent["round"]
        rate = sent["rate"] * self.step * site.smoothing / 4
        recipe = with_own_steps(site.recipe)
        return {"vector": site.train(sent["shared"], epochs, round * epochs, recipe=recipe, rate=rate, round=round).vectors}


@dataclass(frozen=True)
class Decay:
    """How the smoothing decreases over the rounds at a client, and where it stops."""

    rounds: int = 10
    smoothing_decay: float = 1.0
    freeze_at: float | None = 0.01

    def smoothing(self, first: np.ndarray, round: int) -> np.ndarray:
        """The smoothing in this round, counted from 0, of clients that start with ``first``."""
        return first / (1 + self.smoothing_decay * round)


@dataclass(frozen=True)
class Freeze(Trainer):
    """For each client the round, counted from 0, after which its smoothing is constant; the last one if there is none."""

    name: ClassVar[str] = "fedrspo-freeze"
    decay: Decay = Decay()

    def train(self, run: Run, part: Part) -> np.ndarray:
        return gathered(run.ask(self, part), len(run.engine(part).names))["epochs"]

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        last = self.decay.rounds - 1
        stops = np.full(len(site), last)
        if self.decay.freeze_at is not None:
            for round in reversed(range(last)):
                smoothing = self.decay.smoothing(site.smoothing, round)
                bias, size = site.sampled_means([Bias(), OptimumSize()], FREEZE_ROWS, smoothing=smoothing)
                stops[bias <= self.decay.freeze_at * (size + 1e-8)] = round
        return {"epochs": stops}

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return np.zeros(len(run.engine(part).names), int)

    def check(self, run: Run, part: Part) -> None:
        run.require_loss(RSPOPlus())


class Personalised(NamedTuple):
    """One vector for each client, and the number of rounds that it trained alone."""

    vectors: np.ndarray
    rounds: np.ndarray


@dataclass(frozen=True)
class Personal(Trainer):
    """The rounds at each client alone, from the result of the warm start."""

    name: ClassVar[str] = "fedrspo"
    start: WarmStart = WarmStart()
    decay: Decay = Decay()
    epochs: int = 1
    step: float = 0.01
    step_decay: float = 0.1

    def train(self, run: Run, part: Part) -> Personalised:
        start, frozen = run.trained(self.start, part), run.trained(Freeze(self.decay), part)
        vectors = np.empty((len(frozen), start.size), start.dtype)
        for round in sorted(set(frozen.tolist())):
            for members, fields in run.ask(self, part, np.flatnonzero(frozen == round), start=start, round=round):
                vectors[members] = fields["vector"]
        return Personalised(vectors, self.rounds(frozen))

    def rounds(self, frozen: np.ndarray) -> np.ndarray:
        """The total rounds of clients that freeze in these rounds, counted from 0."""
        return np.minimum(frozen + 1 + ROUNDS_AFTER_FREEZE, self.decay.rounds)

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        current, first, recipe = sent["start"], site.smoothing, with_own_steps(site.recipe)
        for round in range(int(self.rounds(np.asarray(sent["round"])))):
            at = min(round, sent["round"])
            current = site.train(
                current, self.epochs, round * self.epochs, purpose=Purpose.TUNE, recipe=recipe, round=round,
                rate=self.step * first / 4 / (1 + self.step_decay * at), smoothing=self.decay.smoothing(first, at),
            )  # fmt: skip
        return {"vector": current.vectors}

    def blank(self, run: Run, part: Part) -> Personalised:
        run.trained(self.start, part)
        frozen = run.trained(Freeze(self.decay), part)
        return Personalised(blank_rows(run, part), frozen)

    def work(self, run: Run, part: Part) -> float:
        return float(run.engine(part).counts.sum()) * self.epochs * self.decay.rounds


class Bias(Loss):
    """The loss of the smoothed decision for the true costs. It uses no prediction."""

    trains = False
    smooths = True

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        assert rows.smoothing is not None, "it smooths, so it is given"
        return jnp.sum(rows.c * (s.project(-rows.c / rows.smoothing) - rows.w_star), axis=-1)


class OptimumSize(Loss):
    """|z*|, the size of the best objective. It uses no prediction."""

    trains = False

    def __call__(self, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
        return jnp.abs(jnp.sum(rows.c * rows.w_star, axis=-1))


@method("fedrspo", label="FedRSPO+", colour="#6A3D9A")
def fedrspo(
    run: Run,
    *,
    warm_rounds: int | None = 10,
    warm_epochs: int | None = 3,
    warm_fraction: float | None = 0.4,
    warm_step: float = 0.01,
    personal_rounds: int = 10,
    personal_epochs: int = 1,
    personal_step: float = 0.01,
    smoothing_decay: float = 1.0,
    step_decay: float = 0.1,
    freeze_at: float | None = 0.01,
) -> Outcome:
    """The shared model of smoothed losses, trained on at each client while the smoothing falls.

    ``warm_rounds``, ``warm_epochs`` and ``warm_fraction`` are the federated rounds, their local epochs and the share of
    clients; None: the run's rounds, local_epochs and client_fraction. ``personal_rounds`` and ``personal_epochs`` are the
    rounds alone, at most, and the epochs in each. ``warm_step`` and ``personal_step`` are the factor a of the step size
    a l0 / 4; the settings learning_rate and loss are not used. ``smoothing_decay`` and ``step_decay`` are k of the smoothing
    and of the step size. ``freeze_at`` is the D below which both stay as they are; None: never.
    """
    if warm_rounds is not None:
        require_whole("warm_rounds", warm_rounds, least=1, most=LARGEST["rounds"])
    if warm_epochs is not None:
        require_whole("warm_epochs", warm_epochs, least=1, most=LARGEST["local_epochs"])
    if warm_fraction is not None:
        require_number("warm_fraction", warm_fraction, 0.0, 1.0, "in (0, 1], or None", closed=True)
    require_whole("personal_rounds", personal_rounds, least=1, most=10**5)
    require_whole("personal_epochs", personal_epochs, least=1, most=10**5)
    for name, step in (("warm_step", warm_step), ("personal_step", personal_step)):
        require_number(name, step, 0.0, np.inf, "> 0 and finite")
    for name, fall in (("smoothing_decay", smoothing_decay), ("step_decay", step_decay)):
        require_number(name, fall, -1e-300, np.inf, ">= 0 and finite")
    if freeze_at is not None:
        require_number("freeze_at", freeze_at, 0.0, np.inf, "> 0 and finite, or None")
    start = WarmStart(rounds=warm_rounds, epochs=warm_epochs, fraction=warm_fraction, step=float(warm_step))
    decay = Decay(personal_rounds, float(smoothing_decay), None if freeze_at is None else float(freeze_at))
    trained = run.trained(Personal(start, decay, personal_epochs, float(personal_step), float(step_decay)))
    newcomer = run.common(run.trained(start))[1]
    return Outcome(run.personal(trained.vectors), newcomer, {"epochs": (personal_epochs * trained.rounds).tolist()})
