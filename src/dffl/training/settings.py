"""The settings of a run, checked when they are made."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dffl.checks import require_whole
from dffl.predictor import Correction, Network, NetworkFactory, Normaliser
from dffl.randomness import checked_seed


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are the paper's, completed where it is silent."""

    seed: int = 0
    """Fixes everything that is random."""
    rounds: int = 50
    """Federated rounds T."""
    local_epochs: int = 5
    """Passes over its data that a client makes in a round, E. The method `local` makes rounds x local_epochs."""
    batch_size: int = 64
    """The largest minibatch. A client's samples are dealt into equal ones (see `dffl.training.batches`)."""
    client_fraction: float = 1.0
    """The share C of the clients that a round samples."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    gradient_clip: float = 1.0
    """The largest norm of a client's gradient."""
    tau: float = 20.0
    """The norm at which predictions are clipped, in scaled units."""
    hidden: int = 64
    """The width of the network's hidden layer."""
    network: NetworkFactory | None = None
    """Builds another network from (key, p, d): any Equinox module from a vector of p to a vector of d."""
    scale_features: bool = True
    """Standardise each client's features."""
    scale_costs: bool = True
    """Divide each client's costs by their mean absolute value; False trains on raw costs."""
    forecast: bool = False
    """The last d features are a forecast of the d costs that a client already has: the network learns what to add to it."""
    validation_fraction: float = 0.2
    """The share of the samples that methods which choose something hold out."""
    validation_blocks: bool = False
    """Hold out one stretch of consecutive samples, at one place for all clients, instead of samples at random."""
    lambda_step: float = 0.05
    """The step of the grid of interpolation weights from 0 to 1."""
    finetune_epochs: tuple[int, ...] = (0, 3, 10, 30, 100)
    """The numbers of epochs that `finetune` chooses from."""
    finetune_refit: bool = True
    """After choosing, fine-tune the federated model of all the data; False keeps the models of the split."""
    dtype: str = "float32"
    """The precision of training, float32 or float64."""
    engine: str = "vector"
    """`vector` trains clients together, `loop` one by one; the numbers are the same."""
    chunk_size: int = 32
    """How many clients the vectorised engine trains at once; bounds the memory."""

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        for name in ("rounds", "local_epochs", "batch_size", "hidden", "chunk_size"):
            require_whole(name, getattr(self, name), least=1)
        for name in ("learning_rate", "gradient_clip", "tau"):
            _number(name, getattr(self, name), 0.0, np.inf, "> 0 and finite")
        _number("client_fraction", self.client_fraction, 0.0, 1.0, "in (0, 1]", closed=True)
        _number("validation_fraction", self.validation_fraction, 0.0, 1.0, "in (0, 1)")
        _number("lambda_step", self.lambda_step, 0.0, 1.0, "in (0, 1]", closed=True)
        epochs = tuple(self.finetune_epochs)
        for count in epochs:
            require_whole("finetune_epochs", count, least=0)
        if not epochs or list(epochs) != sorted(set(epochs)):
            raise ValueError(f"finetune_epochs must be increasing whole numbers, found {self.finetune_epochs!r}")
        object.__setattr__(self, "finetune_epochs", epochs)
        for name, allowed in (("dtype", ("float32", "float64")), ("engine", ("vector", "loop"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {getattr(self, name)!r}")

    @classmethod
    def of(cls, **values: Any) -> Settings:
        """Settings from keywords; an unknown one is named, with the one that was probably meant."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"unknown setting {name!r}{hint} (allowed: {', '.join(known)})")
        return cls(**values)

    @property
    def factory(self) -> NetworkFactory:
        """What builds the network: the user's own, or the default one of this width; beside a forecast, what corrects it."""
        if not self.forecast:
            return self.network or (lambda key, p, d: Network(key, p, d, (self.hidden,)))
        inner = self.network or (lambda key, p, d: Network(key, p, d, (self.hidden,)).silent())
        return lambda key, p, d: Correction(inner(key, p - d, d), d)

    def units(self, x: np.ndarray, c: np.ndarray) -> Normaliser:
        """A client's units, from its samples."""
        return Normaliser.fit(x, c, self.scale_features, self.scale_costs, c.shape[-1] if self.forecast else 0)

    @property
    def lambdas(self) -> np.ndarray:
        """The grid of interpolation weights, with both ends."""
        inner = np.arange(1, round(1 / self.lambda_step)) * self.lambda_step
        return np.round(np.concatenate([[0.0], inner[inner < 1 - 1e-9], [1.0]]), 12)


def _number(name: str, value: Any, low: float, high: float, allowed: str, closed: bool = False) -> None:
    try:
        fits = low < float(value) < high or (closed and float(value) == high)
    except (TypeError, ValueError):
        fits = False
    if not fits or isinstance(value, bool):
        raise ValueError(f"{name} must be {allowed}, found {value!r}")
