"""`dffl advice-study`: judge `dffl advise` where the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress
from dffl_studies.options import AcceptVersions, Only, Ray, Workers


def advice_study(
    out: Annotated[
        Path | None, typer.Option(help="Where rows and tables go. Default: dffl-advice-tuned (-zones), dffl-advice-shared.")
    ] = None,
    zones: Annotated[
        Path | None, typer.Option(help="Judge on the electricity zones in this folder instead of synthetic federations.")
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Judge on copies of one table, pure noise and sites of one price zone instead.")
    ] = False,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[
        bool, typer.Option(help="Run nothing: the tables of what is finished, even while a run is under way.")
    ] = False,
    accept_versions: AcceptVersions = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge `dffl advise` where the truth is known: 432 synthetic federations, or real zones. Takes some hours.

    Example: dffl advice-study --only sizes=equal --only noise=0

    Example: dffl advice-study --zones FOLDER

    Example: dffl advice-study --shared --out studies/results/advice-shared
    """
    with answering():
        from dffl_studies.advice import study
        from dffl_studies.advice.tables import all_tables, shared_tables
        from dffl_studies.running.render import write_tables
        from dffl_studies.running.result import RunOptions, StudyResult, finished_rows

        if shared and zones is not None:
            raise ValueError("--shared and --zones cannot be combined; leave one of them out")
        options = RunOptions(out, only or [], workers, ray or None, show, shown_progress(quiet), accept_versions)
        planned = study.shared_rows() if shared else study.study() if zones is None else study.zones(zones)
        finished = finished_rows(planned, options)
        tables = shared_tables(finished.rows) if shared else all_tables(finished.rows)
        write_tables(tables, finished.folder / "tables", finished.remark)
        answer(StudyResult(finished, tables, shown=()), json_)
