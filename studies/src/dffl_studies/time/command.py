"""`dffl time-study`: decisions over time on markets with a past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress
from dffl_studies.options import AcceptVersions, Only, Ray, Workers

if TYPE_CHECKING:
    from dffl_studies.running.result import RunOptions, StudyResult

FOLDERS = ("energy", "pjm", "epf")


def time_study(
    energy: Annotated[
        Path | None, typer.Option(help="Zones of 2021: the folder that `dffl energy` reads.", envvar="DFFL_ENERGY_DATA")
    ] = None,
    pjm: Annotated[Path | None, typer.Option(help="PJM zones: a folder with prices.csv.gz and zones.csv.")] = None,
    epf: Annotated[Path | None, typer.Option(help="Published forecasts: a folder with forecasts_BE.csv.gz, ...")] = None,
    out: Annotated[Path | None, typer.Option(help="Where rows, tables and the figure go. Default: dffl-time.")] = None,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[bool, typer.Option(help="Run nothing: tables and figure of what is finished.")] = False,
    accept_versions: AcceptVersions = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Backtest markets with prices alone, with weather, and with published forecasts; a folder that is not given is skipped.

    It takes about three minutes on one core; stop it at any time, and the same command continues.

    Example: dffl time-study --energy data/energy --epf data/epf
    """
    with answering():
        from dffl_studies.running.result import RunOptions

        options = RunOptions(out, only or [], workers, ray or None, show, shown_progress(quiet), accept_versions)
        answer(judge(options, dict(zip(FOLDERS, (energy, pjm, epf), strict=True))), json_)


def judge(options: RunOptions, folders: dict[str, Path | None]) -> StudyResult:
    """Run what is missing, and write the tables."""
    from dffl.drawing import write_figures
    from dffl_studies.running.render import write_tables
    from dffl_studies.running.result import StudyResult, finished_rows
    from dffl_studies.time.figure import draw_changes
    from dffl_studies.time.study import study
    from dffl_studies.time.tables import all_tables

    there = {name: folder for name, folder in folders.items() if folder is not None and folder.is_dir()}
    absent = [
        name if folder is None else f"{name} ({folder}: not a folder)" for name, folder in folders.items() if name not in there
    ]
    finished = finished_rows(study(there), options)
    tables = all_tables(finished.rows)
    write_tables(tables, finished.folder / "tables", finished.remark)
    write_figures([("changes", draw_changes(finished.rows))], finished.folder / "figures", ("png",), 200)
    skipped = f"; skipped, as their data were not given: {', '.join(absent)}" if absent else ""
    return StudyResult(finished, tables, tuple(table.name for table in tables), remark=skipped)
