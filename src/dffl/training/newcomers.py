"""A newcomer tunes the shared models of a federation, in which it did not take part, on its own samples alone.

It is cross-fitting with a given start. Every shared network is trained further on the newcomer's samples without one fold,
with a stop at every candidate number of epochs. The stop with the smallest loss over all samples is chosen, each sample
judged by the models that were trained without it, and the mean of all models decides. The first stop is the shared model
itself, so the result may be that nothing is tuned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dffl.checks import require_whole
from dffl.federation import Federation
from dffl.losses import Loss
from dffl.predictor import MeanPredictor, NetworkPredictor, Normaliser, Predictor, Template
from dffl.training.engines.base import Fields
from dffl.training.engines.start import precision
from dffl.training.methods.registry import Method, Request
from dffl.training.parts import FoldSamples, Part
from dffl.training.run import Outcome, Run
from dffl.training.settings import Settings
from dffl.training.trainers.base import Trainer
from dffl.training.trainers.crossfit import MOST_FOLDS, cross_fitted
from dffl.training.trainers.tuning import Stops, checked_epochs
from dffl.training.units import UnitPrior

if TYPE_CHECKING:
    from dffl.training.engines.site import Site


@dataclass(frozen=True)
class JoiningFold(FoldSamples):
    """A fold of the newcomer's samples, on which it tunes one shared model."""

    model: int
    """The number of the tuned model; several may hold out the same fold."""
    prior: UnitPrior

    def seeded(self, settings: Settings) -> Settings:
        return FoldSamples(self.model, self.count).seeded(settings)

    def units(self, train: Federation, settings: Settings) -> list[Normaliser]:
        return [self.prior.met_by(client.x, client.c, settings) for client in train]

    def __str__(self) -> str:
        return f"{super().__str__()}, model {self.model + 1}"


@dataclass(frozen=True)
class Given(Trainer):
    """Networks that are already trained: the start of a newcomer. Clients have nothing to do."""

    name: ClassVar[str] = "given"
    vectors: tuple[bytes, ...]
    dtype: str

    def train(self, run: Run, part: Part) -> np.ndarray:
        assert isinstance(part, JoiningFold)
        return np.frombuffer(self.vectors[part.model % len(self.vectors)], self.dtype)

    def visit(self, site: Site, sent: Mapping[str, Any]) -> Fields:
        return {}

    def blank(self, run: Run, part: Part) -> np.ndarray:
        return self.train(run, part)

    def check(self, run: Run, part: Part) -> None:
        size, wanted = self.train(run, part).size, run.engine(part).template.size
        if size != wanted:
            raise ValueError(f"the shared network has {size} numbers, and that of the fit's settings {wanted}")

    @property
    def label(self) -> str:
        return self.name


def joining(shared: Predictor, prior: UnitPrior, settings: Settings, **options: Any) -> Request:
    """The method by which a newcomer joins; ``options`` are folds, epochs and judge."""
    models = shared.models if isinstance(shared, MeanPredictor) else (shared,)
    networks = [model for model in models if isinstance(model, NetworkPredictor)]
    if len(networks) < len(models):
        kinds = ", ".join(sorted({type(model).__name__ for model in models}))
        raise ValueError(f"the shared model must be a network, or a mean of networks, to be tuned, found {kinds}")
    with precision(settings):
        vectors = [np.asarray(Template(model.network).vector(model.network), settings.dtype) for model in networks]
    start = Given(tuple(vector.tobytes() for vector in vectors), settings.dtype)

    def joined(run: Run, *, folds: int, epochs: Any, judge: Loss | str) -> Outcome:
        stops = Stops(start, checked_epochs(epochs))
        if stops.epochs[0] != 0:
            raise ValueError(f"epochs must begin with 0, the shared model as it is, found {epochs!r}")
        require_whole("folds", folds, least=2, most=MOST_FOLDS)
        run.require_loss(judge)
        count = min(folds, run.federation[0].n)
        if count == 1:  # nothing can be held out; the shared model was trained without the sample
            return Outcome([shared], choices={"epochs": [0]}, unseen=[(FoldSamples(0, 1), [shared])])
        # Every network is used equally often, so that without tuning their mean is the shared model.
        total = len(networks) * -(-count // len(networks))
        parts = [JoiningFold(m % count, count, m, prior) for m in range(total)]
        fitted = cross_fitted(run, stops, parts, judge)
        models = [run.personal(vectors, part)[0] for part, vectors in zip(parts, fitted.vectors, strict=True)]
        unseen = [(FoldSamples(fold, count), [MeanPredictor(tuple(models[fold::count]))]) for fold in range(count)]
        return Outcome([MeanPredictor(tuple(models))], choices={"epochs": fitted.epochs.tolist()}, unseen=unseen)

    return Request(Method("join", joined, "Joined", "#332288"), options)
