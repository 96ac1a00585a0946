"""Zones as clients: one sample per day, whose features are what was known before the day began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dffl.checks import require_whole
from dffl.federation import Client, Federation
from dffl.sets import FeasibleSet, TopK
from dffl.time.bases import SteadyAverage, steady, weekends
from dffl_studies.energy.data.columns import CALENDAR
from dffl_studies.energy.data.panel import Panel, check_cost
from dffl_studies.energy.input_table import read_day

WARM_UP = 7
"""The days that start a zone's moving average, before its first sample."""
FEWEST = 10
"""The fewest days that a zone may train on, or be tested on."""


@dataclass(frozen=True)
class Sampling:
    """How a day becomes a sample."""

    cost: str = "total"
    """The cost of a period (see `Panel.costs`)."""
    weather_lag: int = 0
    """Use the covariates of this many days before. 0: of the day itself, as if forecasts were perfect."""
    weight: float | None = None
    """The weight of a new day in a steady average of past prices that is a forecast; None: no past prices."""

    def __post_init__(self) -> None:
        check_cost(self.cost)
        require_whole("weather_lag", self.weather_lag, 0)  # covariates of later days are not known
        if self.weight is not None and not 0 < self.weight <= 1:
            raise ValueError(f"weight must be above 0 and at most 1, found {self.weight!r}")

    @property
    def skipped(self) -> int:
        """The number of first days of a zone that are no samples."""
        return max(self.weather_lag, WARM_UP if self.weight is not None else 0)


def zone_features(panel: Panel, rows: slice, sampling: Sampling) -> np.ndarray:
    """The covariates of each day of a zone; those of the calendar are known and are not those of an earlier day."""
    values, lag = panel.covariates[rows], sampling.weather_lag
    is_covariate = np.array([name not in CALENDAR for name in panel.covariate_names])
    return np.where(is_covariate, np.roll(values, lag, axis=0), values) if lag else values


def in_time(panel: Panel, sampling: Sampling, sets: Mapping[str, FeasibleSet] | None = None) -> Federation:
    """The zones as clients with the date of each row, for `dffl.backtest`: it adds the weekday and all that past prices say."""
    costs, clients = panel.costs(sampling.cost), []
    plain = [place for place, name in enumerate(panel.covariate_names) if name not in CALENDAR]
    for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True):
        x = zone_features(panel, rows, sampling)[:, plain] if plain else np.zeros((rows.stop - rows.start, 1))
        s = (sets or {}).get(zone) or TopK(panel.periods, float(demand))
        late = slice(rows.start + sampling.weather_lag, rows.stop)
        forecast = None if panel.forecast is None else panel.forecast[late]
        clients.append(
            Client(zone, x[sampling.weather_lag :], costs[late], s, times=panel.dates[late], forecast=forecast)
        )  # fmt: skip
    return Federation(clients)


def tuned_weight(panel: Panel, cost: str, before: str | None = None) -> float:
    """The weight of a steady average that loses least on the days before ``before`` (default: all)."""
    end, costs = np.datetime64(before or "9999-12-31", "D"), panel.costs(cost)
    clients = [
        Client(zone, costs[rows, :1], costs[rows], TopK(panel.periods, float(demand)))
        for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True)
    ]
    dates = [panel.dates[rows] for rows in panel.zones.values()]
    return SteadyAverage(clients, [days.astype(float) for days in dates]).weight([int((days < end).sum()) for days in dates])


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
    costs, clients = panel.costs(sampling.cost), []
    recent = tuple(f"recent_{period}" for period in range(panel.periods))
    names: Sequence[str] = panel.covariate_names
    for (zone, days), demand in zip(_sample_days(panel, sampling, first, last).items(), panel.demands, strict=True):
        rows = panel.rows(zone)
        client_costs, features = costs[rows], zone_features(panel, rows, sampling)
        s, forecast = TopK(panel.periods, float(demand)), None
        if sampling.weight is not None:
            dates = panel.dates[rows].astype(float)
            past = steady(client_costs, sampling.weight, dates)
            features = np.concatenate([features, weekends(dates, len(client_costs))[:, None], past], axis=1)
            names, forecast = (*panel.covariate_names, "weekend", *recent), recent
        clients.append(Client(zone, features[days], client_costs[days], s, feature_names=tuple(names), forecast=forecast))
    return Federation(clients)


def _sample_days(panel: Panel, sampling: Sampling, first: str | None, last: str | None) -> dict[str, np.ndarray]:
    """Which days of each zone are samples."""
    start = np.datetime64(read_day("first", first or "0001-01-01"), "D")
    is_sample = (panel.dates >= start) & (panel.dates <= np.datetime64(read_day("last", last or "9999-12-31"), "D"))
    return {
        zone: is_sample[rows] & (np.arange(rows.stop - rows.start) >= sampling.skipped) for zone, rows in panel.zones.items()
    }
