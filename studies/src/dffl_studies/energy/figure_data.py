"""The data of the figures that are not in the rows: the zones' places and prices, and one zone's days."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dffl_studies.energy.data import Panel
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.model import Trained

PERCENTILE = 95


def zone_table(panel: Panel) -> pd.DataFrame:
    """One row per zone: its demand, its place and how far its own price part reaches."""
    own = panel.own
    reach = [float(np.percentile(own[rows], PERCENTILE)) for rows in panel.zones.values()]
    lat, lon = with_places(panel).places.T
    return pd.DataFrame({"zone": panel.names, "demand": panel.demands, "own_p95": reach, "lat": lat, "lon": lon})


def calendar_days(trained: Trained, zone: str, panel: Panel) -> pd.DataFrame:
    """One row per test day and hour of a zone: its price, and whether the model of the first half chose it and should have."""
    client = trained.test[zone]
    dates = panel.dates[panel.rows(zone)][-client.n :]
    chosen = trained.first_half.decide(zone, client.x)
    hours = client.c.shape[1]
    return pd.DataFrame(
        {
            "date": np.repeat(np.datetime_as_string(dates, unit="D"), hours),
            "hour": np.tile(np.arange(hours), client.n),
            "price": client.c.ravel(),
            "chosen": chosen.ravel(),
            "cheapest": client.w_star.ravel(),
        }
    )
