"""The setup of studies that train once, on the first part of a panel: the paper's protocol, and the leaderboard's zones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dffl.federation import Federation
from dffl.randomness import checked_seed
from dffl.training import Settings
from dffl.training.methods import requests
from dffl_studies.energy.data import Panel, Sampling, federation, open_panel
from dffl_studies.energy.data.clients import require_days, tuned_weight
from dffl_studies.energy.data.reading import demands_in_order
from dffl_studies.energy.input_table import Days, read_day
from dffl_studies.paper.study import AUTHORS

OPTION = "--as-published"
PAPERS_METHODS = ("local", "fedavg", "interp-mse", "interp-spo")
"""The paper's methods: their options are the paper's. Those of other methods may be chosen."""
FREE = ("engine", "chunk_size")
"""Settings that change no number."""


def published_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The synthetic study's settings, as in the authors' later code, and what is ``given`` (--set) unless that contradicts."""
    papers: dict[str, Any] = AUTHORS["settings"]
    for name, value in options.items():
        method, dot, _ = name.partition(".")
        if dot and method in PAPERS_METHODS:
            raise ValueError(
                f"--set {name}={value} contradicts {OPTION}, which has the paper's {method}; leave one of them out"
            )
        if not dot and name in Settings.names() and name not in FREE:
            ours, theirs = getattr(Settings.of(**{name: value}), name), getattr(Settings.of(**papers), name)
            if ours != theirs:
                raise ValueError(
                    f"--set {name}={value} contradicts {OPTION}, which has {name} = {theirs}; leave one of them out"
                )
    return papers | dict(options)


def refuse_contradictions(contradictions: Mapping[str, tuple[bool, str]]) -> None:
    """Refuse the first option that contradicts the protocol: each with whether it was used, and what the protocol has."""
    for option, (used, instead) in contradictions.items():
        if used:
            raise ValueError(f"{option} contradicts {OPTION}, which {instead}; leave one of them out")


def one_year(panel: Panel, asked: str | None) -> Days:
    """The year that begins with the panel's first day, or what the panel has of it; ``asked`` is what --to says."""
    first, last = pd.Timestamp(panel.days[0]), pd.Timestamp(panel.days[-1])
    end = first + pd.DateOffset(years=1) - pd.Timedelta(days=1)
    if asked is not None and last > end:
        raise ValueError(
            f"--to {asked} contradicts {OPTION}, which has one year, {first.date()} to {end.date()}; leave one of them out"
        )
    return Days(str(first.date()), str(min(end, last).date()))


def six_months(panel: Panel) -> str:
    """The first test day: six months after the first day."""
    first, last = pd.Timestamp(panel.days[0]), pd.Timestamp(panel.days[-1])
    split = first + pd.DateOffset(months=6)
    if split > last:
        raise ValueError(
            f"{panel.source}: {OPTION} trains on six months and tests from {split.date()} on, and the last day is "
            f"{last.date()}; use a panel with more days, or leave {OPTION} out"
        )
    return str(split.date())


METHODS = ("local", "local-tuned", "fedavg", "interp-spo", "finetune", "finetune-mix", "crossfit")
"""What is trained."""
PAPERS_TOO = ("interp-mse",)
"""What is trained too where the study is the paper's."""
EVERY_METHOD = (*METHODS[:3], *PAPERS_TOO, *METHODS[3:])
"""In the order of the tables."""
SEEDS = (0, 1, 2, 3, 4)
LATER = ("first", "last", "published")
"""The options that version 0.2.0 did not have."""


@dataclass(frozen=True)
class Setup:
    """The options of such a study.

    The demands of 4 to 12 hours and the five seeds are the paper's. The rest is as in the paper with ``published`` only:
    without it all clients take part in each round (0.2 of them in the paper), consecutive days are held out, and two halves of
    the days train and test.
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
    first: str | None = None
    """The first day of the panel that is used; None: the panel's first."""
    last: str | None = None
    published: bool = False
    """The paper's protocol: one year, whose first six months train, and its covariates only (see `as_published`)."""

    def __post_init__(self) -> None:
        for name in ("seed", "forecast", "validation_blocks"):
            if name in self.settings:
                raise ValueError(f"--set cannot change {name}: the protocol says it")
        checked_seed(self.demand_seed, "demand_seed")
        _, shared = requests(self.methods, self.training(0))
        Settings.of(**shared)  # an unknown or impossible setting is refused before any work

    @property
    def methods(self) -> tuple[str, ...]:
        """What is trained."""
        return EVERY_METHOD if self.published else METHODS

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the protocol of a study."""
        # Options that version 0.2.0 did not have are part of a protocol only where they are used: its results stay readable.
        later = {name for name in LATER if not getattr(self, name)}
        plain = {name: value for name, value in asdict(self).items() if name not in later}
        return plain | {"covariates": plain["covariates"] and list(plain["covariates"]), "without": list(plain["without"])}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Setup:
        """The setup that `as_json` has written."""
        names = plain["covariates"]
        return cls(**plain | {"covariates": names and tuple(names), "without": tuple(plain["without"])})

    def open(self, path: str) -> Panel:
        """The panel with these days, covariates, zones and demands."""
        panel = self._open(path, Days(self.first, self.last))
        if not self.published:
            return panel
        year = one_year(panel, self.last)
        if year == (str(panel.days[0]), str(panel.days[-1])):
            return panel
        left_out = f"{np.datetime64(year.last, 'D') + 1} to {panel.days[-1]}"
        return self._open(path, year).noted([f"--as-published has one year: the days from {left_out} were left out"])

    def _open(self, path: str, days: Days) -> Panel:
        names = None if self.covariates is None else list(self.covariates)
        panel = open_panel(path, self.without, names, self.demand_seed, days, papers_only=self.published)
        if panel.demand_known or not self.published:
            return panel
        return replace(panel, demands=demands_in_order(len(panel.names), self.demand_seed))

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
    first = six_months(panel) if setup.published else split_day(panel, setup.split)
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
