"""The settings of a run, checked when they are created."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import equinox as eqx
import numpy as np

from dffl.checks import require_number, require_whole
from dffl.federation import Federation
from dffl.items import ItemFactory
from dffl.losses import Loss
from dffl.named import nearest, plain, rebuilt
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import Correction, Network, NetworkFactory, Normaliser
from dffl.randomness import checked_seed
from dffl.splitting import RULES, TIME, Splitting
from dffl.training.aggregators import Aggregator
from dffl.training.optimisers import Optimiser, Schedule
from dffl.training.privacy.levels import Privacy

LARGEST = {
    "rounds": 10**7, "local_epochs": 10**5, "batch_size": 10**7, "hidden": 10**6, "chunk_size": 10**6,
}  # fmt: skip
"""A larger number is a mistake, and would fill the memory or end in a traceback."""
NAMED_SETTINGS: dict[str, Any] = {
    "loss": Loss, "aggregate": Aggregator, "optimiser": Optimiser, "schedule": Schedule, "privacy": Privacy,
}  # fmt: skip
"""Settings whose values have names."""
TAU, TAU_COSTS = 20.0, 50
"""The norm at which predictions are clipped, up to this number of costs."""
MOVED = {
    "lambda_step": ("lambda_step", "interp-spo"),
    "finetune_epochs": ("epochs", "finetune"),
    "finetune_refit": ("refit", "finetune"),
}
"""Settings of version 0.1.0 that are now options of methods: the option's name, and a method that has it."""
NO_PROCESSES = (
    "engine 'processes' was removed; engine='loop' gives the same numbers, and `dffl federation demo` runs sites in processes"
)
FORECAST = "forecast"
OF_CLIENTS = (FORECAST, "item_features")
"""Settings that a run takes from its clients."""
ITEMS, VECTOR = "items", "vector"
NETWORKS = (ITEMS, VECTOR)
BY_NAME = (
    'forecast is not a setting, as it took the last columns of x by position; name the columns: forecast = "dnn_*" under '
    '[federation] of a file, dffl.Client(..., forecast="dnn_*") in Python'
)
DIGESTED = (
    "seed", "rounds", "local_epochs", "batch_size", "client_fraction", "loss", "aggregate", "privacy", "optimiser",
    "learning_rate", "schedule", "gradient_clip", "tau", "hidden", "network", "scale_features", "scale_costs", "pooled_units",
    "forecast", "validation_fraction", "validation_blocks", "relax", "dtype",
)  # fmt: skip
"""The settings of version 0.2.0 that change numbers. They are always part of a digest, in this order. A later setting is part
of it only if it changes the results of 0.2.0, so that checkpoints of 0.2.0 stay valid.
"""
UNSAID: dict[str, tuple[Any, ...]] = {"split": (None, "draw"), "period": (None,)}
"""Later settings, and their values in trainings of 0.2.0. A setting that is not listed had its default."""


