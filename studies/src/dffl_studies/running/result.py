"""A study from the command line: run the missing jobs, then show the results."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.jsonable import jsonable
from dffl_studies.running.render import to_rich
from dffl_studies.running.runner import run
from dffl_studies.running.store import Store
from dffl_studies.running.study import Job, Study
from dffl_studies.running.tables import Table
from dffl_studies.running.versions import count_versions, in_words

MOST_FAILURES = 10
"""The most failed jobs that are named on the screen; all are in the folder."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a command that runs a study."""

    out: Path | None = None
    only: list[str] = field(default_factory=list)
    workers: int | None = None
    ray: str | None = None
    show: bool = False
    """Run nothing: show only the results so far."""
    progress: bool | None = None
    accept_versions: bool = False
    """Add to a folder that has rows of another version of dffl."""


@dataclass(frozen=True)
class StudyRows:
    """The rows of a study's finished jobs, where they are, and which jobs failed."""

    study: Study
    folder: Path
    rows: pd.DataFrame
    jobs: pd.DataFrame
    failed: list[tuple[Job, str]]
    damaged: list[str]

    @property
    def core_hours(self) -> float:
        """The cost of the finished jobs."""
        return float(self.jobs["cpu_seconds"].sum()) / 3600

    @property
    def versions(self) -> dict[str, int]:
        """For each version of dffl that made rows, the number of configurations."""
        return count_versions(self.rows)

    def value_counts(self) -> dict[str, int]:
        """For each value of the study's inner axis (each method), the number of configurations that have it."""
        if self.study.inner_axis is None:
            return {}
        counts = self.rows.groupby(self.study.inner_axis[1])["job"].nunique()
        return {value: int(counts.get(value, 0)) for value in dict.fromkeys([*self.study.values, *map(str, counts.index)])}

    @property
    def remark(self) -> str:
        """Remarks on averages: rows of several versions, and methods that some configurations lack."""
        versions, finished, lines = self.versions, self.rows["job"].nunique(), []
        if len(versions) > 1:
            lines.append(f"Rows of dffl {in_words(versions)}: see the column dffl of rows.parquet.")
        if some := {value: count for value, count in self.value_counts().items() if 0 < count < finished}:
            listed = ", ".join(f"{value} has {count:,}" for value, count in some.items())
            lines.append(f"Means are over different configurations: of {finished:,}, {listed}.")
        return " ".join(lines)

    def failures(self) -> list[dict[str, Any]]:
        """As JSON values: the parameters of each failed job, and the reason."""
        return [{**job.parameters, "why": why} for job, why in self.failed]


def finished_rows(planned: Study, options: RunOptions, folder: Path | None = None) -> StudyRows:
    """Run the missing jobs among those asked for, unless rows are only shown, and read the rows of all of them."""
    if options.show and (options.workers or options.ray):
        raise ValueError("--show runs nothing; leave --workers and --ray out")
    study = planned.only(options.only)
    store = Store(options.out or folder or Path(f"dffl-{planned.name}"))
    keys = {job.key: job for job in study.jobs}
    if options.show:
        store.check(planned)
        failed = [(keys[key], "see failed/") for key in sorted(store.failures() & set(keys))]
    else:
        try:
            how: dict[str, Any] = {"workers": options.workers, "ray": options.ray, "progress": options.progress}
            report = run(study, store.folder, accept_versions=options.accept_versions, **how)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; {len(study.jobs) - len(store.missing(study))} of {len(study.jobs)} configurations are finished "
                f"in {store.folder}, and the same command continues from there"
            ) from None
        failed, store.damaged = report.failed, report.damaged
    rows = store.rows()
    rows = rows[rows["job"].isin(keys)]
    if rows.empty:
        first = f"; {failed[0][0]} failed: {failed[0][1]}" if failed else ""
        raise ValueError(f"{store.folder}: no configuration of these is finished yet{first}")
    done, jobs = set(rows["job"]), store.jobs()
    damaged = [_cut_short(path, done) for path in store.damaged]
    return StudyRows(study, store.folder, rows, jobs[jobs["job"].isin(done)], failed, damaged)


@dataclass(frozen=True)
class StudyResult:
    """The tables and figures of a study."""

    finished: StudyRows
    tables: list[Table]
    shown: tuple[str, ...]
    """The tables that the terminal shows; all are written."""
    figures: list[Path] = field(default_factory=list)
    remark: str = ""
    """A text after the cost."""
    chosen_by: StudyRows | None = None
    """Rows of a search whose averages determined the settings behind the tables."""

    @property
    def failed(self) -> list[tuple[Job, str]]:
        return self.finished.failed

    def show(self, console: Console) -> None:
        """Print the main tables and the places of all files."""
        for table in [table for table in self.tables if table.name in self.shown] or self.tables:
            console.print(to_rich(table))
            console.print()
        for job, why in self.failed[:MOST_FAILURES]:
            console.print(f"failed: {job}: {why}", style="red")
        for line in (*self.finished.damaged, *self._remarks()):
            console.print(line, style="yellow")
        console.print(self._closing())

    def _remarks(self) -> list[str]:
        search = self.chosen_by.remark if self.chosen_by else ""
        return [line for line in (self.finished.remark, search and f"Search: {search}") if line]

    def _closing(self) -> str:
        total, finished, hours = len(self.finished.study.jobs), self.finished.rows["job"].nunique(), self.finished.core_hours
        spent = f"{hours:.2f} core-hours" if hours >= 0.1 else f"{60 * hours:.1f} core-minutes"
        lines = [f"{finished} of {total} configurations, {len(self.failed)} failed; {spent}{self.remark}."]
        counts = self.finished.value_counts()
        if absent := [value for value, count in counts.items() if not count]:
            lines.append(f"None has {', '.join(absent)}.")
        if finished < total or any(count < finished for count in counts.values()):
            lines.append("Run the same command again for the rest." + (" Failures are in failed/." if self.failed else ""))
        figures = " and the figures" if self.figures else ""
        lines.append(f"Rows, {len(self.tables)} tables{figures}: {self.finished.folder}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
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
        finished = self.finished
        counts = {"configurations": len(finished.study.jobs), "finished": finished.rows["job"].nunique()}
        about = {"core_hours": round(finished.core_hours, 4), "failed": finished.failures(), "folder": str(finished.folder)}
        content = {"versions": finished.versions, "values": finished.value_counts(), "remarks": self._remarks()}
        return jsonable({**counts, **about, **content, "tables": tables})


def _cut_short(path: Path, done: set[str]) -> str:
    mended = "was run again" if path.stem in done else "is run again by the next run"
    return f"{path} was cut short: its configuration {mended}"
