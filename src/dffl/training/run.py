"""One run: a federation and settings, with every training that several methods share done once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import jax.numpy as jnp
import numpy as np

from dffl.federation import Federation
from dffl.predictor import NetworkPredictor, Normaliser, Predictor
from dffl.progress import Progress
from dffl.training.engine import Engine
from dffl.training.history import History
from dffl.training.settings import Settings

Part = Literal["all", "split"]
"""Which samples train: all of them, or those that the 80/20 split keeps (the rest is then held for validation)."""

T = TypeVar("T")


@dataclass
class Outcome:
    """What a method returns: a predictor for each client, and what it chose for each."""

    predictors: Sequence[Predictor]
    shared: Predictor | None = None
    """The model for a client that took no part, where the method has one."""
    choices: dict[str, list[float]] = field(default_factory=dict)
    """Named numbers chosen for each client, such as ``lambda`` or ``epochs``."""


class Run:
    """What a method works with."""

    def __init__(
        self, federation: Federation, settings: Settings, validation: Federation | None = None, progress: Progress | None = None
    ):
        self.federation, self.settings = federation, settings
        self.validation = None if validation is None else _matched(federation, validation)
        self.progress = progress or Progress(show=False)
        self.history = History(federation.names)
        self._trained: dict[Any, Any] = {}

    def engine(self, part: Part) -> Engine:
        """The samples of this part, laid out for training."""
        return self._all if part == "all" else self._split

    @cached_property
    def _all(self) -> Engine:
        return Engine(self.federation, self.settings, self.validation)

    @cached_property
    def _split(self) -> Engine:
        settings = self.settings
        kept, held = self.federation.split(settings.validation_fraction, settings.seed, settings.validation_blocks)
        return Engine(kept, self.settings, held)

    def trained(self, train: Callable[[Run, Part], T], part: Part) -> T:
        """The result of ``train(run, part)``, computed once however many methods ask for it."""
        key = (train, part)
        if key not in self._trained:
            self._trained[key] = train(self, part)
            self.history.flush()
        return self._trained[key]

    def advance(self, members: np.ndarray, epochs: int, job: str, part: Part) -> None:
        """Tell the progress bar that these clients have made some epochs."""
        self.progress.advance(float(self.engine(part).counts[members].sum()) * epochs, job)

    def personal(self, vectors: np.ndarray, part: Part) -> list[Predictor]:
        """Each client's predictor, from one vector a client."""
        engine = self.engine(part)
        with engine.precision():
            networks = [engine.template.network(jnp.asarray(vector)) for vector in vectors]
        return [self._predictor(net, unit) for net, unit in zip(networks, engine.normalisers, strict=True)]

    def common(self, vector: np.ndarray, part: Part) -> tuple[list[Predictor], Predictor]:
        """One network in each client's own units, and in the units of all for a client that took no part."""
        engine = self.engine(part)
        with engine.precision():
            network = engine.template.network(jnp.asarray(vector))
        forecasts = self.federation.dim if self.settings.forecast else 0
        pooled = Normaliser.pool(engine.normalisers, engine.counts.tolist(), forecasts)
        return [self._predictor(network, unit) for unit in engine.normalisers], self._predictor(network, pooled)

    def _predictor(self, network: Any, unit: Normaliser) -> Predictor:
        return NetworkPredictor(network, unit, np.asarray(self.settings.tau))


def _matched(federation: Federation, validation: Federation) -> Federation:
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
    return matched
