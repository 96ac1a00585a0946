"""Naive rules, for a buyer without a model: they expect prices like those of the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dffl.cases.energy.data import HOURS, Panel
from dffl.cases.energy.data.lagged import WEIGHTS, moving_average, steady_average, yesterday
from dffl.federation import Client, optima
from dffl.judging import regrets_at
from dffl.sets import TopK

RULES = ("mean-cost", "yesterday", "moving-average", "steady-average", "perfect-foresight")
"""The historical mean price, yesterday's prices, moving averages of past prices, and the prices themselves."""
Average = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
"""From prices, their dates and the weight of a new day to forecasts of each day and of the day after the last."""


class Buyer(NamedTuple):
    """A zone with all its days: those before the first test day (``past``), and the test days."""

    client: Client
    dates: np.ndarray
    past: np.ndarray


def naive_regrets(panel: Panel, cost: str, first_test: str) -> dict[str, np.ndarray]:
    """The mean regret of each zone on the days from ``first_test`` on, under each rule."""
    daily = daily_regrets(panel, cost, first_test)
    return {rule: np.array([lost.mean() for lost in zones]) for rule, zones in daily.items()}


def daily_regrets(panel: Panel, cost: str, first_test: str) -> dict[str, list[np.ndarray]]:
    """The regret of each zone on each day from ``first_test`` on, under each rule."""
    buyers = _buyers(panel, cost, first_test)
    plain, steady = (_best_weight(buyers, average) for average in (_moving, steady_average))
    found: dict[str, list[np.ndarray]] = {rule: [] for rule in RULES}
    for client, dates, past in buyers:
        expected = (
            np.broadcast_to(client.c[past].mean(axis=0), client.c.shape),
            yesterday(client.c)[:-1],
            moving_average(client.c, plain)[:-1],
            steady_average(client.c, dates, steady)[:-1],
            client.c,
        )
        for rule, prices in zip(RULES, expected, strict=True):
            found[rule].append(regrets_at(client, prices)[~past])
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
