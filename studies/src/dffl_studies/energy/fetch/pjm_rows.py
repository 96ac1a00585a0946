"""The rows of Data Miner as prices: one row per zone and hour, with the total and its components."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dffl.checks import first_true
from dffl_studies.energy.fetch.fetched import Fetched, to_days
from dffl_studies.energy.input_table import numbers_in

UTC, EASTERN, ZONE = "datetime_beginning_utc", "datetime_beginning_ept", "pnode_name"
STANDARD = -5
"""Hours from UTC to Eastern standard time."""
SUMS = ("PJM-RTO", "MID-ATL/APS")
"""What PJM lists among its zones, but is a sum of them."""


def price_fields(kind: str) -> dict[str, str]:
    """PJM's names of the total and its components."""
    return {
        "total": f"total_lmp_{kind}",
        "energy": f"system_energy_price_{kind}",
        "congestion": f"congestion_price_{kind}",
        "loss": f"marginal_loss_price_{kind}",
    }


def parse_pjm(items: list[dict[str, Any]], kind: str, where: str) -> Fetched:
    """The prices in the rows of a reply, in Eastern standard time all year, so that every day has 24 hours.

    Rows without UTC times stay on the clock that people use: a day in March then has 23 hours, one in November hour 1 twice.
    """
    columns = price_fields(kind)
    rows = pd.DataFrame(items)
    utc = UTC in rows and bool(rows[UTC].notna().all())
    clock = UTC if utc else EASTERN
    if missing := [field for field in (clock, ZONE, *columns.values()) if field not in rows]:
        raise ValueError(f"{where}: the reply has no {', '.join(missing)}; PJM may have renamed them")
    begin = pd.to_datetime(rows[clock], format="ISO8601", errors="coerce")
    if (at := first_true(begin.isna())) is not None:
        raise ValueError(f"{where}: zone {rows[ZONE].iloc[at]}: {clock} must be a time, found {items[at].get(clock)!r}")
    date, hour = to_days(begin, STANDARD if utc else 0)
    table = pd.DataFrame({"zone": rows[ZONE].astype(str).str.strip(), "date": date, "hour": hour})
    for name, field in columns.items():
        table[name], at = numbers_in(rows[field])
        if at is not None:
            raise ValueError(f"{where}: {_hour(table, at)}: {field} must be a number, found {items[at][field]!r}")
    _check_once(table, utc, where)
    notes = []
    if sums := sorted(set(table["zone"]) & set(SUMS)):
        notes.append(f"PJM: {' and '.join(sums)}: a sum of zones and not a zone; left out")
    if not utc:
        notes.append(
            f"{where}: no UTC times, so that hours are those of the Eastern clock: the day in March when it goes forward has "
            "23 hours, the day in November when it goes back has hour 1 twice"
        )
    return Fetched(table[~table["zone"].isin(SUMS)].dropna(subset="total").reset_index(drop=True), notes)


def _check_once(table: pd.DataFrame, utc: bool, where: str) -> None:
    """Refuse an hour that is there twice, unless the clock showed it twice."""
    again = table.duplicated(["zone", "date", "hour"])
    if not utc:
        day = pd.to_datetime(table["date"])
        back = (day.dt.month == 11) & (day.dt.day <= 7) & (day.dt.day_of_week == 6) & (table["hour"] == 1)
        again &= ~back
    if (at := first_true(again)) is not None:
        raise ValueError(f"{where}: {_hour(table, at)} is there twice; remove its pages and run again")


def _hour(table: pd.DataFrame, at: int) -> str:
    zone, date, hour = (table[name].iloc[at] for name in ("zone", "date", "hour"))
    return f"zone {zone}, {date} {hour:02d}:00"
