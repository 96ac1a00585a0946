"""A small federation to begin with: what `dffl init` writes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.files import require_makeable, write_text, write_whole
from dffl.randomness import Purpose, stream

HOURS = 12
DAYS = 200
NEW_DAYS = 7
START = "2023-03-01"
WEATHER = ("clear", "cloudy", "rain")
SITES = ("harbour", "bakery", "plant")

DESCRIPTION = """\
# A federation of three sites. Every site knows the weather forecast of a day and must choose before it knows the prices.
# Try:  dffl fit federation.toml -o model.dffl

[federation]
features = ["date", "weather", "temp_*", "wind", "load"]  # columns that are known in advance: names, or patterns with a star.
#                               Texts become 0/1 columns, dates become a calendar (day of the year, weekday).
costs = "price_*"               # what is decided on: one column for each decision, matched by NAME at all sites.
sense = "min"                   # costs are to be small; "max" for profits.
order = "date"                  # the rows are a time series: the last 20 % of the days are the test, at all sites.
missing = "mean"                # empty cells get the site's own mean and a 0/1 column that says so. Or: "refuse", "drop".
unit = "EUR"                    # what decisions cost or earn is shown in this unit ...
per = "day"                     # ... a day: what a row is.
seed = 0                        # fixes everything that is random.

[training]
method = "crossfit"             # the default; the docs list all methods.
rounds = 15                     # federated rounds: few, so that the example is quick. The default is 50.
local_epochs = 3                # passes over its rows that a site makes in a round. The default is 5.
epochs = [0, 3, 10]             # an option of crossfit: for how long a site may train the shared model further.
relax = true                    # train without the whole numbers of plant.mps, which is much faster; decisions keep them.

[[client]]
name = "harbour"                # a cold store: it runs its compressors in the 4 cheapest of 12 two-hour slots.
table = "harbour.csv"           # paths are relative to this file.
set = { type = "top-k", k = 4 } # its constraint: a set by its name, with parameters.

[[client]]
name = "bakery"                 # ovens that can do without some slots, and get paid for it: the reward is the price.
table = "bakery.parquet"        # Parquet is read as well as CSV.
sense = "max"                   # it chooses the slots that earn most ...
set = { type = "zero-one-knapsack", weights = { file = "bakery_slots.csv", column = "effort", by = "slot" }, budget = 20 }
#                                 ... within 20 units of effort: one number for each slot, in a file of its own.

[[client]]
name = "plant"                  # a plant with start-up costs: its constraints are a model file, as solvers read and write it.
table = "plant.csv"             # its prices have the same names, in any order.
set = { type = "file", path = "plant.mps", predicted = "x_*" }   # x_3 belongs to price_3; on_3 and start_3 are helpers.
"""


def write_example(folder: str | Path) -> list[Path]:
    """Write a federation of three sites that can be trained at once; no file is ever overwritten."""
    folder = Path(folder)
    past, new = days_of("harbour")
    texts = {
        "federation.toml": DESCRIPTION,
        "harbour.csv": past.to_csv(index=False, lineterminator="\n"),
        "plant.csv": days_of("plant")[0].to_csv(index=False, lineterminator="\n"),
        "bakery_slots.csv": _efforts().to_csv(index=False, lineterminator="\n"),
        "plant.mps": _model(),
        "new.csv": new.to_csv(index=False, lineterminator="\n"),
    }
    paths = [folder / name for name in (*texts, "bakery.parquet")]
    if there := [path for path in paths if os.path.lexists(path)]:
        raise ValueError(f"{there[0]}: already exists and is not overwritten; choose an empty folder")
    require_makeable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    write_whole(folder / "bakery.parquet", lambda path: days_of("bakery")[0].to_parquet(path, index=False))
    return paths


def days_of(site: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The past days of a site, and new days whose prices nobody knows yet."""
    table = _site(site)
    features = [name for name in table.columns if not name.startswith("price_")]
    return table[:DAYS], table[features][DAYS:]


