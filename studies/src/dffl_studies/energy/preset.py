"""The preset of `dffl energy run`: a market's panel as a federation with an order, and what `dffl.backtest` is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dffl.federation import Federation
from dffl.randomness import checked_seed
from dffl.sets import FeasibleSet
from dffl.time.backtest import NETWORKS
from dffl.training import Settings
from dffl.training.keywords import MethodChoice
from dffl.training.methods import method
from dffl_studies.energy.checks import fleet, noted, placed, without_choice
from dffl_studies.energy.data import Panel, Sampling, open_panel
from dffl_studies.energy.data.clients import in_time
from dffl_studies.energy.data.money import Money
from dffl_studies.energy.decisions import sets_of
from dffl_studies.energy.input_table import Days, read_day

REFIT = 28
"""Days from one training to the next."""
MSE = "-mse"
NOT_HERE = {"seed": "--seeds", "forecast": "--forecast", "split": "--split"}
"""Settings that --set cannot change, and the option for it."""


class Market(NamedTuple):
    """A panel that is ready to be judged."""

    panel: Panel
    federation: Federation
    sets: dict[str, FeasibleSet]
    """The sets of zones that decide other things than k periods."""
    first_test: str


@dataclass(frozen=True)
class Preset:
    """The options of `dffl energy run` and `train`."""

    split: str | None = None
    """The first test day; None: the first day of the later half."""
    cost: str = "total"
    weather_lag: int = 0
    covariates: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    demand_seed: int = 0
    first: str | None = None
    last: str | None = None
    currency: str | None = None
    unit: str | None = None
    rates: str | None = None
    forecast: str | None = None
    decisions: str | None = None
    methods: tuple[str, ...] | None = None
    """What is trained; None: the networks that `dffl.backtest` trains by default."""
    refit: int = REFIT
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of training other than those of a backtest."""

    def __post_init__(self) -> None:
        for name in NOT_HERE.keys() & self.settings.keys():
            raise ValueError(f"--set cannot change {name}; use {NOT_HERE[name]}")
        checked_seed(self.demand_seed, "demand_seed")
        if self.split is not None:
            read_day("--split", self.split)
        Sampling(self.cost, self.weather_lag)
        for choice in self.candidates:
            method(choice if isinstance(choice, str) else choice[0])  # an unknown one is refused before any work
        if dotted := [name for name in self.settings if "." in name]:
            raise ValueError(f"--set {dotted[0]}: options of methods are for --as-published; a backtest has settings only")
        Settings.of(**self.settings)

    def as_json(self) -> dict[str, Any]:
        """Plain values, for the protocol of a study."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Preset:
        """The preset that `as_json` has written."""
        lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        return cls(**plain | lists)

    @property
    def candidates(self) -> list[MethodChoice]:
        """The methods that are trained, as `dffl.backtest` takes them; `fedavg-mse` is fedavg with the loss mse."""
        return list(NETWORKS) if self.methods is None else [choice_of(name) for name in self.methods]

    @property
    def sampling(self) -> Sampling:
        """How a day becomes a sample."""
        return Sampling(self.cost, self.weather_lag)

    def panel(self, path: str | Path) -> Panel:
        """The panel with these days, zones, covariates, demands and this money."""
        names = None if self.covariates is None else list(self.covariates)
        money = Money(self.currency, self.unit, None if self.rates is None else Path(self.rates))
        days = Days(self.first, self.last)
        panel = open_panel(path, self.without, names, self.demand_seed, days, False, money, self.forecast)
        if self.forecast is not None and panel.forecast is None:
            raise ValueError(f"{path}: has no forecast (columns forecast_0, ...), and --forecast asks for one")
        return noted(panel)

    def federation(self, panel: Panel) -> Federation:
        """The zones of a panel as clients with an order."""
        return in_time(panel, self.sampling, {} if self.decisions is None else sets_of(Path(self.decisions), panel))

    def market(self, path: str | Path) -> Market:
        """The market that is judged: zones without a choice or without enough days are left out, each with a note."""
        panel = self.panel(path)
        sets = {} if self.decisions is None else sets_of(Path(self.decisions), panel)
        usable = placed(without_choice(panel, set(sets)), self.split)
        panel = usable.panel.noted(fleet(usable.panel))
        return Market(panel, in_time(panel, self.sampling, sets), sets, usable.first_test)


def choice_of(name: str) -> MethodChoice:
    """A method by its name in results: ``fedavg-mse`` is fedavg with the loss mse."""
    return (name.removesuffix(MSE), {"loss": MSE[1:]}) if name.endswith(MSE) else name
