"""A small federation in a folder, right in every part, and changes that make it wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

TOML = """\
[federation]
features = ["temp_*", "weather", "date"]
costs = "price_*"
sense = "min"
order = "date"
missing = "refuse"
unit = "EUR"

[training]
method = "finetune"
rounds = 3

[[client]]
name = "north"
table = "north.csv"
set = { type = "top-k", k = 2 }

[[client]]
name = "south"
table = "south.csv"
test = "south_test.csv"
set = { type = "zero-one-knapsack", weights = { file = "items.csv", column = "weight", by = "item" }, budget = 4 }

[[client]]
name = "east"
table = "east.csv"
set = { type = "file", path = "east.lp", predicted = "x_*" }
"""
ITEMS = "item,weight\nprice_3,3\nprice_1,1\nprice_2,2\n"
LP = """\
Minimize
 obj: 0 x_1 + 0 x_2 + 0 x_3 + 2 y
Subject To
 need: x_1 + x_2 + x_3 >= 2
 link: x_1 + x_2 - 2 y <= 0
Bounds
 0 <= x_1 <= 1
 0 <= x_2 <= 1
 0 <= x_3 <= 1
 0 <= y <= 1
General
 y
End
"""


def rows(seed: int, n: int = 10, start: str = "2024-01-01") -> str:
    """A table: line 2 is the first row."""
    rng = np.random.default_rng(seed)
    dates = pd.date_range(start, periods=n, freq="D").strftime("%Y-%m-%d")
    lines = ["date,weather,temp_1,temp_2,price_1,price_2,price_3"]
    for day in range(n):
        numbers = ",".join(f"{value:.2f}" for value in rng.uniform(1, 9, 5))
        lines.append(f"{dates[day]},{('dry', 'wet')[day % 2]},{numbers}")
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The texts of all files."""
    tables = {f"{name}.csv": rows(seed) for seed, name in enumerate(("north", "south", "east"))}
    return {"federation.toml": TOML, "items.csv": ITEMS, "east.lp": LP, "south_test.csv": rows(7, 4, "2024-02-01"), **tables}


def write(folder: Path, contents: dict[str, str]) -> Path:
    """Write the files; the path of the description."""
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / "federation.toml"


def cell(text: str, line: int, column: str, value: str) -> str:
    """The table with another cell."""
    lines = text.split("\n")
    cells = lines[line - 1].split(",")
    cells[lines[0].split(",").index(column)] = value
    lines[line - 1] = ",".join(cells)
    return "\n".join(lines)
