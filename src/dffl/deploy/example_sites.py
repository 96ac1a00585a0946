"""A first example: a coordinator and three sites, each in a separate folder, as on four machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dffl.files import write_text
from dffl.randomness import Purpose, stream

HOURS = 12
DAYS = 200
NEW_DAYS = 7
START = "2023-03-01"
WEATHER = ("clear", "cloudy", "rain")
SITES = ("harbour", "bakery", "plant")

SITE = """\
# The table and the constraint of {name}. This file, and the files that it names, never leave the site.
[client]
table = "history.csv"           # paths are relative to this file. Columns are matched by name with those of the plan.
{set}
"""
SETS = {
    "harbour": 'set = { type = "top-k", k = 4 } # a cold store: it runs its compressors in the 4 cheapest of 12 slots.',
    "bakery": 'set = { type = "consecutive-hours", run = 3 }   # its ovens run once a day, for 3 consecutive slots.',
    "plant": 'set = { type = "consecutive-hours", run = 2, runs = 2 }   # it runs twice a day, for 2 consecutive slots.',
}
TRAINING = """\
method = "crossfit"             # any method that can be deployed; its options and the settings of dffl.Settings.
rounds = 20                     # few, to keep the example short. The default is 50.
local_epochs = 5                # passes over its rows by a site in a round.
epochs = [0, 3, 10, 30]         # an option of crossfit: epochs for which a site may tune the shared model.
"""


def site_files(folder: Path) -> list[Path]:
    """The files that `write_sites` writes."""
    return [folder / name / file for name in SITES for file in ("site.toml", "history.csv", "new.csv")]


def write_sites(folder: Path) -> list[Path]:
    """Write a folder for each site: its description, its past days, and days to decide for."""
    for name in SITES:
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        write_text(home / "site.toml", SITE.format(name=name, set=SETS[name]))
        past, new = days_of(name)
        for file, table in (("history.csv", past), ("new.csv", new)):
            write_text(home / file, table.to_csv(index=False, lineterminator="\n"))
    return site_files(folder)


def days_of(site: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The past days of a site, and new days whose prices nobody knows yet."""
    table = _site(site)
    features = [name for name in table.columns if not name.startswith("price_")]
    return table[:DAYS], table[features][DAYS:]


def _site(site: str) -> pd.DataFrame:
    """Days of a site: weather that is partly its own, and prices that follow from it, each site in its way.

    What demand, sun and wind leave for other plants makes the price, by a curve that rises ever faster. So the cheap slots are
    around noon on a clear day and at night on a windy one; a plain average of prices misses that.
    """
    count = DAYS + NEW_DAYS
    shared, own = stream(2023, Purpose.EXAMPLE, "region"), stream(2023, Purpose.EXAMPLE, site)
    dates = pd.date_range(START, periods=count, freq="D")
    season = np.cos(2 * np.pi * (dates.day_of_year.to_numpy() - 20) / 365.25)  # 1 in winter
    wind = np.clip(7 + 2 * season + _slow(shared, count, 3.0) + own.normal(0, 1, count), 0.2, None)
    cover = np.clip(0.5 + 0.15 * season + _slow(shared, count, 0.3) + own.normal(0, 0.1, count), 0, 1)
    temp = 11 - 9 * season + _slow(shared, count, 2.0) + own.normal(0, 1, count)
    spread = 4 + 8 * (1 - cover)  # clear days are warm, and the nights before them cold
    weekend = dates.day_of_week.to_numpy() >= 5
    heating = np.maximum(16 - temp, 0) + 1.5 * np.maximum(temp - 21, 0)
    load = 50 - 7 * weekend + 0.8 * heating + own.normal(0, 1.5, count)
    slots = np.arange(HOURS)
    morning, noon, evening = (np.exp(-(((slots - at) / wide) ** 2)) for at, wide in ((4, 1.3), (6, 1.8), (9, 1.4)))
    night = (1 + np.cos(2 * np.pi * (slots - 0.5) / HOURS)) / 2
    turbines = np.clip((wind - 3) / 9, 0, 1) ** 2  # nothing below 3 m/s, all from 12 m/s
    size = {"harbour": 1.0, "bakery": 0.8, "plant": 1.2}[site]  # of the wind and solar parks nearby
    left = (
        load[:, None]
        + (10 - 7 * weekend)[:, None] * morning
        + (9 + 0.5 * heating)[:, None] * evening
        - 9 * night
        - 34 * size * (1 - cover)[:, None] * noon
        - 26 * size * turbines[:, None] * (0.35 + 0.65 * night)
        + own.normal(0, 2, (count, HOURS))  # what no forecast knows
    )
    price = 12 + 38 * np.exp((left - 50) / 12)
    table = pd.DataFrame({
        "date": dates.strftime("%Y-%m-%d"),
        "weather": np.select([cover < 0.4, cover < 0.7], WEATHER[:2], WEATHER[2]),
        "temp_low": (temp - spread / 2).round(1),
        "temp_high": (temp + spread / 2).round(1),
        "wind": wind.round(1),
        "load": load.round(1),
        **{f"price_{slot + 1}": price[:, slot].round(2) for slot in slots},
    })  # fmt: skip
    gaps = own.choice(DAYS, 4, replace=False)
    table.loc[gaps, "wind"] = np.nan  # a sensor fails now and then
    return table


def _slow(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    """Weather that lasts some days."""
    steps, found = rng.normal(0, size, count), np.zeros(count)
    for day in range(1, count):
        found[day] = 0.7 * found[day - 1] + 0.7 * steps[day]
    return found
