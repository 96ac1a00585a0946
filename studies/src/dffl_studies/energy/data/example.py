"""A synthetic market, to try the commands without own data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl.randomness import Purpose, stream
from dffl_studies.energy.data.panel import HOURS, Panel, weekday
from dffl_studies.energy.data.reading import random_demands

COVARIATES = ("temp_c_mean", "temp_c_min", "temp_c_max", "wind_speed_mean", "day_of_week")
TOWNS = ("Ashford", "Birchwick", "Cedarby", "Dunmere", "Elmstead", "Firbank", "Gorseham", "Hazelton")
HOUR = np.arange(HOURS)


def example_panel(days: int = 365, first: str = "2024-01-01", seed: int = 0, towns: Sequence[str] = TOWNS) -> Panel:
    """Some towns along a coast: winter mornings and evenings and hot afternoons are expensive, windy nights are cheap.

    The towns share a part of the weather, and their prices depend on it in different ways. Nothing of it is real.
    """
    dates = np.datetime64(first, "D") + np.arange(days)
    winter = np.cos(2 * np.pi * (dates.astype(int) - 15) / 365.25)  # 1 in mid-January
    swing, wind = stream(seed, Purpose.EXAMPLE).normal(size=(2, days))
    weather, prices = [], []
    for town in towns:
        rng = stream(seed, Purpose.EXAMPLE, town)
        mean = 11 - 9 * winter + 3 * swing + rng.normal(0, 1.5, days)
        half = 3 + rng.gamma(4, 0.8, days)
        breeze = np.exp(2.6 + 0.4 * wind + 0.3 * rng.normal(size=days))
        weather.append(np.stack([mean, mean - half, mean + half, breeze, weekday(dates)], axis=1).round(1))
        prices.append(_prices(mean, mean + half, breeze, weekday(dates) >= 5, rng).round(2))
    place = np.arange(len(towns))
    return Panel(
        source="the example",
        names=tuple(towns),
        starts=days * np.arange(len(towns) + 1),
        dates=np.tile(dates, len(towns)),
        prices=np.concatenate(prices),
        covariates=np.concatenate(weather),
        covariate_names=COVARIATES,
        demands=random_demands(towns, seed),
        currency="EUR",
        places=np.stack([50 + 0.4 * place, -4 + 0.9 * np.sin(place)], axis=1),
    )


def _prices(
    mean: np.ndarray, high: np.ndarray, breeze: np.ndarray, weekend: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The 24 prices of each day of a town."""
    cold, heat = np.maximum(12 - mean, 0)[:, None], np.maximum(high - 20, 0)[:, None]
    morning, evening, afternoon = (_bump(hour + rng.normal(0, 1)) for hour in (8, 18.5, 15.5))
    night = _bump(3, 5)
    heating, cooling, turbines = rng.uniform(0.5, 1.5, 3)
    price = 38 + 6 * (morning + evening) + cold * heating * (1.2 * morning + 1.6 * evening) + heat * cooling * 3.5 * afternoon
    price = price - breeze[:, None] * turbines * (0.3 + 0.7 * night) - 5 * weekend[:, None] * morning
    return price * np.exp(rng.normal(0, 0.12, (len(mean), 1))) + rng.normal(0, 3, price.shape)


def _bump(hour: float, width: float = 2.5) -> np.ndarray:
    """A bell curve of height 1 around an hour of the day."""
    away = (HOUR - hour + HOURS / 2) % HOURS - HOURS / 2
    return np.exp(-0.5 * (away / width) ** 2)
