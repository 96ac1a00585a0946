"""The setup of the energy study: its options, and the two halves of a panel that they give."""

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

METHODS = ("local", "local-tuned", "fedavg", "interp-spo", "finetune", "finetune-mix", "crossfit")
"""What is trained. The methods without training, `mean-cost` and (with past prices) `forecast`, are naive rules here."""
SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Setup:
    """The options of `dffl energy run`.

    The two halves in time, the demands of 4 to 12 hours and the five seeds are the paper's. It does not state the rounds, the
    local epochs and the share of clients per round of its energy study: they are the defaults of `Settings`, with which all
    clients take part in each round (0.2 of them in the paper's synthetic study).
    """

    split: str | None = None
    """The first test day; None: the first day of the panel's second half."""
    lags: bool = False
    """Use past prices too."""
    cost: str = "total"
    weather_lag: int = 0
    covariates: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    demand_seed: int = 0
    blocked: bool = True
    """Hold out consecutive days to choose by. Days that follow each other are alike, so that random ones are no fair test."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of training other than the defaults."""

    def __post_init__(self) -> None:
        for name, instead in (("seed", "--seeds"), ("forecast", "--lags"), ("validation_blocks", "--blocked or --random-days")):
            if name in self.settings:
                raise ValueError(f"--set cannot change {name}; use {instead}")
        checked_seed(self.demand_seed, "demand_seed")
        _, shared = requests(METHODS, self.training(0))
        Settings.of(**shared)  # an unknown or impossible setting is refused before any work

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the protocol of a study."""
        plain = asdict(self)
        return plain | {"covariates": plain["covariates"] and list(plain["covariates"]), "without": list(plain["without"])}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Setup:
        """The setup that `as_json` has written."""
        names = plain["covariates"]
        return cls(**plain | {"covariates": names and tuple(names), "without": tuple(plain["without"])})

    def open(self, path: str) -> Panel:
        """The panel with these covariates, zones and demands."""
        return open_panel(path, self.without, None if self.covariates is None else list(self.covariates), self.demand_seed)

    def sampling(self, panel: Panel, before: str | None = None) -> Sampling:
        """How days become samples; a moving average is tuned on the days before ``before``."""
        weight = tuned_weight(panel, self.cost, before) if self.lags else None
        return Sampling(self.cost, self.weather_lag, weight)

    def training(self, seed: int) -> dict[str, Any]:
        """The settings of a fit."""
        return self.settings | {"seed": checked_seed(seed), "validation_blocks": self.blocked}


class Halves(NamedTuple):
    """The training days, the test days, and how days became samples."""

    train: Federation
    test: Federation
    sampling: Sampling
    first_test: str


def halves(panel: Panel, setup: Setup) -> Halves:
    """The panel's two halves in time. Features of a test day may depend on prices of the days before it, and on no others."""
    first = split_day(panel, setup.split)
    day_before = str(np.datetime64(first, "D") - 1)
    require_days(panel, Sampling(setup.cost, setup.weather_lag, 1.0 if setup.lags else None), None, day_before)
    sampling = setup.sampling(panel, first)
    train = federation(panel, sampling, last=day_before)
    return Halves(train, federation(panel, sampling, first=first), sampling, first)


def split_day(panel: Panel, split: str | None) -> str:
    """The first test day."""
    if split is None:
        return str(panel.days[len(panel.days) // 2])
    day = np.datetime64(read_day("--split", split), "D")
    if not panel.days[0] < day <= panel.days[-1]:
        raise ValueError(f"--split must be after {panel.days[0]} and not after {panel.days[-1]}, found {split}")
    return str(day)
