"""The days of the example: three sites that buy power, and the price forecast that each has from its supplier.

The forecast errs as real ones do. It is made for the region: its level, its noon and its evening are wrong in a way that lasts
for days, and each slot has noise. It does not see what is near a site. Wind turbines lower the prices of the harbour at night,
solar plants those of the bakery at noon, more from month to month; at the plant there is nothing. So two sites can learn from
their own weather what their forecast lacks, and the third one gains nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl.randomness import Purpose, stream

SITES = ("harbour", "bakery", "plant")
SLOTS = 12
DAYS = {"harbour": 340, "bakery": 250, "plant": 340}
"""Days with known prices; the bakery began later."""
NEW_DAYS = 7
LAST = "2024-12-31"
POWER = {"harbour": 3.0, "bakery": 1.0, "plant": 1.5}
"""MWh that a site takes in a slot: the prices in the tables are those of a slot."""
SOLAR = {"harbour": 8.0, "bakery": 20.0, "plant": 0.0}
WIND = {"harbour": 16.0, "bakery": 5.0, "plant": 0.0}
"""By how many EUR/MWh the plants near a site lower its price at noon of a clear day, and in a windy night."""
WEATHER = ("clear", "cloudy", "rain")


def days_of(site: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The past days of a site, and new days whose prices nobody knows yet."""
    table = drawn(site)[-DAYS[site] - NEW_DAYS :]
    known = [name for name in table.columns if not name.startswith("price_")]
    return table[:-NEW_DAYS].reset_index(drop=True), table[known][-NEW_DAYS:].reset_index(drop=True)


def drawn(site: str, seed: int = 2024) -> pd.DataFrame:
    """All days of a site."""
    count = max(DAYS.values()) + NEW_DAYS
    shared, own = stream(seed, Purpose.EXAMPLE, "region"), stream(seed, Purpose.EXAMPLE, site)
    dates = pd.date_range(end=pd.Timestamp(LAST) + pd.Timedelta(days=NEW_DAYS), periods=count, freq="D")
    winter = np.cos(2 * np.pi * (dates.day_of_year.to_numpy() - 20) / 365.25)
    sun = np.clip(0.5 - 0.15 * winter + _lasting(shared, count, 0.6, 0.25), 0, 1)
    wind = np.clip(0.4 + 0.1 * winter + _lasting(shared, count, 0.6, 0.25), 0, 1)
    temp = 11 - 9 * winter + _lasting(shared, count, 0.85, 2.0)
    slots = np.arange(SLOTS)
    morning, noon, evening = (np.exp(-(((slots - at) / wide) ** 2)) for at, wide in ((4, 1.3), (6, 1.8), (9, 1.4)))
    night = (1 + np.cos(2 * np.pi * (slots - 0.5) / SLOTS)) / 2
    weekend = dates.day_of_week.to_numpy() >= 5
    level = 70 + _lasting(shared, count, 0.98, 6.0) + 0.8 * np.maximum(16 - temp, 0) - 6 * weekend
    region = (
        level[:, None]
        + (14 - 8 * weekend)[:, None] * morning
        + (16 + 4 * winter)[:, None] * evening
        - 14 * night
        - (30 * sun)[:, None] * noon
        - (14 * wind)[:, None] * (0.4 + 0.6 * night)
        + np.stack([_lasting(shared, count, 0.3, 4.0) for _ in slots], axis=1)
    )
    wrong = [_lasting(shared, count, keeps, size)[:, None] for keeps, size in ((0.9, 4.0), (0.8, 4.0), (0.8, 3.0))]
    supplier = region + wrong[0] + wrong[1] * noon + wrong[2] * evening + shared.normal(0, 3, region.shape)
    near = [np.clip(all_over + own.normal(0, 0.12, count), 0, 1) for all_over in (sun, wind)]
    built = 0.6 + 0.4 * np.arange(count) / count  # of the plants near a site
    price = region - (SOLAR[site] * built * near[0])[:, None] * noon - (WIND[site] * near[1])[:, None] * night
    price += own.normal(0, 3, price.shape)  # what no forecast knows
    seen = [np.clip(one + own.normal(0, 0.08, count), 0, 1) for one in near]
    table = pd.DataFrame({
        "date": dates.strftime("%Y-%m-%d"),
        "weather": np.select([seen[0] > 0.6, seen[0] > 0.3], WEATHER[:2], WEATHER[2]),
        "temp": (temp + own.normal(0, 1, count)).round(1),
        "sun": seen[0].round(2),
        "wind": seen[1].round(2),
        **{f"supplier_{slot + 1}": (POWER[site] * supplier[:, slot]).round(2) for slot in slots},
        **{f"price_{slot + 1}": (POWER[site] * price[:, slot]).round(2) for slot in slots},
    })  # fmt: skip
    table.loc[own.choice(count - 2 * NEW_DAYS, 4, replace=False) + NEW_DAYS, "wind"] = np.nan  # a sensor fails now and then
    return table


def _lasting(rng: np.random.Generator, count: int, keeps: float, size: float) -> np.ndarray:
    """A deviation that keeps this share from day to day, with this standard deviation."""
    steps = rng.normal(0, size, count)
    found = steps.copy()
    for day in range(1, count):
        found[day] = keeps * found[day - 1] + np.sqrt(1 - keeps**2) * steps[day]
    return found
