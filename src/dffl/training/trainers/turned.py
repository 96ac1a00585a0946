"""Shared networks behind a matrix of each client's own, which turns its features before the first layer.

The matrix starts as the identity, is trained with the rest and never leaves its client. Afterwards it is multiplied into the
first layer: a client's model has the form of every other one. Where clients see the same costs through features that are mixed
differently, one shared network then fits them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.networks import call
from dffl.predictor import Template
from dffl.randomness import Purpose
from dffl.training.engines.base import Fields
from dffl.training.parts import Part
from dffl.training.trainers.base import blank_rows, fetched
from dffl.training.trainers.federated import Federated, ServerState
from dffl.training.trainers.tuning import EPOCHS, reach_stops

if TYPE_CHECKING:
    from dffl.training.engines.site import Site
    from dffl.training.run import Run


def first_layer(network: Any) -> Any:
    """The weights that are applied to the features first."""
    return network.weights[0] if hasattr(network, "weights") else first_layer(network.network)


class TurnedNetwork(eqx.Module):
    """A network whose first layer is multiplied by a square matrix; the matrix comes first in its vector."""

    turn: Any
    network: Any

    @classmethod
    def around(cls, network: Any) -> TurnedNetwork:
        """The network after a matrix that does not change the features."""
        try:
            inputs, _ = first_layer(network).shape
        except (AttributeError, TypeError, ValueError, IndexError):
            kind = type(network).__name__
            fix = "see dffl.Network; for clients with items, network='vector' is one"
            raise ValueError(f"network: {kind} needs a list of weights whose first turns features ({fix})") from None
        return cls(jnp.eye(inputs, dtype=first_layer(network).dtype), network)

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return call(self.folded(), x, key)

    def folded(self) -> Any:
        """The network alone, with the matrix multiplied into its first layer."""
        return eqx.tree_at(first_layer, self.network, self.turn @ first_layer(self.network))


class TurnedModels(NamedTuple):
    """The shared vector, and each client's vectors at the stops of its own training."""

    shared: np.ndarray
    stops: np.ndarray


@dataclass(frozen=True)
class TurnedStops(Federated):
    """FedAvg of networks after matrices that stay at the clients; then each client trains further, and keeps its stops."""

    name: ClassVar[str] = "turned"
    epochs: tuple[int, ...] = EPOCHS

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        untrained = TurnedNetwork.around(site.template.network(site.initial))
        template = Template(untrained)
        recipe = self.recipe(site.recipe)
        recipe = replace(recipe, form=replace(recipe.form, template=template))
        turns = site.kept("turn", np.asarray(untrained.turn).reshape(-1))
        start = np.concatenate([turns, np.broadcast_to(sent["shared"], (len(site), sent["shared"].size))], axis=1)
        if "epochs" in sent:
            stops = reach_stops(site, start, sent["epochs"], purpose=Purpose.TUNE, recipe=recipe)
            site.keep("stops", np.stack([_folded(vectors, template, site.template) for vectors in stops], axis=1))
            return {}
        epochs, round = site.settings.local_epochs, sent["round"]
        trained = site.train(start, epochs, round * epochs, recipe=recipe, rate=sent["rate"], round=round)
        turns, shared = np.split(trained.vectors, [turns.shape[1]], axis=1)
        site.keep("turn", turns)
        return {"vector": shared}

    def finish(self, run: Run, part: Part, state: ServerState) -> TurnedModels:
        for _ in run.ask(self, part, shared=state.shared, epochs=self.epochs):
            pass
        return TurnedModels(state.shared, fetched(run, self, part, "stops"))

    def reached(self, run: Run, part: Part) -> np.ndarray:
        """Each client's vectors at its stops, (clients, stops, numbers)."""
        return run.trained(self, part).stops

    def blank(self, run: Run, part: Part) -> TurnedModels:
        return TurnedModels(super().blank(run, part), blank_rows(run, part, len(self.epochs)))

    def check(self, run: Run, part: Part) -> None:
        super().check(run, part)
        engine = run.engine(part)
        TurnedNetwork.around(engine.template.network(engine.initial))

    def work(self, run: Run, part: Part) -> float:
        return super().work(run, part) + float(run.engine(part).counts.sum()) * self.epochs[-1]


def _folded(vectors: np.ndarray, turned: Template, plain: Template) -> np.ndarray:
    """The networks alone, one row for each client, from vectors of networks with their matrices."""
    return np.stack([np.asarray(plain.vector(turned.network(vector).folded())) for vector in vectors])
