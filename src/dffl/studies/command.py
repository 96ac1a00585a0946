"""What `dffl paper` does: run what is missing, then write and show tables and figures of what is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.jsonable import jsonable
from dffl.studies import paper as paper_study
from dffl.studies import protocol
from dffl.studies.cost import cost_line
from dffl.studies.render import to_rich, write_tables
from dffl.studies.runner import run
from dffl.studies.store import Store
from dffl.studies.study import Job, Study
from dffl.studies.tables import Table, all_tables

SHOWN = ("readings", "table1", "interpolation", "noise", "distances")
"""The tables that the terminal shows; all are written."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    out: Path | None
    quick: bool
    protocol: bool
    only: list[str]
    workers: int | None
    ray: str | None
    show: bool
    figures: bool


@dataclass(frozen=True)
class Outcome:
    """What there is to show."""

    folder: Path
    study: Study
    finished: int
    failed: list[tuple[Job, str]]
    damaged: list[str]
    tables: list[Table]
    figures: list[Path]
    cost: str
    core_hours: float

    def show(self, console: Console) -> None:
        """Print the main tables and where everything is, for people."""
        shown = [table for table in self.tables if table.name in SHOWN] or self.tables
        for table in shown:
            console.print(to_rich(table))
            console.print()
        for job, why in self.failed[:10]:
            console.print(f"failed: {job}: {why}", style="red", highlight=False, markup=False)
        for line in self.damaged:
            console.print(line, style="yellow", highlight=False, markup=False)
        console.print(self._closing(), highlight=False, markup=False)

    def _closing(self) -> str:
        total = len(self.study.jobs)
        lines = [f"{self.finished} of {total} configurations, {len(self.failed)} failed; {self.cost}."]
        if self.finished < total:
            lines.append("Run the same command again for the rest." + (" Failures are in failed/." if self.failed else ""))
        lines.append(f"Rows, {len(self.tables)} tables{' and the figures' if self.figures else ''}: {self.folder}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        tables = {
            table.name: [
                {
                    **dict(zip(table.labels, cell.row, strict=True)),
                    "statistic": cell.column,
                    "ours": cell.ours._asdict(),
                    "paper": cell.paper._asdict() if cell.paper else None,
                }
                for cell in table.cells
            ]
            for table in self.tables
        }
        failed = [{**job.parameters, "why": why} for job, why in self.failed]
        counts = {"configurations": len(self.study.jobs), "finished": self.finished, "core_hours": round(self.core_hours, 4)}
        return jsonable({**counts, "failed": failed, "folder": str(self.folder), "tables": tables})


def paper(options: Options, progress: bool | None = None) -> Outcome:
    """Run the study, or look at it, and write its tables and figures into its folder."""
    if options.quick and options.protocol:
        raise ValueError("--quick and --protocol are two studies; ask for one of them")
    if options.show and (options.workers or options.ray):
        raise ValueError("--show runs nothing; leave --workers and --ray out")
    whole = protocol.study() if options.protocol else paper_study.quick() if options.quick else paper_study.study()
    study, folder = whole.only(options.only), options.out or Path(f"dffl-{whole.name}")
    store = Store(folder)
    rows, failed = finished_rows(study, whole, store, options, progress)
    tables = protocol.tables(rows, study) if options.protocol else all_tables(rows)
    write_tables(tables, folder / "tables")
    drawn = []
    if options.figures and not options.protocol:
        from dffl.studies.figures import draw_all  # Matplotlib, only where pictures are wanted

        drawn = draw_all(rows, folder / "figures", ("png",) if options.quick else ("png", "pdf"))
    return outcome(study, store, rows, failed, tables, drawn, None if options.protocol else study.protocol["settings"])


def finished_rows(
    study: Study, whole: Study, store: Store, options: Options, progress: bool | None
) -> tuple[pd.DataFrame, list[tuple[Job, str]]]:
    """Run what is missing, unless it is only to be shown, and return the rows of the study's jobs and which of them failed."""
    keys, folder = {job.key: job for job in study.jobs}, store.folder
    if options.show:
        store.check(whole)
        failed = [(keys[key], "see failed/") for key in sorted(store.failures() & set(keys))]
    else:
        try:
            report = run(study, folder, workers=options.workers, ray=options.ray, progress=progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; {len(study.jobs) - len(store.missing(study))} of {len(study.jobs)} configurations are finished "
                f"in {folder}, and the same command goes on from there"
            ) from None
        failed, store.damaged = report.failed, report.damaged
    rows = store.rows()
    rows = rows[rows["job"].isin(keys)]
    if rows.empty:
        first = f"; {failed[0][0]} failed: {failed[0][1]}" if failed else ""
        raise ValueError(f"{folder}: no configuration of these is finished yet{first}")
    return rows, failed


def outcome(
    study: Study, store: Store, rows: pd.DataFrame, failed: list[tuple[Job, str]], tables: list[Table], drawn: list[Path],
    settings: dict[str, Any] | None,
) -> Outcome:  # fmt: skip
    """What there is to show of a study: its tables and figures, what it cost, and what went wrong."""
    jobs = store.jobs()
    jobs = jobs[jobs["job"].isin(rows["job"].unique())]
    hours = float(jobs["cpu_seconds"].sum()) / 3600
    damaged = [_cut_short(path, set(rows["job"])) for path in store.damaged]
    cost = cost_line(jobs, rows, settings)
    return Outcome(store.folder, study, rows["job"].nunique(), failed, damaged, tables, drawn, cost, hours)


def _cut_short(path: Path, done: set[str]) -> str:
    mended = "was run again" if path.stem in done else "is run again by the next run"
    return f"{path} was cut short: its configuration {mended}"
