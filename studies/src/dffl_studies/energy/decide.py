"""Decisions for tomorrow: what a zone buys in which period, and what that is expected to cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dffl.federation import Client
from dffl.fitting import Fit
from dffl.named import listed
from dffl.time.ahead import Clock, TimedRows
from dffl.time.chosen import Chosen
from dffl.time.timeline import DAY as SECONDS
from dffl_studies.energy.data.columns import DATE, ZONE, forecast_columns, price_columns
from dffl_studies.energy.input_table import InputTable, read_table
from dffl_studies.energy.model import KIND

STALE = 7
"""Days that may be missing between two days of --past."""
DAY = np.timedelta64(1, "D")


class Decision(NamedTuple):
    """What one zone does on one day."""

    zone: str
    date: str
    demand: float | None
    """The periods that it buys; None where it decides something else."""
    demand_from: str
    hours: list[float]
    """What is bought in each period: 0 or 1 of top-k, except for one period if the demand is fractional."""
    expected_cost: float | None
    low: float | None
    high: float | None
    currency: str
    unit: str
    prices_until: str
    """The last day whose prices are known."""
    rule: str
    notes: list[str]
    """Reasons to doubt the decision."""

    @property
    def buy(self) -> list[int]:
        """The periods in which something is bought; period 0 begins at midnight."""
        return [period for period, part in enumerate(self.hours) if part > 0]

    def as_json(self) -> dict[str, Any]:
        """For programs; ``buy`` lists the periods in which something is bought."""
        return self._asdict() | {"buy": self.buy}

    def in_words(self) -> str:
        """For people."""
        day = np.datetime64(self.date, "D").item()
        what = "hours" if len(self.hours) == 24 else f"of {len(self.hours)} periods"
        amount = "" if self.demand is None else f" {self.demand:g} {what}"
        source = "" if self.demand is None else f"\n  demand: {self.demand_from}"
        first = f"{self.zone}, {day:%a} {self.date}: buy{amount}: {', '.join(_spans(self.hours)) or 'nothing'}{source}"
        doubts = "".join(f"\n  note: {note}" for note in self.notes)
        known = f"prices known up to {self.prices_until}; by {self.rule}"
        if self.expected_cost is None:
            return f"{first}\n  {known}{doubts}"
        each = f" for 1 {self.unit} in each period bought" if self.demand is not None else ""
        likely = "" if self.low is None else f"four days in five: {self.low:,.2f} to {self.high:,.2f}; "
        return f"{first}\n  expected cost {self.expected_cost:,.2f} {self.currency}{each} ({likely}{known}){doubts}"


def decide(model: Fit | Chosen, zone: str | None, features: Path, past: Path | None = None) -> list[Decision]:
    """A decision for each row of a file of features, which has the covariates of a day and its date.

    Without a ``zone``, every zone that the file names decides. A model that was trained on covariates of some days before
    (``weather_lag``) decides for this many days after each row's. ``past`` is a file of the days since the model was trained:
    zone, date, the prices, and the covariates where the model has some.
    """
    about = _about(model)
    assert isinstance(model, Chosen), "it was checked"
    if zone is not None and zone not in about["zones"]:
        raise ValueError(f"--zone must be one of {', '.join(about['zones'])}, found {zone!r}")
    rows, newer = _rows(features, zone), None if past is None else _rows(past, zone)
    decided = []
    for name in [zone] if zone is not None else dict.fromkeys(rows.keys):
        if name not in about["zones"]:
            raise ValueError(f"{features}: zone must be one of {', '.join(about['zones'])}, found {name!r}")
        decided += _decide_zone(model, about, name, _of_zone(rows, name), None if newer is None else _of_zone(newer, name))
    return decided


def _about(model: Fit | Chosen) -> dict[str, Any]:
    about = model.about.get(KIND)
    if about is None:
        raise ValueError("MODEL must be made by dffl energy run or dffl energy train, which store how days become features")
    if isinstance(model, Fit):
        raise ValueError("MODEL was made by dffl energy of version 0.2.0, which decided by other features; train it again")
    return dict(about)


def _decide_zone(model: Chosen, about: dict[str, Any], zone: str, rows: InputTable, past: InputTable | None) -> list[Decision]:
    client, lag, known = model.kept[zone], about["weather_lag"], about["zones"][zone]
    newer = TimedRows.of(client).take(slice(0, 0)) if past is None else _continued(client, about, past)
    newest = newer.times[-1] if len(newer) else TimedRows.of(client).times[-1]
    until = np.datetime64(int(newest), "s").astype("datetime64[D]")
    reach = max(1, round(Clock.of(TimedRows.of(client).times, True).usual / SECONDS))
    x, decided = _features(rows, about, client.forecast is not None), []
    for row, date in enumerate(rows.dates + lag * DAY):
        ahead = int((date - until) / DAY)
        if ahead < 1:
            raise ValueError(f"{rows.at(row)}: prices are known up to {until}; decide for a day after it")
        if ahead > reach:
            fix = "pass the prices since then with --past FILE"
            raise ValueError(f"{rows.at(row)}: prices are known up to {until} only, {ahead} days before; {fix}")
        day = TimedRows(_times(np.array([date])), x[row : row + 1], np.full((1, about["periods"]), np.nan))
        rows_ahead = model.ahead(zone, TimedRows.joined([newer, day]))
        known_range = bool(np.isfinite(rows_ahead.ranges[0]).all())
        low, cost, high = (float(end) if known_range else None for end in rows_ahead.ranges[0])
        notes = _unseen(x[row], about["covariates"], *known["seen"])
        decided.append(
            Decision(
                zone, str(date), known["demand"], about["demand_from"], rows_ahead.decisions[0][: about["periods"]].tolist(),
                cost, low, high, about["currency"], about["unit"], str(until), about["rule"], notes,
            )
        )  # fmt: skip
    return decided


def _continued(client: Client, about: dict[str, Any], past: InputTable) -> TimedRows:
    """The days of a file that follow those that the model holds."""
    if about["cost"] != "total":
        raise ValueError("--past works with models of the total price only; train again with the days up to today")
    columns = price_columns(past)
    if len(columns) != about["periods"]:
        raise ValueError(f"{past.path}: must have {about['periods']} prices a day, as in training, found {len(columns)}")
    known = TimedRows.of(client)
    there = about["weather_lag"] == 0 and all(name in past.table for name in about["covariates"])
    x = _features(past, about, client.forecast is not None) if there else np.repeat(known.x[-1:], len(past), axis=0)
    rows = TimedRows(_times(past.dates), x, np.stack([past.complete(name) for name in columns], axis=1))
    last = known.times[-1]
    for row in np.argsort(past.dates, kind="stable").tolist():
        gap = round((rows.times[row] - last) / SECONDS)
        if gap > STALE:
            until = np.datetime64(int(last), "s").astype("datetime64[D]")
            raise ValueError(f"{past.at(row)}: the day before it that is known is {until}; give the {gap - 1} days between too")
        last = max(last, rows.times[row])
    later = np.flatnonzero(rows.times > known.times[-1])
    return rows.take(later[np.argsort(rows.times[later], kind="stable")])


def _times(dates: np.ndarray) -> np.ndarray:
    """Days as seconds since 1970."""
    return np.asarray(dates.astype("datetime64[s]").astype(np.float64))


def _features(rows: InputTable, about: dict[str, Any], brings: bool) -> np.ndarray:
    """What is known of each row's day: the covariates, and a published forecast where the model starts from one."""
    x, periods = _covariates(rows, about), about["periods"]
    if not brings:
        return x
    columns = forecast_columns(rows, periods)
    if not columns:
        raise ValueError(
            f"{rows.path}: must have the columns forecast_0 to forecast_{periods - 1}, as the model has a forecast"
        )
    return np.column_stack([x, *(rows.complete(name) for name in columns)])


