"""`dffl privacy-study`: the cost of privacy and of lying sites, in regret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress
from dffl_studies.options import AcceptVersions, Only, Ray, Workers

if TYPE_CHECKING:
    from dffl_studies.running.result import RunOptions, StudyResult


def privacy_study(
    out: Annotated[Path | None, typer.Option(help="Where rows, tables and the figure go. Default: dffl-privacy.")] = None,
    zones: Annotated[
        Path | None,
        typer.Option(help="Judge on the electricity zones in this folder too (see dffl energy).", envvar="DFFL_ENERGY_DATA"),
    ] = None,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[
        bool, typer.Option(help="Run nothing: tables and figure of what is finished, even while a run is under way.")
    ] = False,
    accept_versions: AcceptVersions = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Price privacy and robustness: regret against epsilon, and against the number of sites that lie.

    First clip and rounds are searched for every method, level and epsilon, on federations of their own. Then they are judged
    on the demo's clients, on ten times as many, and on real zones, from three starts. It takes about an hour on two cores;
    stop it at any time, and the same command continues. It needs the extra dffl[privacy].

    Example: dffl privacy-study --only liars=0 --only start=0
    """
    with answering():
        from dffl_studies.running.result import RunOptions

        options = RunOptions(out, only or [], workers, ray or None, show, shown_progress(quiet), accept_versions)
        answer(judge(options, zones), json_)


def judge(options: RunOptions, zones: Path | None) -> StudyResult:
    """Search, judge the chosen settings, and write tables and the figure."""
    from dataclasses import replace

    from dffl.training.privacy.spending import accountant
    from dffl_studies.privacy import study
    from dffl_studies.privacy.figure import draw
    from dffl_studies.privacy.tables import all_tables
    from dffl_studies.running.render import write_tables
    from dffl_studies.running.result import StudyResult, finished_rows

    accountant()  # refused at once, not in every job
    if zones is not None and not zones.is_dir():
        raise ValueError(f"--zones: {zones} is not a folder")
    folder = options.out or Path("dffl-privacy")
    searched = finished_rows(study.search_study(zones), replace(options, out=folder / "search", only=[]))
    planned = study.judging_study(study.choose(searched.rows), zones)
    finished = finished_rows(planned, replace(options, out=folder / "judged"))
    tables = all_tables(finished.rows)
    write_tables(tables, folder / "tables", finished.remark)
    shown = tuple(table.name for table in tables)
    return StudyResult(finished, tables, shown, draw(finished.rows, folder / "figures"), chosen_by=searched)
