"""A zone that begins today: what it loses with the others' model, and with rules of its own few days.

The zone is left out of training. It has its last 3, 7, ... days before the first test day, and is judged on the days after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.federation import Client
from dffl.files import write_text
from dffl.fitting import Fit, Member
from dffl.jsonable import jsonable
from dffl.judging import regrets_at
from dffl.time.bases import STEADY, SteadyAverage
from dffl.time.past import Past
from dffl.time.refits import Candidate, Prepared
from dffl_studies.energy.model import day_numbers, table
from dffl_studies.energy.preset import Market, Preset
from dffl_studies.running.render import to_rich, write_tables
from dffl_studies.running.tables import Cell, Table, Value

DAYS = (3, 7, 14, 30, 60)
HORIZON = 56
"""The days on which a newcomer is judged."""
SHARED, TUNED, ALONE = "shared", "tuned", "alone"
TUNES, LEARNS = 2, 28
"""The days with a full past that tuning needs, and that an own model needs."""


@dataclass(frozen=True)
class Newcomers:
    """The regret of each zone as a newcomer, by the days that it has: naive rules, the shared model, tuned, its own model."""

    rows: pd.DataFrame
    money: str

    @property
    def table(self) -> Table:
        """The mean over zones by the number of days."""
        means = self.rows.pivot_table(index="days", columns="rule", values="regret", sort=False)
        cells = [
            Cell((str(days),), str(rule), Value(float(lost)))
            for rule, column in means.items() for days, lost in column.dropna().items()
        ]  # fmt: skip
        note = f"Regret of a day in {self.money}, mean over zones, in the {HORIZON} days after the first ones."
        return Table("newcomers", "What a newcomer loses", ("days of its own",), cells, note)

    def show(self, console: Console) -> None:
        """Print the table, and until when sharing pays."""
        console.print(to_rich(self.table))
        console.print(self.in_words())

    def write(self, folder: Path) -> None:
        """Write the regrets of every zone, the table and its figure."""
        from dffl.drawing import write_figures
        from dffl_studies.energy.figures.newcomers import draw_newcomers  # Matplotlib is slow to import

        write_tables([self.table], folder, self.in_words())
        write_text(folder / "regrets.csv", self.rows.round(4).to_csv(index=False, lineterminator="\n"))
        write_figures([("newcomers", draw_newcomers(self.rows, self.money, HORIZON))], folder, ("png",), 200)

    def in_words(self) -> str:
        """Until when the others' model is better than what a newcomer can do by itself."""
        means = self.rows.pivot_table(index="days", columns="rule", values="regret")
        alone = means.drop(columns=[name for name in (SHARED, TUNED) if name in means]).min(axis=1)
        ends = means.index[means[[name for name in (SHARED, TUNED) if name in means]].min(axis=1) >= alone]
        if not len(ends):
            return f"The others' model is better up to {means.index[-1]} days, the most that were tried."
        return f"From {ends[0]} days of its own on a newcomer does as well by itself." if ends[0] > means.index[0] else (
            "The others' model is not better than a rule of the newcomer's own first days."
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """For programs: the regret of each zone by rule and days."""
        by_zone = {str(zone): part.drop(columns="zone").to_dict("records") for zone, part in self.rows.groupby("zone")}
        return dict(jsonable({"zones": by_zone, "verdict": self.in_words()}))


def newcomers(market: Market, preset: Preset, zones: Sequence[str], seed: int = 0, days: Sequence[int] = DAYS) -> Newcomers:
    """Leave each of these zones out in turn, and judge it with this many days of its own."""
    if len(market.federation) < 2:
        raise ValueError(f"{market.panel.source}: a newcomer needs other zones to learn from, found one zone")
    rows = []
    for zone in zones:
        market.panel.rows(zone)  # refuses an unknown zone
        rows += _judged(market, preset, zone, seed, days)
    return Newcomers(pd.DataFrame(rows, columns=["zone", "days", "rule", "regret"]), market.panel.money)


def _judged(market: Market, preset: Preset, zone: str, seed: int, days: Sequence[int]) -> list[tuple[str, int, str, float]]:
    first = np.datetime64(market.first_test, "D").astype(float)
    others = [client for client in market.federation if client.name != zone]
    known = [int((day_numbers(client) < first).sum()) for client in others]
    weight = SteadyAverage(others, [day_numbers(client) for client in others]).weight(known)
    settings, shared = preset.settings | {"seed": seed}, Candidate.of("fedavg")
    fit = _prepared(others, weight).trained(shared, known, settings)
    newcomer, rows_judged = market.federation[zone], []
    start = int((day_numbers(newcomer) < first).sum())
    for count in (count for count in days if count <= start):
        few = newcomer.rows(slice(start - count, start + HORIZON))
        prepared, later = _prepared([few], weight), slice(count, few.n)
        expected = {rule: table(rule, few, weight)[later] for rule in (STEADY, "mean-7")}
        expected[SHARED] = prepared.predictions(_with(fit, few), [later])[0]
        enough = count - Past().longest
        if enough >= TUNES:
            [client] = prepared.federation([count])
            expected[TUNED] = prepared.predictions(fit.joined_by(client, progress=False), [later])[0]
        if enough >= LEARNS:
            expected[ALONE] = prepared.predictions(prepared.trained(Candidate.of("local"), [count], settings), [later])[0]
        rows_judged += [
            (zone, count, rule, float(regrets_at(few.rows(later), costs).mean())) for rule, costs in expected.items()
        ]
    return rows_judged


def _prepared(clients: Sequence[Client], weight: float) -> Prepared:
    days = [day_numbers(client) for client in clients]
    return Prepared(clients, days, [table(STEADY, client, weight) for client in clients], Past(season=False))


def _with(fit: Fit, client: Client) -> Fit:
    """The fit with a newcomer who uses the shared model as it is."""
    assert fit.shared is not None, "fedavg has a shared model"
    return replace(fit, members={client.name: Member(client.name, client.n, client.set, client.maximize, fit.shared)})