def _covariates(rows: InputTable, about: dict[str, Any]) -> np.ndarray:
    """The covariates of each row; a model of prices alone has one that is always 0."""
    names = about["covariates"]
    return np.stack([rows.complete(name) for name in names], axis=1) if names else np.zeros((len(rows), 1))


def _unseen(values: np.ndarray, names: list[str], low: list[float], high: list[float]) -> list[str]:
    """Notes on covariates that are outside the range of the training days by more than half of that range."""
    notes = []
    for name, value, least, most in zip(names, values, low, high, strict=False):  # prices alone have no names
        if not least - (most - least) / 2 <= value <= most + (most - least) / 2:
            notes.append(f"{name} is {value:g}, and was {least:g} to {most:g} on the days of training: do not rely on this")
    return notes


def _rows(path: Path, zone: str | None) -> InputTable:
    """The rows of a file; one without a column of zones is of the given zone throughout."""
    table = read_table(path, ZONE, DATE)
    if not any(name in table.frame for name in ZONE):
        if zone is None:
            raise ValueError(f"{path}: has no column zone; name the zone with --zone")
        table = replace(table, frame=table.frame.assign(zone=zone))
    return InputTable(table, ZONE, DATE)


def _of_zone(rows: InputTable, zone: str) -> InputTable:
    """The rows of one zone, each of another day."""
    mask = rows.keys == zone
    if not mask.any():
        raise ValueError(f"{rows.path}: must have a row for zone {zone!r}, found {listed(sorted(set(rows.keys)), 8)}")
    zone_rows = rows.kept(mask)
    zone_rows.refuse_repeats()
    return zone_rows


def _spans(parts: list[float]) -> list[str]:
    """Periods in a row as clock times: 00:00-03:00, 13:00-14:00; where not 1 is bought, the amount is named."""
    minutes = 24 * 60 / len(parts)
    spans: list[tuple[int, int, float]] = []
    for period, part in enumerate(parts):
        if abs(part) < 1e-9:
            continue
        if spans and spans[-1][1:] == (period, part):
            spans[-1] = (spans[-1][0], period + 1, part)
        else:
            spans.append((period, period + 1, part))

    def clock(period: int) -> str:
        return f"{int(period * minutes) // 60:02d}:{int(period * minutes) % 60:02d}"

    return [f"{clock(a)}-{clock(b)}" + ("" if part == 1 else f" ({part:g} each)") for a, b, part in spans]
