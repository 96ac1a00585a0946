"""What `dffl energy run` does: run the seeds that are missing, then write and show tables, figures and a model for tomorrow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.data.energy import Panel
from dffl.data.energy.market import with_places
from dffl.jsonable import jsonable
from dffl.studies.command import Options, finished_rows
from dffl.studies.energy.model import Trained, train
from dffl.studies.energy.naive import RULES
from dffl.studies.energy.protocol import METHODS, Protocol, halves
from dffl.studies.energy.study import study
from dffl.studies.energy.summary import as_json, by_seed
from dffl.studies.energy.tables import NAMES, all_tables
from dffl.studies.render import to_rich, write_tables
from dffl.studies.store import Store
from dffl.studies.study import Job
from dffl.studies.tables import Table

MODEL = "model.dffl"
SHOWN = ("changes", "zones", "money")
"""The tables that the terminal shows; all are written."""
PERCENTILE = 95


@dataclass(frozen=True)
class Outcome:
    """What there is to show of a panel."""

    folder: Path
    panel: Panel
    first_test: str
    rows: pd.DataFrame
    tables: list[Table]
    figures: list[Path]
    failed: list[tuple[Job, str]]
    seconds: float

    def show(self, console: Console) -> None:
        """Print notes, tables and a reading for people."""
        say(self.panel.notes, console)
        console.print(self._heading(), highlight=False, markup=False)
        for table in (table for table in self.tables if table.name in SHOWN):
            console.print()
            console.print(to_rich(table))
        console.print()
        console.print(f"[bold]Read:[/] {self._reading()}", highlight=False)
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red", highlight=False, markup=False)
        console.print(f"\nTables, figures and rows: {self.folder}", highlight=False, markup=False)
        if (self.folder / MODEL).is_file():
            how = f"dffl energy decide {self.folder / MODEL} --zone {self.panel.names[0]!r} --features FILE"
            console.print(f"Model of all the days, for tomorrow: {how}", highlight=False, markup=False)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return jsonable(as_json(self.rows) | {"folder": str(self.folder), "notes": list(self.panel.notes)})

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        demands = "from the panel" if panel.demand_known else "drawn from 4 to 12 hours (the panel has none)"
        return (
            f"{len(panel.names)} zones; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} test; "
            f"{self.rows['seed'].nunique()} seeds.\nCovariates: {', '.join(panel.covariate_names)}. Demands: {demands}."
        )

    def _reading(self) -> str:
        means = by_seed(self.rows).groupby("method", sort=False)[["regret", "worst_harm", "harmed"]].mean()
        regret, zones = means["regret"], len(self.panel.names)
        best = str(regret[list(METHODS)].idxmin())
        rule = str(regret[[name for name in RULES if name != "perfect-foresight"]].idxmin())
        against = 100 * (regret[best] / regret[rule] - 1)

        def harm(method: str) -> str:
            return f"{means['harmed'][method]:.1f} of {zones} zones (the worst: {means['worst_harm'][method]:+.0f} %)"

        return (
            f"of the trained models, {NAMES[best].lower()} loses least: {regret[best]:.2f} US$ a day for each MW, "
            f"{100 * (regret[best] / regret['local'] - 1):+.1f} % against local. The best naive rule, {NAMES[rule].lower()}, "
            f"loses {regret[rule]:.2f}: the model is {abs(against):.1f} % {'better' if against < 0 else 'worse'}. "
            f"{NAMES['fedavg']} harms {harm('fedavg')}, {NAMES[best].lower()} {harm(best)}."
        )


def run(
    path: Path, protocol: Protocol, options: Options, seeds: list[int], calendar: str | None, model: bool, progress: bool | None
) -> Outcome:
    """Run the study on a panel, or look at it, and write everything into its folder."""
    panel = protocol.open(str(path))
    first_test = halves(panel, protocol).first_test  # everything that can be refused is refused now
    if calendar is not None:
        panel.zone(calendar)
    whole = study(path, protocol, seeds)
    store = Store(options.out or Path("dffl-energy"))
    rows, failed = finished_rows(whole, whole, store, options, progress)
    tables = all_tables(rows)
    write_tables(tables, store.folder / "tables")
    trained = None
    if model and not options.show:
        trained = train(panel, protocol, progress=progress)
        trained.model.save(store.folder / MODEL)
    drawn = _draw(rows, panel, calendar, trained, store.folder) if options.figures else []
    jobs = store.jobs()
    return Outcome(store.folder, panel, first_test, rows, tables, drawn, failed, float(jobs["cpu_seconds"].sum()))


def say(notes: tuple[str, ...], console: Console) -> None:
    """Print what was noticed about a panel."""
    for note in notes:
        console.print(f"note: {note}", style="yellow", highlight=False, markup=False)


def _draw(rows: pd.DataFrame, panel: Panel, wanted: str | None, trained: Trained | None, folder: Path) -> list[Path]:
    from dffl.studies.energy.figures import draw_all  # Matplotlib, only where pictures are wanted

    local = rows[rows["method"] == "local"].groupby("zone")["regret"].mean()
    zone = wanted or str(local.idxmax())
    calendar = None if trained is None else (_calendar(trained, zone, panel), zone, trained.model.method)
    return draw_all(rows, zone_facts(panel), calendar, folder / "figures")


def zone_facts(panel: Panel) -> pd.DataFrame:
    """A row a zone: its demand, its place and how far its own price part reaches."""
    own, ends = panel.own, zip(panel.starts[:-1], panel.starts[1:], strict=True)
    reach = [float(np.percentile(own[start:end], PERCENTILE)) for start, end in ends]
    lat, lon = with_places(panel).places.T
    return pd.DataFrame({"zone": panel.names, "demand": panel.demands, "own_p95": reach, "lat": lat, "lon": lon})


def _calendar(trained: Trained, zone: str, panel: Panel) -> pd.DataFrame:
    """A row a test day and hour of one zone: its price, whether the model of the first half chose it, and should have."""
    client = trained.test[zone]
    dates = panel.zone(zone).dates[-client.n :]
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