@dataclass(frozen=True)
class Settings:
    """The settings that all methods share. Options of one method are documented with that method (see `dffl.method`).

    The defaults are those of the paper if it gives a number, except for ``client_fraction``: 1 here, 0.2 in the paper's
    study.
    """

    seed: int = 0
    """The seed of all random numbers."""
    rounds: int = 50
    """Federated rounds T."""
    local_epochs: int = 5
    """Passes over a client's data in each round, E. The method `local` makes rounds x local_epochs by default."""
    batch_size: int = 64
    """The largest minibatch. A client's samples are split into batches of nearly equal size (see `dffl.training.batches`)."""
    client_fraction: float = 1.0
    """The share C of the clients that are sampled in a round."""
    loss: Loss | str = "spo+"
    """The loss of training: a name (spo+, rspo+, fenchel-young, dpo, mse, spo+mse) or a `dffl.Loss`."""
    aggregate: Aggregator | str = "mean"
    """How the updates of a round become the next shared model: a name (mean, median, trimmed-mean, geometric-median,
    norm-bound, krum, momentum, server-adam) or a `dffl.Aggregator`.
    """
    change_limit: float = 10.0
    """An update is left out of a round if it changes the model by more than about this many times the median change of the
    other clients; 0 leaves out none. It needs four updates in a round and an aggregator without its own limit (mean,
    momentum, server-adam), and is off with privacy. See `docs/threat-model.md`.
    """
    privacy: Privacy | str | Mapping[str, Any] | None = None
    """What is protected in messages of clients: client, sample, an object or a table such as {"level": "client", "clip": 1.0,
    "noise": 2.0}; None: nothing. See `docs/privacy.md`.
    """
    optimiser: Optimiser | str = "adam"
    """The optimiser of clients: adam, sgd or an object."""
    learning_rate: float = 1e-3
    """The optimiser's step size."""
    schedule: Schedule | str = "constant"
    """How the step size changes over the rounds of a federated training, and every local_epochs epochs of the method `local`:
    constant, cosine, linear or an object. Other trainings of a single client, such as tuning, keep the full step size.
    """
    gradient_clip: float = 1.0
    """The largest norm of a client's gradient."""
    tau: float | None = None
    """The norm at which predictions are clipped, in scaled units; None: 20 max(1, sqrt(d / 50)) for d costs."""
    hidden: int = 64
    """The width of the network's hidden layer; 0 makes it linear."""
    network: NetworkFactory | str | None = None
    """Builds another network from (key, p, d): any Equinox module from a vector of p to a vector of d. Or a name: ``items``,
    one network that all items share (the default if clients have items), or ``vector``, one network of the whole row.
    """
    scale_features: bool = True
    """Standardise each client's features."""
    scale_costs: bool = True
    """Divide each client's costs by their mean absolute value; False trains on raw costs."""
    pooled_units: bool = False
    """Use one mean and scale of each feature and one scale of the costs for all clients, instead of each client's own. Every
    client sends its own to the server. This helps if all clients measure the same things in the same units.
    """
    forecast: bool = False
    """Whether the clients have a forecast of their costs (`Client.forecast`), which the network learns to correct. A run takes
    it from its clients; it is not a keyword.
    """
    item_features: int = 0
    """The number of features of each item (`Client.items`); also taken from the clients."""
    validation_fraction: float = 0.2
    """The share of the samples that is held out by methods that choose something."""
    validation_blocks: bool = False
    """Hold out one stretch of consecutive samples, at the same position for all clients, instead of random samples."""
    split: str | None = None
    """Which samples are held out together. ``draw``: each client draws its own. ``row``: equal rows of all clients, by their
    keys or by a digest of features and costs. ``cost``: rows with equal costs. ``time``: the same stretches of time at all
    clients; it needs times. None: ``draw``, or ``row`` or ``cost`` with a warning if clients share rows.
    """
    period: tuple[float, float] | None = None
    """With ``split="time"``: the period that is divided into stretches; by default all times of all clients."""
    relax: bool = False
    """Train, and choose among candidates, on the sets without their integer conditions, which is faster. Decisions and regrets
    use the sets with them.
    """
    dtype: str = "float32"
    """The precision of training, float32 or float64."""
    engine: str = "vector"
    """`vector` trains clients together, `loop` one by one, `ray` on the nodes of the Ray cluster that RAY_ADDRESS names (or of
    this machine's); the numbers are the same."""
    chunk_size: int = 32
    """The number of clients that the vectorised engine trains at once on a core, at least 4. It bounds the memory and changes
    no numbers.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))
        for name, largest in LARGEST.items():
            require_whole(name, getattr(self, name), least=0 if name == "hidden" else 1, most=largest)
        require_whole("item_features", self.item_features, least=0, most=10**6)
        for name in ("learning_rate", "gradient_clip", "tau"):
            if name != "tau" or self.tau is not None:
                require_number(name, getattr(self, name), 0.0, np.inf, "> 0 and finite")
        if self.change_limit is False or self.change_limit != 0:
            require_number("change_limit", self.change_limit, float(np.nextafter(1, 0)), np.inf, "0, or >= 1 and finite")
        object.__setattr__(self, "change_limit", float(self.change_limit))
        require_number("client_fraction", self.client_fraction, 0.0, 1.0, "in (0, 1]", closed=True)
        require_number("validation_fraction", self.validation_fraction, 0.0, 1.0, "in (0, 1)")
        if self.split is not None and self.split not in RULES:
            raise ValueError(f"split must be one of {', '.join(RULES)}, or None, found {self.split!r:.40}")
        self._check_period()
        if self.engine == "processes":
            raise ValueError(NO_PROCESSES)
        for name, allowed in (("dtype", ("float32", "float64")), ("engine", ("vector", "loop", "ray"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {getattr(self, name)!r}")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):  # otherwise a text such as "no" would count as True
                raise ValueError(f"{name} must be True or False, found {getattr(self, name)!r:.80}")
        if isinstance(self.network, str) and self.network not in NETWORKS:
            raise ValueError(f"network must be one of {', '.join(NETWORKS)}, or a function, found {self.network!r:.40}")
        if not isinstance(self.network, str | None) and (not callable(self.network) or isinstance(self.network, eqx.Module)):
            raise ValueError(f"network must be a function of (key, p, d) that builds a network, found {self.network!r:.80}")
        for name, kind in NAMED_SETTINGS.items():
            if name != "privacy" or self.privacy is not None:
                object.__setattr__(self, name, kind.of(getattr(self, name)))
        trainable(self.loss)
        if self.hides is not None:
            self.hides.check(self)

    def _check_period(self) -> None:
        if self.split == TIME:
            object.__setattr__(self, "validation_blocks", True)  # neighbours in time are similar
        if self.period is None:
            return
        if self.split != TIME:
            raise ValueError(f"period belongs to split='time', found split={self.split!r}")
        ends = tuple(self.period) if isinstance(self.period, list | tuple) else ()
        if len(ends) != 2 or not all(isinstance(end, int | float) and np.isfinite(end) for end in ends) or ends[0] >= ends[1]:
            raise ValueError(f"period must be two numbers, the second one larger, found {self.period!r:.80}")
        object.__setattr__(self, "period", (float(ends[0]), float(ends[1])))

    @property
    def splitting(self) -> Splitting:
        """How clients divide their samples into folds."""
        return Splitting(self.seed, self.split or "draw", self.validation_blocks, self.period)

    @classmethod
    def of(cls, **values: Any) -> Settings:
        """Settings from keywords. For an unknown keyword, the error suggests the most similar name."""
        known = cls.names()
        for name in values:
            refuse_moved(name)
            if name not in known:
                raise ValueError(f"unknown setting {name!r}{nearest(name, known)} (allowed: {', '.join(known)})")
        return cls(**values)

    @classmethod
    def names(cls) -> list[str]:
        """The names of the settings that can be given."""
        return [field.name for field in fields(cls) if field.name not in OF_CLIENTS]

    def described(self) -> dict[str, Any]:
        """The settings as JSON values, to be saved; a custom network by its name."""
        network = self.network
        named = network if isinstance(network, str | None) else getattr(network, "__qualname__", type(network).__name__)
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)} | {"network": named}

    def digest(self) -> str:
        """A short text of all settings that change numbers."""
        return hashlib.blake2b(repr(self.telling()).encode(), digest_size=16).hexdigest()

    def telling(self) -> dict[str, Any]:
        """The settings that change numbers, as JSON values for a digest."""
        described, usual = self.described(), type(self)().described()
        later = [name for name in described if name not in (*DIGESTED, "engine", "chunk_size")]
        told = [name for name in later if described[name] not in UNSAID.get(name, (usual[name],))]
        return {name: described[name] for name in (*DIGESTED, *told)}

    @classmethod
    def read(cls, described: dict[str, Any], network: NetworkFactory | str | None) -> Settings:
        """The inverse of `described`."""
        values = {name: rebuilt(value) for name, value in described.items()} | {"network": network}
        of_clients = {name: values.pop(name) for name in OF_CLIENTS if name in values}
        if values.get("engine") == "processes":  # of version 0.2.0: the numbers of all engines are the same
            values["engine"] = "loop"
        return replace(cls.of(**values), **of_clients)

    def for_clients(self, federation: Federation | ParquetFederation) -> Settings:
        """These settings for a run of these clients, who determine whether there is a forecast, and features of items."""
        if self.forecast and not federation.has_forecast:
            raise ValueError(BY_NAME)
        if self.network == ITEMS and not federation.item_features:
            raise ValueError("network 'items' needs clients whose items have features: dffl.Client(..., items=...)")
        told: dict[str, Any] = {FORECAST: federation.has_forecast, "item_features": federation.item_features}
        return self if told == {name: getattr(self, name) for name in OF_CLIENTS} else replace(self, **told)

    def at(self, dim: int) -> Settings:
        """These settings for a federation with ``dim`` costs: with the clip for this number, unless one was given.

        Runs, saved fits and checkpoints store it as a number, so that it does not change after training.
        """
        return self if self.tau is not None else replace(self, tau=self.clip(dim))

    def clip(self, dim: int) -> float:
        """The norm at which predictions of ``dim`` costs are clipped.

        Costs have a mean size of 1 in scaled units, and thus a norm of about sqrt(d): the clip must grow in the same way.
        """
        return TAU * max(1.0, math.sqrt(dim / TAU_COSTS)) if self.tau is None else self.tau

    @property
    def factory(self) -> NetworkFactory:
        """The network factory: the custom one, or the default with this width; with a forecast, one that corrects it."""
        widths = (self.hidden,) if self.hidden else ()
        if callable(self.network):
            inner = self.network
        elif self.network != VECTOR and self.item_features:
            inner = ItemFactory(self.item_features, self.hidden, behind=True)
        elif self.forecast:
            inner = lambda key, p, d: Network(key, p, d, widths).silent()  # noqa: E731
        else:
            inner = lambda key, p, d: Network(key, p, d, widths)  # noqa: E731
        if not self.forecast:
            return inner
        return lambda key, p, d: Correction(inner(key, (p - d) or d, d), d)

    @property
    def hides(self) -> Privacy | None:
        """The privacy setting, as an object."""
        return self.privacy if isinstance(self.privacy, Privacy) else None

    def units(self, x: np.ndarray, c: np.ndarray) -> Normaliser:
        """A client's units, from its samples."""
        forecasts = c.shape[-1] if self.forecast else 0
        return Normaliser.fit(x, c, self.scale_features, self.scale_costs, forecasts, self.item_features)


FLAGS = [field.name for field in fields(Settings) if isinstance(field.default, bool)]


def refuse_moved(name: str) -> None:
    """Refuse a setting of version 0.1.0 that is now an option, and name its method; and the forecast of 0.2.0."""
    if name == FORECAST:
        raise ValueError(BY_NAME)
    if name in MOVED:
        option, method = MOVED[name]
        fix = f"dffl.fit(federation, {method!r}, {option}=...), or methods=[({method!r}, {{{option!r}: ...}})] to compare"
        raise ValueError(f"{name} is no longer a setting, but the option {option!r} of its methods: {fix}")


def trainable(loss: Any) -> Loss:
    """The loss, if it can be used in training."""
    loss_value = Loss.of(loss)
    if not loss_value.trains:
        raise ValueError(f"loss {loss_value.name!r} has no useful gradient: it can judge candidates, but not train")
    return loss_value