def _site(site: str) -> pd.DataFrame:
    """Days of a site: weather that is partly its own, and prices that depend on it, differently at each site.

    The price is a convex function of the demand that sun and wind do not cover. So the cheap slots are around noon on a
    clear day and at night on a windy day. A plain average of prices misses this.
    """
    count = DAYS + NEW_DAYS
    shared, site_rng = stream(2023, Purpose.EXAMPLE, "region"), stream(2023, Purpose.EXAMPLE, site)
    dates = pd.date_range(START, periods=count, freq="D")
    season = np.cos(2 * np.pi * (dates.day_of_year.to_numpy() - 20) / 365.25)  # 1 in winter
    wind = np.clip(7 + 2 * season + _slow(shared, count, 3.0) + site_rng.normal(0, 1, count), 0.2, None)
    cover = np.clip(0.5 + 0.15 * season + _slow(shared, count, 0.3) + site_rng.normal(0, 0.1, count), 0, 1)
    temp = 11 - 9 * season + _slow(shared, count, 2.0) + site_rng.normal(0, 1, count)
    spread = 4 + 8 * (1 - cover)  # clear days are warm, and the nights before them cold
    weekend = dates.day_of_week.to_numpy() >= 5
    heating = np.maximum(16 - temp, 0) + 1.5 * np.maximum(temp - 21, 0)
    load = 50 - 7 * weekend + 0.8 * heating + site_rng.normal(0, 1.5, count)
    slots = np.arange(HOURS)
    morning, noon, evening = (np.exp(-(((slots - at) / wide) ** 2)) for at, wide in ((4, 1.3), (6, 1.8), (9, 1.4)))
    night = (1 + np.cos(2 * np.pi * (slots - 0.5) / HOURS)) / 2
    turbines = np.clip((wind - 3) / 9, 0, 1) ** 2  # nothing below 3 m/s, all from 12 m/s
    size = {"harbour": 1.0, "bakery": 0.8, "plant": 1.2}[site]  # of wind and solar parks in the region
    left = (
        load[:, None]
        + (10 - 7 * weekend)[:, None] * morning
        + (9 + 0.5 * heating)[:, None] * evening
        - 9 * night
        - 34 * size * (1 - cover)[:, None] * noon
        - 26 * size * turbines[:, None] * (0.35 + 0.65 * night)
        + site_rng.normal(0, 2, (count, HOURS))  # unpredictable
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
    gaps = site_rng.choice(DAYS, 4, replace=False)
    table.loc[gaps, "wind"] = np.nan  # a sensor fails sometimes
    return table


def _slow(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    """Weather that changes slowly: it lasts some days."""
    steps, levels = rng.normal(0, size, count), np.zeros(count)
    for day in range(1, count):
        levels[day] = 0.7 * levels[day - 1] + 0.7 * steps[day]
    return levels


def _efforts() -> pd.DataFrame:
    efforts = [3, 2, 2, 4, 7, 6, 5, 4, 5, 8, 6, 4]
    return pd.DataFrame({"slot": [f"price_{slot + 1}" for slot in range(HOURS)], "effort": efforts})


def _model() -> str:
    """A machine that runs in 6 of 12 slots. Every start costs 18, and a run has at least 2 slots.

    on_t is a whole number, start_t marks the start of a run, and x_t is the energy bought: 1 to 2 while the machine is on.
    """
    slots = range(1, HOURS + 1)
    rows = [" N  cost", " G  work", *(f" G  least_{t}\n L  most_{t}\n G  begin_{t}" for t in slots)]
    rows += [f" G  stay_{t}" for t in slots[:-1]]
    columns = ["    MARKER    'MARKER'    'INTORG'"]
    for t in slots:
        entries = [f"least_{t} -1", f"most_{t} -2", f"begin_{t} -1", *([f"begin_{t + 1} 1"] if t < HOURS else [])]
        entries += [f"stay_{t - 1} 1"] if t > 1 else []
        columns += [f"    on_{t}  {entry}" for entry in entries]
    columns.append("    MARKER    'MARKER'    'INTEND'")
    for t in slots:
        entries = ["cost 18", f"begin_{t} 1", *([f"stay_{t} -1"] if t < HOURS else [])]
        columns += [f"    start_{t}  {entry}" for entry in entries]
    for t in slots:
        columns += [f"    x_{t}  {entry}" for entry in ("work 1", f"least_{t} 1", f"most_{t} 1")]
    bounds = [f" UP bound  on_{t}  1" for t in slots] + [f" UP bound  start_{t}  1" for t in slots]
    return "\n".join([
        "* Run a plant: x_t is the energy of a slot, on_t whether it runs, start_t whether it starts (18 EUR each).",
        "NAME plant", "ROWS", *rows, "COLUMNS", *columns, "RHS", "    rhs  work  9", "BOUNDS", *bounds, "ENDATA", "",
    ])  # fmt: skip
