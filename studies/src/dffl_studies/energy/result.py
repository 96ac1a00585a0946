"""The result of `dffl energy run --as-published`, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from dffl.jsonable import jsonable
from dffl.terminal import printable
from dffl_studies.energy.compared import NOTHING, Comparison
from dffl_studies.energy.data import Panel
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.setup import Setup
from dffl_studies.energy.summary import as_json
from dffl_studies.running.render import to_rich
from dffl_studies.running.result import StudyRows
from dffl_studies.running.tables import Table

SHOWN = ("table-4", "table-5", "changes-local-tuned")
"""The tables that the terminal shows; all are written."""


@dataclass(frozen=True)
class PublishedResult(StudyRows):
    """The result of the paper's protocol on a panel: one row per seed, zone and method or rule."""

    panel: Panel
    setup: Setup
    first_test: str
    tables: list[Table]
    comparison: Comparison = NOTHING

    def show(self, console: Console) -> None:
        """Print notes and tables for people."""
        print_notes(self.panel.notes, console)
        console.print(self._heading())
        for table in (table for table in self.tables if table.name in SHOWN):
            console.print()
            console.print(to_rich(table))
        console.print()
        for line in self.comparison.lines():
            console.print(f"Paper: {line}")
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red")
        if self.remark:
            console.print(self.remark, style="yellow")
        missing = "" if np.isfinite(with_places(self.panel).places).any() else " No map: the panel has no lat and lon."
        console.print(f"\nTables, figures and rows: {self.folder}.{missing}")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        about = {
            "seeds": sorted(self.rows["seed"].unique().tolist()),
            "failed": self.failures(),
            "folder": str(self.folder),
            "versions": self.versions,
            "notes": list(self.panel.notes),
            "paper": self.comparison.as_json(),
        }
        return jsonable(as_json(self.rows) | about)

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        note = "\nThe own part counts twice (--cost): amounts of money are not what a zone pays."
        return (
            f"{len(panel.names)} zones; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} test; "
            f"{self.rows['seed'].nunique()} seeds.\nFrom {', '.join(panel.covariate_names)}. Demands: {panel.demand_from}.\n"
            f"As published: {_in_words(self.setup.settings)}, random days held out.{note if self.setup.cost != 'total' else ''}"
        )


def _in_words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def print_notes(notes: tuple[str, ...], console: Console) -> None:
    """Print the notes on a panel."""
    for note in notes:
        console.print(f"note: {printable(note)}", style="yellow")  # names in a note may come from a server
