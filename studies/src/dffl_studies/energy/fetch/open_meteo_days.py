"""The hours of an Open-Meteo reply as days, each with its covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dffl.checks import first_true
from dffl_studies.energy.fetch.fetched import Fetched
from dffl_studies.energy.input_table import numbers_in

SPELLINGS = {
    "temperature_2m": ("temperature_2m",),
    "relative_humidity_2m": ("relative_humidity_2m", "relativehumidity_2m"),
    "wind_speed_10m": ("wind_speed_10m", "windspeed_10m"),
    "shortwave_radiation": ("shortwave_radiation",),
}
"""The hourly variables that are asked for, and the names that they have had."""
COVARIATES = {
    "temp_c_mean": ("temperature_2m", "mean"),
    "temp_c_min": ("temperature_2m", "min"),
    "temp_c_max": ("temperature_2m", "max"),
    "humidity_mean": ("relative_humidity_2m", "mean"),
    "wind_speed_mean": ("wind_speed_10m", "mean"),
    "solar_irradiance_mean": ("shortwave_radiation", "mean"),
    "solar_irradiance_max": ("shortwave_radiation", "max"),
}
"""The covariates of a day, under the names of the paper's authors: the variable and how its hours are aggregated."""
ENOUGH = 18
"""The fewest hours that a day must have of a variable; with fewer, the variable is missing on that day."""


def parse_open_meteo(reply: dict[str, Any], where: str) -> Fetched:
    """A place's hours as days: ``date`` and the covariates of the variables that the reply has.

    A day is a date of the reply's own clock, with 23, 24 or 25 hours.
    """
    hourly = reply.get("hourly")
    if not isinstance(hourly, dict) or not isinstance(hourly.get("time"), list):
        raise ValueError(f"{where}: must have hourly values with their times; fetch it again")
    time = pd.to_datetime(pd.Series(hourly["time"], dtype=str), format="ISO8601", errors="coerce")
    if (at := first_true(time.isna())) is not None:
        raise ValueError(f"{where}: a time must be like 2025-01-31T05:00, found {hourly['time'][at]!r}")
    hours, notes = {}, []
    if isinstance(ahead := reply.get("utc_offset_seconds"), int):
        notes.append(f"Open-Meteo: days are those of a clock at UTC{ahead / 3600:+g}")
    for variable, names in SPELLINGS.items():
        name = next((name for name in names if name in hourly), None)
        if name is None:
            lost = [covariate for covariate, (source, _) in COVARIATES.items() if source == variable]
            notes.append(f"Open-Meteo: no {variable} in the reply, so no {', '.join(lost)}")
        else:
            hours[variable] = _hours(hourly[name], time, f"{where}: {name}")
    if not hours:
        raise ValueError(f"{where}: must have one of {', '.join(SPELLINGS)}, found {', '.join(hourly)}")
    days = pd.DataFrame(hours).groupby(time.dt.strftime("%Y-%m-%d").rename("date"))
    enough = days.count() >= ENOUGH
    table = pd.DataFrame(
        {
            covariate: days[variable].agg(how).where(enough[variable])
            for covariate, (variable, how) in COVARIATES.items()
            if variable in hours
        }
    )
    return Fetched(table.dropna(how="all").reset_index(), notes)


def _hours(values: Any, time: pd.Series, where: str) -> np.ndarray:
    """One value per hour; null is a missing one."""
    if not isinstance(values, list) or len(values) != len(time):
        raise ValueError(f"{where}: must have a value for each of {len(time)} hours; fetch it again")
    numbers, at = numbers_in(pd.Series(values, dtype=object))
    if at is not None:
        raise ValueError(f"{where} at {time.iloc[at]:%Y-%m-%d %H:%M} must be a number, found {values[at]!r}")
    return numbers
