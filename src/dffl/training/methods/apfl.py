"""`apfl`: each client mixes the shared numbers with numbers of its own, by a weight that it learns (Deng et al., 2020).

A client decides by the network alpha v + (1 - alpha) w: w is the shared vector, v its own one and alpha its own weight. In each
of its rounds it trains w as in federated averaging, and then v, and alpha with it, on the loss of that network; v and alpha
never leave it before the end. All of it is the one client update: of a network that holds v, w and alpha, and trains some of
them.

It differs from the paper in this: w stays as the server sent it while v trains, where the paper makes the steps of w and v in
turn; alpha is put back into [0, 1] after a round, not after every step; v starts from the shared vector of the client's first
round, which is the paper's start if everybody takes part in every round. A client that never took part has the shared model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.checks import require_number, require_whole
from dffl.networks import call
from dffl.predictor import Template
from dffl.randomness import Purpose
from dffl.training.engines.base import Fields, gathered
from dffl.training.methods.registry import method
from dffl.training.parts import Part
from dffl.training.run import Outcome, Run
from dffl.training.trainers import FedAvg, ServerState
from dffl.training.trainers.base import blank_rows

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


class MixedNumbers(eqx.Module):
    """A network whose numbers are ``alpha`` times those of one network and the rest those of another."""

    own: Any
    shared: Any
    alpha: Array

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return call(jax.tree.map(self._mix, self.own, self.shared), x, key)

    def _mix(self, own_numbers: Any, shared: Any) -> Any:
        return self.alpha * own_numbers + (1 - self.alpha) * shared if eqx.is_inexact_array(own_numbers) else own_numbers


@lru_cache(maxsize=64)
def mixed_form(template: Template) -> Template:
    """The form of a mix of two networks; its vector is v, then w, then alpha."""
    network = template.network(jnp.zeros(template.size))
    return Template(MixedNumbers(network, network, jnp.zeros(())))


class Mixes(NamedTuple):
    """The shared vector, and for each client its mix and its weight."""

    shared: np.ndarray
    vectors: np.ndarray
    alpha: np.ndarray


@dataclass(frozen=True)
class APFLTrainer(FedAvg):
    """The rounds of FedAvg; in each of its rounds, a client also trains its own vector and its weight."""

    name: ClassVar[str] = "apfl"
    alpha: float = 0.5
    adaptive: bool = True
    own_epochs: int | None = None

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        own, shared, round = site.kept("vector", sent["shared"]), sent["shared"], sent["round"]
        alpha = site.kept("alpha", site.initial.dtype.type(self.alpha))[:, None]
        if round == site.settings.rounds:
            return {"vector": alpha * own + (1 - alpha) * shared, "alpha": alpha[:, 0]}
        answer = super().visit(site, sent)
        epochs = self.own_epochs or site.settings.local_epochs
        recipe, form = self.recipe(site.recipe), mixed_form(site.template)
        trains = form.layers(("own.*", "alpha") if self.adaptive else "own.*")
        trained = site.train(
            np.hstack([own, np.broadcast_to(shared, own.shape), alpha]), epochs, round * epochs, purpose=Purpose.TUNE,
            recipe=replace(recipe, form=replace(recipe.form, template=form), trains=trains, protects=None), rate=sent["rate"],
            round=round, label="own",
        ).vectors  # fmt: skip
        site.keep("vector", trained[:, : shared.size])
        site.keep("alpha", np.clip(trained[:, -1], 0, 1))
        return answer

    def finish(self, run: Run, part: Part, state: ServerState) -> Mixes:
        # One more visit, of all clients: the mix contains the final shared vector.
        answers = run.ask(self, part, round=state.round, shared=state.shared, rate=1.0)
        answers_by_field = gathered(answers, len(run.engine(part).names))
        return Mixes(state.shared, answers_by_field["vector"], answers_by_field["alpha"])

    def blank(self, run: Run, part: Part) -> Mixes:
        rows = blank_rows(run, part)
        return Mixes(super().blank(run, part), rows, rows[:, 0])

    def work(self, run: Run, part: Part) -> float:
        epochs = run.settings.local_epochs
        return super().work(run, part) * (1 + (self.own_epochs or epochs) / epochs)


@method("apfl", label="APFL", colour="#DDCC77")
def apfl(run: Run, *, alpha: float = 0.5, adaptive: bool = True, own_epochs: int | None = None) -> Outcome:
    """Each client's mix of the shared numbers and its own.

    ``alpha`` is the weight of its own at the start, and for good without ``adaptive``; ``own_epochs`` is how long a client
    trains its own numbers in a round, else local_epochs.
    """
    require_number("alpha", alpha, -np.finfo(float).tiny, 1.0, "in [0, 1]", closed=True)
    if not isinstance(adaptive, bool):
        raise ValueError(f"adaptive must be True or False, found {adaptive!r:.80}")
    if own_epochs is not None:
        require_whole("own_epochs", own_epochs, least=1, most=10**5)
    trained = run.trained(APFLTrainer(alpha=float(alpha), adaptive=adaptive, own_epochs=own_epochs))
    return Outcome(run.personal(trained.vectors), run.common(trained.shared)[1], {"alpha": trained.alpha.tolist()})
