"""Decisions for tomorrow: which hours a zone buys, and what they are expected to cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dffl.fitting import Fit
from dffl.named import listed
from dffl_studies.energy.data import Sampling
from dffl_studies.energy.data.clients import with_past
from dffl_studies.energy.data.columns import DATE, ZONE, price_columns
from dffl_studies.energy.data.lagged import Memory, weekday
from dffl_studies.energy.input_table import InputTable, read_table
from dffl_studies.energy.model import KIND, CostRange

STALE = 7
"""Days after the last known prices beyond which a moving average of them is not used any more."""


class Decision(NamedTuple):
    """What one zone buys on one day."""

    zone: str
    date: str
    demand: float
    hours: list[float]
    """The part of each hour that is bought: 0 or 1, except for one hour if the demand is fractional."""
    expected_cost: float | None
    """None if the last known prices are too old to estimate it."""
    low: float | None
    high: float | None
    prices_until: str
    """The last day whose prices are known."""
    notes: list[str]
    """Reasons to doubt the decision."""

    def as_json(self) -> dict[str, Any]:
        """For programs; ``buy`` lists the hours that are bought."""
        return self._asdict() | {"buy": self.buy}

    def in_words(self) -> str:
        """For people."""
        day = np.datetime64(self.date, "D").item()
        spans = ", ".join(_spans(self.hours)) or "none"
        first = f"{self.zone}, {day:%a} {self.date}: buy {self.demand:g} hours: {spans}"
        doubts = "".join(f"\n  note: {note}" for note in self.notes)
        if self.expected_cost is None:
            until = f"prices are known up to {self.prices_until}, and costs are estimated for {STALE} days after them"
            return f"{first}\n  expected cost unknown: {until}; see --past{doubts}"
        likely = f"four days in five: {self.low:,.2f} to {self.high:,.2f}; prices known up to {self.prices_until}"
        return f"{first}\n  expected cost {self.expected_cost:,.2f} US$ for each MW ({likely}){doubts}"

    @property
    def buy(self) -> list[int]:
        """The hours that are bought, whole or in part; hour 0 begins at midnight."""
        return [hour for hour, part in enumerate(self.hours) if part > 0]


def decide(model: Fit, zone: str | None, features: Path, past: Path | None = None) -> list[Decision]:
    """A decision for each row of a file of features, which has the covariates of a day and its date.

    Without a ``zone``, every zone that the file names decides. A model that was trained on covariates of some days before
    (``weather_lag``) decides for so many days after each row's. ``past`` is a file of prices (zone, date, price_0 to
    price_23) of the days since the model was trained.
    """
    about = model.about.get(KIND)
    if about is None:
        raise ValueError("MODEL must be made by dffl energy run or dffl energy train, which store how days become features")
    if zone is not None and zone not in about["zones"]:
        raise ValueError(f"--zone must be one of {', '.join(about['zones'])}, found {zone!r}")
    rows, prices = _rows(features, zone), None if past is None else _rows(past, zone)
    made = []
    for name in [zone] if zone is not None else dict.fromkeys(rows.keys):
        if name not in about["zones"]:
            raise ValueError(f"{features}: zone must be one of {', '.join(about['zones'])}, found {name!r}")
        made += _decide_zone(model, about, name, _of_zone(rows, name), None if prices is None else _of_zone(prices, name))
    return made


def _decide_zone(model: Fit, about: dict[str, Any], zone: str, rows: InputTable, past: InputTable | None) -> list[Decision]:
    sampling, known = Sampling(**about["recipe"]), about["zones"][zone]
    memory, until = _memory(sampling, known, past)
    dates = rows.dates + sampling.weather_lag
    forecasts = np.stack([memory.forecast(date) for date in dates])
    derived = {name: weekday(dates).astype(float) for name in about["weekdays"]}
    x = np.stack([derived[name] if name in derived else rows.complete(name) for name in about["covariates"]], axis=1)
    if sampling.weight is not None:
        _refuse_dates(rows, dates, until)
        x = with_past(x, dates, forecasts)
    ranges, made = CostRange(**known["cost_range"]), []
    doubts = [_unseen(values, about["covariates"], *known["seen"]) for values in x]
    for date, bought, forecast, notes in zip(dates, model.decide(zone, x), forecasts, doubts, strict=True):
        fresh = 0 < int((date - until).astype(int)) <= STALE
        cost, low, high = ranges.around(float(bought @ forecast)) if fresh else (None, None, None)
        made.append(Decision(zone, str(date), known["demand"], bought.tolist(), cost, low, high, str(until), notes))
    return made


def _unseen(values: np.ndarray, names: list[str], low: list[float], high: list[float]) -> list[str]:
    """Notes on covariates that are outside the range of the training days by more than half of that range."""
    notes = []
    for name, value, least, most in zip(names, values, low, high, strict=False):  # past prices follow the covariates
        if not least - (most - least) / 2 <= value <= most + (most - least) / 2:
            notes.append(f"{name} is {value:g}, and was {least:g} to {most:g} on the days of training: do not rely on this")
    return notes


def _rows(path: Path, zone: str | None) -> InputTable:
    """The rows of a file; one without a column of zones is of the given zone throughout."""
    table, lines = read_table(path, ZONE, DATE)
    if not any(name in table for name in ZONE):
        if zone is None:
            raise ValueError(f"{path}: has no column zone; name the zone with --zone")
        table = table.assign(zone=zone)
    return InputTable(path, table, lines, ZONE, DATE)


def _of_zone(rows: InputTable, zone: str) -> InputTable:
    """The rows of one zone, each of another day."""
    kept = rows.keys == zone
    if not kept.any():
        raise ValueError(f"{rows.path}: must have a row for zone {zone!r}, found {listed(sorted(set(rows.keys)), 8)}")
    own = rows.kept(kept)
    own.refuse_repeats()
    return own


def _memory(sampling: Sampling, known: dict[str, Any], rows: InputTable | None) -> tuple[Memory, np.datetime64]:
    """The memory of the moving average with the days in these rows added, and the last day that it knows."""
    memory, until = Memory(**known["memory"]), np.datetime64(known["last_day"], "D")
    if rows is None:
        return memory, until
    if sampling.cost != "total":
        raise ValueError("--past works with models of the total price only; train again with the days up to today")
    prices = np.stack([rows.complete(name) for name in price_columns(rows)], axis=1)
    for row in np.argsort(rows.dates, kind="stable"):
        gap = int((rows.dates[row] - until).astype(int))
        if gap > STALE:
            raise ValueError(f"{rows.at(row)}: the day before it that is known is {until}; give the {gap - 1} days between too")
        if gap > 0:
            memory.add(prices[row], rows.dates[row])
            until = rows.dates[row]
    return memory, until


def _refuse_dates(rows: InputTable, dates: np.ndarray, until: np.datetime64) -> None:
    """Refuse days whose prices are known already, and days too far ahead of the last known prices."""
    for row, date in enumerate(dates):
        ahead = int((date - until).astype(int))
        if ahead < 1:
            raise ValueError(f"{rows.at(row)}: prices are known up to {until}; decide for a day after it")
        if ahead > STALE:
            fix = "pass the prices since then with --past FILE"
            raise ValueError(f"{rows.at(row)}: prices are known up to {until} only, {ahead} days before; {fix}")


def _spans(hours: list[float]) -> list[str]:
    """Hours in a row as clock times: 00:00-03:00, 13:00-14:00; an hour that is bought in part is listed on its own."""
    spans: list[tuple[int, int, float]] = []
    for hour, part in enumerate(hours):
        if part > 0 and spans and spans[-1][1:] == (hour, part) and part == 1:
            spans[-1] = (spans[-1][0], hour + 1, part)
        elif part > 0:
            spans.append((hour, hour + 1, part))
    return [f"{a:02d}:00-{b:02d}:00" + (f" ({part:g} of it)" if part < 1 else "") for a, b, part in spans]
