"""Tomorrow: which hours a zone buys, and what they are expected to cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dffl.data.energy import Recipe
from dffl.data.energy.clients import with_past
from dffl.data.energy.columns import CALENDAR, price_columns
from dffl.data.energy.lagged import Memory
from dffl.data.energy.reading import weekday
from dffl.data.energy.rows import ZONE, Rows, read_table
from dffl.fitting import Fit
from dffl.studies.energy.model import KIND, CostLine

STALE = 7
"""Days after the last known prices beyond which a moving average of them is not used any more."""


class Decision(NamedTuple):
    """What one zone buys on one day."""

    zone: str
    date: str
    demand: float
    hours: list[float]
    """The part of each hour that is bought, 0 or 1 but for a fractional demand."""
    expected_cost: float
    low: float
    high: float
    prices_until: str | None
    """The last day whose prices were used; None: no prices were."""

    def as_json(self) -> dict[str, Any]:
        """For programs; ``buy`` lists the hours that are bought."""
        return self._asdict() | {"buy": self.buy}

    def in_words(self) -> str:
        """For people."""
        spans = ", ".join(_spans(self.buy)) or "nothing"
        part = "" if all(one in (0, 1) for one in self.hours) else f" (of the dearest only {min(filter(None, self.hours)):g})"
        day = np.datetime64(self.date, "D").item()
        prices = f"; prices known up to {self.prices_until}" if self.prices_until else ""
        likely = f"four days in five: {self.low:,.2f} to {self.high:,.2f}"
        return (
            f"{self.zone}, {day:%a} {self.date}: buy {self.demand:g} hours: {spans}{part}\n"
            f"  expected cost {self.expected_cost:,.2f} US$ for each MW ({likely}){prices}"
        )

    @property
    def buy(self) -> list[int]:
        """The hours that are bought, whole or in part; hour 0 begins at midnight."""
        return [hour for hour, part in enumerate(self.hours) if part > 0]


def decide(model: Fit, zone: str, features: Path, past: Path | None = None) -> list[Decision]:
    """A decision for each row of a file of features, which has the covariates of a day and its date.

    ``past`` is a file of prices (zone, date, price_0 to price_23) of the days since the model was trained.
    """
    about = model.about.get(KIND)
    if about is None:
        raise ValueError("MODEL must be made by dffl energy run or dffl energy train, which tell it how days become features")
    if zone not in about["zones"]:
        raise ValueError(f"--zone must be one of {', '.join(about['zones'])}, found {zone!r}")
    recipe, known = Recipe(**about["recipe"]), about["zones"][zone]
    rows = _of_zone(features, zone)
    covariates = np.stack([_covariate(rows, name) for name in about["covariates"]], axis=1)
    x, last = covariates, None
    if recipe.weight is not None:
        memory, until = _memory(recipe, known, zone, past)
        _refuse_dates(rows, until)
        x, last = with_past(covariates, rows.dates, np.stack([memory.forecast(date) for date in rows.dates])), str(until)
    elif past is not None:
        raise ValueError("--past is of no use: this model takes no past prices (train one with --lags)")
    hours, costs = model.decide(zone, x), model.predict(zone, x)
    line = CostLine(**known["cost_line"])
    return [
        Decision(zone, str(date), known["demand"], bought.tolist(), *line.expected(float(bought @ cost)), last)
        for date, bought, cost in zip(rows.dates, hours, costs, strict=True)
    ]


def _of_zone(path: Path, zone: str) -> Rows:
    """The rows of a file that are of this zone; a file without a column of zones is of this one throughout."""
    table, lines = read_table(path)
    if not any(name in table for name in ZONE):
        table = table.assign(zone=zone)
    rows = Rows(path, table, lines)
    kept = rows.zones == zone
    if not kept.any():
        raise ValueError(f"{path}: must have a row for zone {zone!r}, found {', '.join(sorted(set(rows.zones))[:8])}")
    return rows.kept(kept)


def _covariate(rows: Rows, name: str) -> np.ndarray:
    if name in CALENDAR and name not in rows.table:
        return weekday(rows.dates).astype(float)
    rows.require([name])
    return rows.complete(name)


def _memory(recipe: Recipe, known: dict[str, Any], zone: str, past: Path | None) -> tuple[Memory, np.datetime64]:
    """What the moving average remembers, and the last day that it knows."""
    if past is not None and recipe.cost != "total":
        raise ValueError("--past works with models of the total price only; train again with the days up to today")
    memory, until = Memory(**known["memory"]), np.datetime64(known["last_day"], "D")
    if past is None:
        return memory, until
    rows = _of_zone(past, zone)
    prices = np.stack([rows.complete(name) for name in price_columns(rows)], axis=1)
    order = np.argsort(rows.dates, kind="stable")
    again = np.flatnonzero(rows.dates[order][1:] == rows.dates[order][:-1])
    if len(again):
        raise ValueError(f"{rows.at(order[again[0] + 1])}: a second row for this zone and day; keep one")
    for row in order[rows.dates[order] > until]:
        memory.add(prices[row], rows.dates[row])
    return memory, max(until, rows.dates.max())


def _refuse_dates(rows: Rows, until: np.datetime64) -> None:
    """Refuse days whose prices are known already, and days too far ahead of the last known prices."""
    for row, date in enumerate(rows.dates):
        ahead = int((date - until).astype(int))
        if ahead < 1:
            raise ValueError(f"{rows.at(row)}: prices are known up to {until}; decide for a day after it")
        if ahead > STALE:
            fix = "pass the prices since then with --past FILE"
            raise ValueError(f"{rows.at(row)}: prices are known up to {until} only, {ahead} days before; {fix}")


def _spans(hours: list[int]) -> list[str]:
    """Hours in a row as clock times: [0, 1, 2, 13] is 00:00-03:00, 13:00-14:00."""
    spans: list[list[int]] = []
    for hour in hours:
        if spans and spans[-1][1] == hour:
            spans[-1][1] = hour + 1
        else:
            spans.append([hour, hour + 1])
    return [f"{start:02d}:00-{end:02d}:00" for start, end in spans]
