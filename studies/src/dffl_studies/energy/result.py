"""The result of `dffl energy run`, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from dffl.jsonable import jsonable
from dffl.terminal import command_name, printable
from dffl_studies.energy.compared import NOTHING, Comparison
from dffl_studies.energy.data import Panel
from dffl_studies.energy.data.clients import WARM_UP
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.model import METHOD
from dffl_studies.energy.setup import Setup
from dffl_studies.energy.summary import as_json
from dffl_studies.energy.tables import money_as_json
from dffl_studies.energy.verdict import Verdict, counted
from dffl_studies.running.render import to_rich
from dffl_studies.running.result import StudyRows
from dffl_studies.running.tables import Table

MODEL = "model.dffl"
SHOWN = ("summary", "zones", "money")
"""The tables that the terminal shows; all are written."""
PAPERS_SHOWN = ("table-4", "table-5", "summary", "money")
"""The same where the paper's tables are wanted."""


@dataclass(frozen=True)
class EnergyResult(StudyRows):
    """The result of a run on a panel: one row per seed, zone and method or rule."""

    panel: Panel
    setup: Setup
    first_test: str
    tables: list[Table]
    report: Path | None = None
    comparison: Comparison = NOTHING

    def show(self, console: Console) -> None:
        """Print notes, tables and a verdict for people."""
        print_notes(self.panel.notes, console)
        console.print(self._heading())
        shown = PAPERS_SHOWN if self.comparison.wanted else SHOWN
        for table in (table for table in self.tables if table.name in shown):
            console.print()
            console.print(to_rich(table))
        console.print()
        for line in self.comparison.lines():
            console.print(f"Paper: {line}")
        verdict = Verdict.of(self.rows)
        console.print(Text.assemble(("Read: ", "bold"), verdict.in_words()))
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red")
        if self.remark:
            console.print(self.remark, style="yellow")
        missing = "" if np.isfinite(with_places(self.panel).places).any() else " No map: the panel has no lat and lon."
        page = "" if self.report is None else f" Page: {self.report}."
        console.print(f"\nTables, figures and rows: {self.folder}.{missing}{page}")
        if (self.folder / MODEL).is_file():
            how = f"{command_name()} energy decide {self.folder / MODEL} --zone {self.panel.names[0]!r} --features FILE"
            console.print(f"A model of all the days ({METHOD}), for tomorrow: {how}")
        if verdict.beaten:
            fix = "decide by the steady moving average (dffl energy train --lags --method forecast)"
            better = fix if self.setup.lags else f"try --lags, or {fix}"
            console.print(f"A model would have lost more than a naive rule of past prices: {better}.", style="yellow")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        verdict = Verdict.of(self.rows)
        about = {
            "seeds": sorted(self.rows["seed"].unique().tolist()),
            "failed": self.failures(),
            "folder": str(self.folder),
            "versions": self.versions,
            "notes": list(self.panel.notes),
            "money": money_as_json(self.rows),
            "rules": verdict.rules._asdict(),
            "model": METHOD,
            "paper": self.comparison.as_json(),
            "total_change": {against: found and found._asdict() for against, found in verdict.changes.items()},
        }
        return jsonable(as_json(self.rows) | about)

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        demands = "from the panel" if panel.demand_known else "random, from 4 to 12 hours (the panel has none)"
        past = f", and past prices (the first {WARM_UP} days are used for the average only)" if self.setup.lags else ""
        published = f"\nAs published: {_in_words(self.setup.settings)}, random days held out." if self.setup.published else ""
        note = "\nThe own part counts twice (--cost): amounts in US$ are not what a zone pays."
        return (
            f"{counted(len(panel.names), 'zone')}; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} "
            f"test; {counted(self.rows['seed'].nunique(), 'seed')}.\n"
            f"From {', '.join(panel.covariate_names)}{past}. Demands: {demands}.{published}"
            f"{note if self.setup.cost != 'total' else ''}"
        )


def _in_words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def print_notes(notes: tuple[str, ...], console: Console) -> None:
    """Print the notes on a panel."""
    for note in notes:
        console.print(f"note: {printable(note)}", style="yellow")  # names in a note may come from a server
