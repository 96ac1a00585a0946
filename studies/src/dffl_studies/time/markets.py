"""Markets as fleets of clients with an order: each client buys its cheapest hours of the next day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from dffl.federation import Client, Federation
from dffl.sets import TopK
from dffl_studies.energy.data import HOURS, open_panel
from dffl_studies.energy.data.hourly import daily_prices
from dffl_studies.energy.data.panel import weekday
from dffl_studies.energy.input_table import InputTable

FORECASTS = {"dnn": "DNN Ensemble", "lear": "LEAR Ensemble"}
"""The published forecasts, by the name of the fleet that uses them."""
BOUGHT = 8
"""Hours a day that are bought where a market states no demand."""
ABROAD = ("BE", "FR")


def zones(folder: Path, weather: bool) -> Federation:
    """The 19 zones of 2021, with or without the weather of the day."""
    panel = open_panel(folder, ["NE_INTERNAL_HUB"])
    clients = []
    for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True):
        days = panel.dates[rows]
        x = panel.covariates[rows] if weather else weekday(days)[:, None]
        clients.append(Client(zone, x, panel.prices[rows], TopK(HOURS, float(demand)), times=days))
    return Federation(clients)


def pjm(folder: Path) -> Federation:
    """The 19 PJM zones, prices alone: a missing hour is interpolated within its day, a repeated one is averaged."""
    days, prices = daily_prices(InputTable.read(folder / "prices.csv.gz", ["zone"], "date"), [])
    demand = pd.read_csv(folder / "zones.csv").set_index("zone")["demand"]
    clients = []
    for zone in sorted(set(days.keys)):
        rows = np.flatnonzero(days.keys == zone)
        rows = rows[np.argsort(days.dates[rows], kind="stable")]
        when = days.dates[rows]
        clients.append(Client(str(zone), weekday(when)[:, None], prices[rows], TopK(HOURS, float(demand[zone])), times=when))
    return Federation(clients)


def abroad(folder: Path, brought: str | None) -> Federation:
    """Belgium and France, with a published forecast or with prices alone."""
    clients = []
    for name in ABROAD:
        table = pd.read_csv(folder / f"forecasts_{name}.csv.gz", index_col=0, parse_dates=True)
        days = table.index.values.astype("datetime64[D]")[::HOURS]
        costs = table["Real price"].to_numpy().reshape(-1, HOURS)
        forecast = None if brought is None else table[FORECASTS[brought]].to_numpy().reshape(-1, HOURS)
        clients.append(Client(name, weekday(days)[:, None], costs, TopK(HOURS, BOUGHT), times=days, forecast=forecast))
    return Federation(clients)


FLEETS: dict[str, tuple[str, Callable[[Path], Federation]]] = {
    "zones": ("energy", lambda folder: zones(folder, weather=True)),
    "zones, prices only": ("energy", lambda folder: zones(folder, weather=False)),
    "pjm": ("pjm", pjm),
    "BE and FR, dnn": ("epf", lambda folder: abroad(folder, "dnn")),
    "BE and FR, lear": ("epf", lambda folder: abroad(folder, "lear")),
    "BE and FR, prices only": ("epf", lambda folder: abroad(folder, None)),
}
"""Each fleet: which of the folders of data it needs, and how it is read."""
