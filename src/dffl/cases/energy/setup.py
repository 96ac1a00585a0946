"""The protocol of the energy study: what is asked of a panel, and the two halves that it makes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dffl.cases.energy.data import Panel, Sampling, federation, open_panel
from dffl.cases.energy.data.clients import require_days
from dffl.cases.energy.naive import tuned_weight
from dffl.data.tables import read_day
from dffl.federation import Federation
from dffl.randomness import checked_seed
from dffl.training import Settings
from dffl.training.methods import requests

METHODS = ("local", "fedavg", "interp-mse", "interp-spo", "finetune", "finetune-mix")
SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Setup:
    """What `dffl energy run` asks for.

    The two halves in time, the demands of 4 to 12 hours and the five seeds are the paper's. It does not state the rounds, the
    local epochs and the share of clients per round of its energy study: they are the defaults of `Settings`, with which all
    clients take part in each round (0.2 of them in the paper's synthetic study).
    """

    split: str | None = None
    """The first day that tests; None: the first of the panel's second half."""
    lags: bool = False
    """Use past prices too."""
    cost: str = "total"
    weather_lag: int = 0
    covariates: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    demand_seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of training that are not the defaults."""

    def __post_init__(self) -> None:
        for name, instead in (("seed", "--seeds"), ("forecast", "--lags")):
            if name in self.settings:
                raise ValueError(f"--set cannot change {name}; use {instead}")
        checked_seed(self.demand_seed, "demand_seed")
        _, shared = requests(METHODS, self.training(0))
        Settings.of(**shared)  # an unknown or impossible setting is refused before any work

    def as_json(self) -> dict[str, Any]:
        """For a study's protocol: plain values."""
        plain = asdict(self)
        return plain | {"covariates": plain["covariates"] and list(plain["covariates"]), "without": list(plain["without"])}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Setup:
        """The protocol behind plain values."""
        names = plain["covariates"]
        return cls(**plain | {"covariates": names and tuple(names), "without": tuple(plain["without"])})

    def open(self, path: str) -> Panel:
        """The panel as this protocol reads it."""
        return open_panel(path, self.without, None if self.covariates is None else list(self.covariates), self.demand_seed)

    def recipe(self, panel: Panel, before: str | None = None) -> Sampling:
        """How days become samples; a moving average is tuned on the days before ``before``."""
        weight = tuned_weight(panel, self.cost, before) if self.lags else None
        return Sampling(self.cost, self.weather_lag, weight)

    def training(self, seed: int) -> dict[str, Any]:
        """The settings of a fit."""
        return self.settings | {"seed": checked_seed(seed), "forecast": self.lags}


class Halves(NamedTuple):
    """Days that train and days that test, and how days became samples."""

    train: Federation
    test: Federation
    recipe: Sampling
    first_test: str


def halves(panel: Panel, protocol: Setup) -> Halves:
    """The panel's two halves in time. A sample of the second may know prices of the days before it, and no others."""
    first = split_day(panel, protocol.split)
    day_before = str(np.datetime64(first, "D") - 1)
    require_days(panel, Sampling(protocol.cost, protocol.weather_lag, 1.0 if protocol.lags else None), None, day_before)
    recipe = protocol.recipe(panel, first)
    train = federation(panel, recipe, last=day_before)
    return Halves(train, federation(panel, recipe, first=first), recipe, first)


def split_day(panel: Panel, wanted: str | None) -> str:
    """The first day that tests."""
    if wanted is None:
        return str(panel.days[len(panel.days) // 2])
    day = np.datetime64(read_day("--split", wanted), "D")
    if not panel.days[0] < day <= panel.days[-1]:
        raise ValueError(f"--split must lie after {panel.days[0]} and not after {panel.days[-1]}, found {wanted}")
    return str(day)
