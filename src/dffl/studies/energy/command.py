"""What `dffl energy run` does: run the seeds that are missing, then write and show tables, figures and a model for tomorrow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.comparing import refuse_early
from dffl.data.energy import Panel
from dffl.data.energy.clients import WARM_UP
from dffl.data.energy.market import with_places
from dffl.jsonable import jsonable
from dffl.studies.command import Options, finished_rows
from dffl.studies.energy.chance import Chance, chance
from dffl.studies.energy.model import METHOD, Trained, train
from dffl.studies.energy.pictured import calendar_of, zone_facts
from dffl.studies.energy.protocol import METHODS, Protocol, halves
from dffl.studies.energy.study import study
from dffl.studies.energy.summary import as_json
from dffl.studies.energy.tables import all_tables, money_as_json
from dffl.studies.energy.verdict import Verdict, counted
from dffl.studies.render import to_rich, write_tables
from dffl.studies.store import Store
from dffl.studies.study import Job
from dffl.studies.tables import Table

MODEL = "model.dffl"
SHOWN = ("changes", "zones", "money")
"""The tables that the terminal shows; all are written."""


@dataclass(frozen=True)
class Outcome:
    """What there is to show of a panel."""

    folder: Path
    panel: Panel
    protocol: Protocol
    first_test: str
    rows: pd.DataFrame
    tables: list[Table]
    failed: list[tuple[Job, str]]
    chance: Chance | None

    def show(self, console: Console) -> None:
        """Print notes, tables and a verdict for people."""
        say(self.panel.notes, console)
        console.print(self._heading(), highlight=False, markup=False)
        for table in (table for table in self.tables if table.name in SHOWN):
            console.print()
            console.print(to_rich(table))
        console.print()
        verdict = Verdict.of(self.rows)
        doubt = f" {self.chance.in_words()}" if self.chance else ""
        console.print(f"[bold]Read:[/] {verdict.in_words()}{doubt}", highlight=False)
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red", highlight=False, markup=False)
        missing = "" if np.isfinite(with_places(self.panel).places).any() else " No map: the panel has no lat and lon."
        console.print(f"\nTables, figures and rows: {self.folder}.{missing}", highlight=False, markup=False)
        if (self.folder / MODEL).is_file():
            how = f"dffl energy decide {self.folder / MODEL} --zone {self.panel.names[0]!r} --features FILE"
            console.print(f"A model of all the days ({METHOD}), for tomorrow: {how}", highlight=False, markup=False)
            if not verdict.beats(METHOD):
                fix = "decide by the moving average (dffl energy train --lags --method forecast)"
                better = fix if self.protocol.lags else f"try --lags, or {fix}"
                console.print(f"It would have lost more than a moving average: {better}.", style="yellow", highlight=False)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        failed = [{**job.parameters, "why": why} for job, why in self.failed]
        sure = {"against_best_rule": self.chance and self.chance._asdict()}
        about: dict[str, Any] = {
            "seeds": sorted(self.rows["seed"].unique().tolist()),
            "failed": failed,
            "folder": str(self.folder),
        }
        about |= {"notes": list(self.panel.notes), "money": money_as_json(self.rows)}
        return jsonable(as_json(self.rows) | about | sure)

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        demands = "from the panel" if panel.demand_known else "drawn from 4 to 12 hours (the panel has none)"
        past = f", and past prices (the first {WARM_UP} days only feed the average)" if self.protocol.lags else ""
        bill = "" if self.protocol.cost == "total" else "\nThe own part counts twice (--cost): US$ here are no bill."
        return (
            f"{counted(len(panel.names), 'zone')}; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} "
            f"test; {counted(self.rows['seed'].nunique(), 'seed')}.\n"
            f"From {', '.join(panel.covariate_names)}{past}. Demands: {demands}.{bill}"
        )


def run(
    path: Path, protocol: Protocol, options: Options, seeds: list[int], calendar: str | None, model: bool, progress: bool | None
) -> Outcome:
    """Run the study on a panel, or look at it, and write everything into its folder."""
    panel = protocol.open(str(path))
    made = halves(panel, protocol)
    first_test = made.first_test
    refuse_early(made.train, METHODS, **protocol.training(seeds[0]))  # everything that can be refused is refused now
    if calendar is not None:
        panel.zone(calendar)
    whole = study(path, protocol, seeds)
    store = Store(options.out or default_folder(path, protocol))
    rows, failed = finished_rows(whole, whole, store, options, progress)
    tables = all_tables(rows)
    write_tables(tables, store.folder / "tables")
    trained, sure = None, None
    if model and not options.show:
        trained = train(panel, protocol, progress=progress)
        trained.model.save(store.folder / MODEL)
        sure = chance(trained, panel, protocol.cost, first_test, Verdict.of(rows).rule)
    if options.figures:
        _draw(rows, panel, calendar, trained, store.folder)
    return Outcome(store.folder, panel, protocol, first_test, rows, tables, failed, sure)


def default_folder(panel: Path, protocol: Protocol) -> Path:
    """Where a run goes if nothing else is said: named by the panel, and by whether past prices are used."""
    name = panel.resolve().name.split(".")[0]
    return Path(f"dffl-energy-{name}{'-lags' if protocol.lags else ''}")


def say(notes: tuple[str, ...], console: Console) -> None:
    """Print what was noticed about a panel."""
    for note in notes:
        console.print(f"note: {note}", style="yellow", highlight=False, markup=False)


def _draw(rows: pd.DataFrame, panel: Panel, wanted: str | None, trained: Trained | None, folder: Path) -> None:
    from dffl.studies.energy.figures import draw_all  # Matplotlib, only where pictures are wanted

    local = rows[rows["method"] == "local"].groupby("zone")["regret"].mean()
    zone = wanted or str(local.idxmax())
    calendar = None if trained is None else (calendar_of(trained, zone, panel), zone, trained.model.method)
    draw_all(rows, zone_facts(panel), calendar, folder / "figures")
