"""Naive rules, for a buyer without a model: they expect prices like those of the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dffl.federation import Client, optima
from dffl.judging import regrets_at
from dffl.sets import TopK
from dffl_studies.energy.data import HOURS, Panel
from dffl_studies.energy.data.lagged import WEIGHTS, mean_of_last, moving_average, steady_average, yesterday

LAST_DAYS = {"last-7-days": 7, "last-14-days": 14, "last-28-days": 28}
"""The rules that expect the plain mean of the last days, and how many these are."""
FORESIGHT = "perfect-foresight"
RULES = ("mean-cost", "yesterday", *LAST_DAYS, "moving-average", "steady-average", FORESIGHT)
"""The historical mean price, yesterday's prices, means and moving averages of past prices, and the prices themselves."""
Average = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
"""From prices, their dates and the weight of a new day to forecasts of each day and of the day after the last."""


class Buyer(NamedTuple):
    """A zone with all its days: those before the first test day (``past``), and the test days."""

    client: Client
    dates: np.ndarray
    past: np.ndarray


class RuleRegrets(NamedTuple):
    """What a rule loses in each zone."""

    training: list[float]
    """The mean over the training days; the first has no past and does not count. By this a rule is chosen."""
    test: list[np.ndarray]
    """Each test day."""


def naive_regrets(panel: Panel, cost: str, first_test: str) -> dict[str, RuleRegrets]:
    """What each rule loses before ``first_test`` and on the days from then on. A rule knows only the days before a day."""
    buyers = _buyers(panel, cost, first_test)
    plain, steady = (_best_weight(buyers, average) for average in (_moving, steady_average))
    found = {rule: RuleRegrets([], []) for rule in RULES}
    for client, dates, past in buyers:
        # In the test half the historical mean is that of the training half; there, it is that of the days before.
        mean = np.where(past[:, None], mean_of_last(client.c, client.n)[:-1], client.c[past].mean(axis=0))
        expected = (
            mean,
            yesterday(client.c)[:-1],
            *(mean_of_last(client.c, days)[:-1] for days in LAST_DAYS.values()),
            moving_average(client.c, plain)[:-1],
            steady_average(client.c, dates, steady)[:-1],
            client.c,
        )
        for rule, prices in zip(RULES, expected, strict=True):
            lost = regrets_at(client, prices)
            found[rule].training.append(float(lost[past][1:].mean()))
            found[rule].test.append(lost[~past])
    return found


def tuned_weight(panel: Panel, cost: str, before: str | None = None) -> float:
    """The weight of a new day with which a steady average loses least on the days before ``before`` (default: all)."""
    return _best_weight(_buyers(panel, cost, before), steady_average)


def _moving(prices: np.ndarray, dates: np.ndarray, weight: float) -> np.ndarray:
    return moving_average(prices, weight)


def _best_weight(buyers: list[Buyer], average: Average) -> float:
    """One weight for all zones, each judged on its own past days; the first day has no past and does not count."""
    lost = np.zeros(len(WEIGHTS))
    for client, dates, past in buyers:
        lost += [regrets_at(client, average(client.c, dates, weight)[:-1])[past][1:].mean() for weight in WEIGHTS]
    return WEIGHTS[int(np.argmin(lost))]


def _buyers(panel: Panel, cost: str, first_test: str | None) -> list[Buyer]:
    buyers, costs, end = [], panel.costs(cost), np.datetime64(first_test or "9999-12-31", "D")
    for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True):
        client = Client(zone, costs[rows, :1], costs[rows], TopK(HOURS, float(demand)))  # rules use no features
        buyers.append(Buyer(client, panel.dates[rows], panel.dates[rows] < end))
    optima([buyer.client for buyer in buyers])
    return buyers
