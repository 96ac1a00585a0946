"""Small made-up markets, written as panels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dffl_studies.energy.data.panel import HOURS


def frame(zones: int = 4, days: int = 60, seed: int = 0, start: str = "2022-01-01") -> pd.DataFrame:
    """Prices with a daily shape that the weather bends, in dffl's layout; without demands."""
    rng = np.random.default_rng(seed)
    dates = pd.date_range(start, periods=days)
    base = 40 + 12 * np.sin(np.arange(HOURS) / HOURS * 2 * np.pi - 2)
    rows = []
    for zone in range(zones):
        bend = rng.normal(size=(2, HOURS))
        for date in dates:
            temperature, wind = rng.normal(10, 6), rng.gamma(3, 4)
            price = base + (1 + zone) + 0.6 * temperature * bend[0] + 0.4 * wind * bend[1] + rng.normal(0, 2, HOURS)
            facts = {"zone": f"Z{zone:02d}", "date": date.strftime("%Y-%m-%d")}
            rows.append(facts | {f"price_{h}": price[h] for h in range(HOURS)} | {"temperature": temperature, "wind": wind})
    return pd.DataFrame(rows)


def panel_file(folder: Path, **made: object) -> Path:
    """A panel with demands of 3, 6, 9, ... hours."""
    table = frame(**made)  # type: ignore[arg-type]
    table["demand"] = 3.0 * (1 + table["zone"].str[1:].astype(int) % 7)
    path = folder / "panel.csv"
    table.to_csv(path, index=False)
    return path


def authors_file(folder: Path, zones: int = 3, days: int = 40) -> Path:
    """A panel in the layout of the paper's authors."""
    made = frame(zones, days)
    prices = made[[f"price_{h}" for h in range(HOURS)]]
    own = prices - prices.groupby(made["date"]).transform("mean")
    number = made["zone"].str[1:].astype(int)
    columns = {"client_id": number + 1, "date": made["date"]}
    columns |= {f"total_lmp_{h}": prices[f"price_{h}"] for h in range(HOURS)}
    columns |= {f"congestion_{h}": own[f"price_{h}"] for h in range(HOURS)}
    columns |= {"temp_c_mean": made["temperature"], "humidity_mean": 50 + made["wind"], "wind_speed_mean": made["wind"]}
    columns |= {"day_of_week": pd.to_datetime(made["date"]).dt.day_of_week, "bess": 4 + number}
    columns |= {"client_name": number.map(dict(enumerate(("AECO", "BGE", "COMED"))))}
    path = folder / "authors.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path
