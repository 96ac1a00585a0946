"""The keywords of `dffl.fit` and its relatives with their types, so that editors complete them and type checkers know them.

What they mean and how they are checked stands in `dffl.Settings` and at each method; tests keep the two in step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from dffl.losses import Loss
from dffl.predictor import NetworkFactory
from dffl.training.aggregators import Aggregator
from dffl.training.optimisers import Optimiser, Schedule
from dffl.training.privacy.levels import Privacy

MethodChoice = str | tuple[str, Mapping[str, Any]]
"""A method's name, or its name with options."""


class SettingsKeywords(TypedDict, total=False):
    """The settings of `dffl.Settings`."""

    seed: int
    rounds: int
    local_epochs: int
    batch_size: int
    client_fraction: float
    loss: Loss | str
    aggregate: Aggregator | str
    change_limit: float
    privacy: Privacy | str | Mapping[str, Any] | None
    optimiser: Optimiser | str
    learning_rate: float
    schedule: Schedule | str
    gradient_clip: float
    tau: float | None
    hidden: int
    network: NetworkFactory | str | None
    scale_features: bool
    scale_costs: bool
    pooled_units: bool
    validation_fraction: float
    validation_blocks: bool
    split: str | None
    period: tuple[float, float] | None
    relax: bool
    dtype: str
    engine: str
    chunk_size: int


class FitKeywords(SettingsKeywords, total=False):
    """Those, and the options of dffl's own methods. A type checker takes others with the method: ``("own", {"width": 3})``."""

    epochs: int | Sequence[int] | None
    refit: bool
    folds: int
    judge: Loss | str
    lambda_step: float
    pull: float
    own_epochs: int | None
    personal: str | Sequence[str]
    head_epochs: int | None
    neighbours: int | None
    penalty: float | None
    degree: int
    trees: int
    min_leaf: int | None
    alpha: float
    adaptive: bool
    clusters: int
    warm_rounds: int | None
    warm_epochs: int | None
    warm_fraction: float | None
    warm_step: float
    personal_rounds: int
    personal_epochs: int
    personal_step: float
    smoothing_decay: float
    step_decay: float
    freeze_at: float | None
