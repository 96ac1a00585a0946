"""Zones as clients: one sample per day, whose features are what was known before the day began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dffl.checks import require_whole
from dffl.federation import Client, Federation
from dffl.sets import TopK
from dffl_studies.energy.data.columns import CALENDAR
from dffl_studies.energy.data.lagged import is_weekend, steady_average
from dffl_studies.energy.data.panel import HOURS, Panel, check_cost
from dffl_studies.energy.input_table import read_day

RECENT = tuple(f"recent_{hour}" for hour in range(HOURS))
"""The features from past prices: a forecast of the 24 costs (see `Client.forecast`)."""
WARM_UP = 7
"""The days that start a zone's moving average, before its first sample."""
FEWEST = 10
"""The fewest days that a zone may train on, or be tested on."""


@dataclass(frozen=True)
class Sampling:
    """How a day becomes a sample."""

    cost: str = "total"
    """The cost of an hour (see `Panel.costs`)."""
    weather_lag: int = 0
    """Use the covariates of so many days before. 0: of the day itself, as if forecasts were perfect."""
    weight: float | None = None
    """The weight of a new day in the moving average of past prices; None: no past prices."""

    def __post_init__(self) -> None:
        check_cost(self.cost)
        require_whole("weather_lag", self.weather_lag, 0)  # covariates of later days are not known
        if self.weight is not None and not 0 < self.weight <= 1:
            raise ValueError(f"weight must be above 0 and at most 1, found {self.weight!r}")

    @property
    def skipped(self) -> int:
        """The number of first days of a zone that are no samples."""
        return max(self.weather_lag, WARM_UP if self.weight is not None else 0)


def feature_names(covariates: Sequence[str], sampling: Sampling) -> tuple[str, ...]:
    """The names of the features."""
    return tuple(covariates) + (() if sampling.weight is None else ("weekend", *RECENT))


def zone_features(panel: Panel, rows: slice, costs: np.ndarray, sampling: Sampling) -> np.ndarray:
    """The features of each day of a zone. They do not depend on any price of that day or of a later one."""
    features = lagged_weather(panel.covariates[rows], panel.covariate_names, sampling.weather_lag)
    if sampling.weight is None:
        return features
    dates = panel.dates[rows]
    return with_past(features, dates, steady_average(costs, dates, sampling.weight)[:-1])


def lagged_weather(covariates: np.ndarray, names: Sequence[str], lag: int) -> np.ndarray:
    """The covariates of so many days before; those of the calendar are known and stay."""
    held = np.array([name not in CALENDAR for name in names])
    return np.where(held, np.roll(covariates, lag, axis=0), covariates) if lag else covariates


def with_past(features: np.ndarray, dates: np.ndarray, forecast: np.ndarray) -> np.ndarray:
    """The features, followed by whether the day is a weekend and by the forecast from past prices."""
    return np.concatenate([features, is_weekend(dates)[:, None], forecast], axis=1)


def require_days(panel: Panel, sampling: Sampling, first: str | None, last: str | None) -> None:
    """Refuse a panel in which a zone has too few samples from ``first`` to ``last``."""
    for zone, days in _sample_days(panel, sampling, first, last).items():
        if days.sum() < FEWEST:
            span = f"from {first or 'its first'} to {last or 'its last'}"
            settle = f" (after {sampling.skipped} to settle)" if sampling.skipped else ""
            raise ValueError(
                f"{panel.source}: zone {zone} has {days.sum()} days {span}{settle}, at least {FEWEST} are needed; "
                f"leave it out (--without {zone!r}), or split the days elsewhere (--split)"
            )


def federation(panel: Panel, sampling: Sampling | None = None, first: str | None = None, last: str | None = None) -> Federation:
    """The zones as clients, one sample per day from ``first`` to ``last`` (both inclusive), in order of time."""
    sampling = sampling or Sampling()
    require_days(panel, sampling, first, last)
    costs, names, clients = panel.costs(sampling.cost), feature_names(panel.covariate_names, sampling), []
    forecast = None if sampling.weight is None else RECENT
    for (zone, days), demand in zip(_sample_days(panel, sampling, first, last).items(), panel.demands, strict=True):
        own = costs[panel.rows(zone)]
        features = zone_features(panel, panel.rows(zone), own, sampling)
        s = TopK(HOURS, float(demand))
        clients.append(Client(zone, features[days], own[days], s, feature_names=names, forecast=forecast))
    return Federation(clients)


def _sample_days(panel: Panel, sampling: Sampling, first: str | None, last: str | None) -> dict[str, np.ndarray]:
    """Which days of each zone are samples."""
    start = np.datetime64(read_day("first", first or "0001-01-01"), "D")
    kept = (panel.dates >= start) & (panel.dates <= np.datetime64(read_day("last", last or "9999-12-31"), "D"))
    return {zone: kept[rows] & (np.arange(rows.stop - rows.start) >= sampling.skipped) for zone, rows in panel.zones.items()}
