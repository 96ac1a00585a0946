"""A small federation to begin with: what `dffl init` writes."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from dffl.files import require_makeable, write_text, write_whole
from dffl.tables.example_days import SLOTS, days_of

DESCRIPTION = """\
# Three sites of one company buy power for the next day. Each has the price forecast of its supplier, and its own weather.
# The days are drawn (dffl.tables.example_days says how). Try:  dffl fit federation.toml -o model.dffl

[federation]
features = ["weather", "temp", "sun", "wind"]  # columns that are known in advance: names, or patterns with a star.
#                               Texts become 0/1 columns.
costs = "price_*"               # what is decided on: one column for each decision, matched by NAME at all sites.
forecast = "supplier_*"         # the forecast that you use today: supplier_3 is of price_3.
order = "date"                  # the rows are a time series.
test_from = 2024-09-01          # the rows from here on judge; each is decided with what was known before it.
sense = "min"                   # costs are to be small; "max" for profits.
missing = "mean"                # empty cells get the site's own mean and a 0/1 column that says so. Or: "refuse", "drop".
unit = "EUR"                    # what decisions cost or earn is shown in this unit ...
per = "day"                     # ... a day: what a row is.
seed = 0                        # fixes everything that is random.

# No [training] is needed: with an order, a backtest chooses among your forecast, moving averages and models.

[[client]]
name = "harbour"                # a cold store: it runs its compressors in the 4 cheapest of 12 two-hour slots.
table = "harbour.csv"           # paths are relative to this file.
set = { type = "top-k", k = 4 } # its constraint: a set by its name, with parameters; or a model file, { type = "file", ... }.

[[client]]
name = "bakery"                 # ovens that can do without some slots, and get paid for it: the reward is the price.
table = "bakery.parquet"        # Parquet is read as well as CSV.
sense = "max"                   # it chooses the slots that earn most ...
set = { type = "zero-one-knapsack", weights = { file = "bakery_slots.csv", column = "effort", by = "slot" }, budget = 20 }
#                                 ... within 20 units of effort: one number for each slot, in a file of its own.

[[client]]
name = "plant"                  # it runs twice a day, for 2 slots each. Its supplier's forecast is right on average.
table = "plant.csv"             # its prices have the same names, in any order.
set = { type = "consecutive-hours", run = 2, runs = 2 }   # two runs of two slots that follow each other.
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
        "new.csv": new[:1].to_csv(index=False, lineterminator="\n"),
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


def _efforts() -> pd.DataFrame:
    efforts = [3, 2, 2, 4, 7, 6, 5, 4, 5, 8, 6, 4]
    return pd.DataFrame({"slot": [f"price_{slot + 1}" for slot in range(SLOTS)], "effort": efforts})
