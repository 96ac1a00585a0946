"""Zones as clients: a sample a day, of which the features are what was known before it began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np

from dffl.cases.energy.data.columns import CALENDAR
from dffl.cases.energy.data.lagged import is_weekend, steady_average
from dffl.cases.energy.data.panel import HOURS, Panel, check_cost
from dffl.checks import require_whole
from dffl.federation import Client, Federation
from dffl.sets import TopK

RECENT = tuple(f"recent_{hour}" for hour in range(HOURS))
"""The features that past prices make: a forecast of the 24 costs, behind all others (see `Settings.forecast`)."""
WARM_UP = 7
"""Days that a moving average is given to settle before its zone's samples start."""
FEWEST = 10
"""The fewest days that a zone may train on, or be tested on."""


@dataclass(frozen=True)
class Sampling:
    """How a day becomes a sample."""

    cost: str = "total"
    """What an hour costs (see `Panel.costs`)."""
    weather_lag: int = 0
    """Take the covariates of so many days before. 0: of the day itself, as if forecasts were perfect."""
    weight: float | None = None
    """The weight of a new day in the moving average of past prices; None: no past prices."""

    def __post_init__(self) -> None:
        check_cost(self.cost)
        require_whole("weather_lag", self.weather_lag, 0)  # of days to come, covariates are not known
        if self.weight is not None and not 0 < self.weight <= 1:
            raise ValueError(f"weight must be above 0 and at most 1, found {self.weight!r}")

    @property
    def skipped(self) -> int:
        """How many of a zone's first days have no sample."""
        return max(self.weather_lag, WARM_UP if self.weight is not None else 0)


class Days(NamedTuple):
    """A zone's samples, in order: dates, features and costs."""

    zone: str
    dates: np.ndarray
    features: np.ndarray
    costs: np.ndarray


def feature_names(covariates: Sequence[str], recipe: Sampling) -> tuple[str, ...]:
    """The columns of the features."""
    return tuple(covariates) + (() if recipe.weight is None else ("weekend", *RECENT))


def samples(panel: Panel, recipe: Sampling) -> Iterator[Days]:
    """The samples of each zone. A day's features change with no price of that day or of a later one."""
    skip = recipe.skipped
    for zone, own in zip(panel, panel.by_zone(panel.costs(recipe.cost)), strict=True):
        features = lagged_weather(zone.covariates, panel.covariate_names, recipe.weather_lag)
        if recipe.weight is not None:
            features = with_past(features, zone.dates, steady_average(own, zone.dates, recipe.weight)[:-1])
        yield Days(zone.name, zone.dates[skip:], features[skip:], own[skip:])


def lagged_weather(covariates: np.ndarray, names: Sequence[str], lag: int) -> np.ndarray:
    """The covariates of so many days before; the calendar is known and is not held back."""
    held = np.array([name not in CALENDAR for name in names])
    return np.where(held, np.roll(covariates, lag, axis=0), covariates) if lag else covariates


def with_past(features: np.ndarray, dates: np.ndarray, forecast: np.ndarray) -> np.ndarray:
    """The features with what goes with past prices: whether the day is a weekend, and the forecast."""
    return np.concatenate([features, is_weekend(dates)[:, None], forecast], axis=1)


def read_day(name: str, text: str) -> np.datetime64:
    """A day that a caller has written; ``name`` is what it is called there."""
    try:
        return np.datetime64(date.fromisoformat(text), "D")
    except ValueError:
        raise ValueError(f"{name} must be a day such as 2021-01-31, found {text!r}") from None


def require_days(panel: Panel, recipe: Sampling, first: str | None, last: str | None) -> None:
    """Refuse a panel in which a zone has too few samples from ``first`` to ``last``."""
    start, end = _span(first, last)
    for zone in panel:
        dates = zone.dates[recipe.skipped :]
        count = int(((dates >= start) & (dates <= end)).sum())
        if count < FEWEST:
            span = f"from {first or 'its first'} to {last or 'its last'}"
            settle = f" (after {recipe.skipped} to settle)" if recipe.skipped else ""
            raise ValueError(
                f"{panel.source}: zone {zone.name} has {count} days {span}{settle}, at least {FEWEST} are needed; "
                f"leave it out (--without {zone.name!r}), or split the days elsewhere (--split)"
            )


def federation(panel: Panel, recipe: Sampling | None = None, first: str | None = None, last: str | None = None) -> Federation:
    """The zones as clients, a sample a day from ``first`` to ``last`` (both inclusive), in order of time."""
    recipe = recipe or Sampling()
    require_days(panel, recipe, first, last)
    (start, end), names, clients = _span(first, last), feature_names(panel.covariate_names, recipe), []
    for demand, days in zip(panel.demands, samples(panel, recipe), strict=True):
        kept, buys = (days.dates >= start) & (days.dates <= end), TopK(HOURS, float(demand))
        clients.append(Client(days.zone, days.features[kept], days.costs[kept], buys, feature_names=names))
    return Federation(clients)


def _span(first: str | None, last: str | None) -> tuple[np.datetime64, np.datetime64]:
    return read_day("first", first or "0001-01-01"), read_day("last", last or "9999-12-31")
