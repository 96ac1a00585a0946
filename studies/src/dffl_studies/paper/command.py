"""`dffl paper`: reproduce the paper's synthetic study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress
from dffl_studies.options import AcceptVersions, Only, Ray, Workers

if TYPE_CHECKING:
    from dffl_studies.running.result import RunOptions, StudyResult

SHOWN = ("nearness", "readings", "table2", "table3", "noise", "table7-both-noise-levels", "variants")
"""The tables that the terminal shows; all are written."""


def paper(
    out: Annotated[
        Path | None, typer.Option(help="Where rows, tables and figures go. Default: dffl-paper (-quick, -variants, -authors).")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="A small version of the study: 32 configurations, one seed; about six minutes.")
    ] = False,
    variants: Annotated[
        bool, typer.Option(help="Instead of the study: compare the settings that the paper does not state.")
    ] = False,
    authors: Annotated[
        bool, typer.Option(help="Use the settings of the authors' later code, not the ones that --variants finds nearest.")
    ] = False,
    methods: Annotated[
        str | None, typer.Option(help="Run these methods, NAME[,NAME...], and add them to the folder. Default: the study's.")
    ] = None,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[
        bool, typer.Option(help="Run nothing: tables and figures of what is finished, even while a run is under way.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    accept_versions: AcceptVersions = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's synthetic study: every table and figure, with the paper's own numbers.

    The whole grid is 2,560 configurations and takes hours; stop it at any time, and the same command continues.

    Example: dffl paper --quick

    Example: dffl paper --show --authors --out studies/results/paper-authors

    Example: dffl paper --only problem=knapsack --only degree=2,4 --out knapsack

    Example: dffl paper --methods ditto --out studies/results/paper --accept-versions
    """
    with answering():
        from dffl_studies.running.result import RunOptions

        options = RunOptions(out, only or [], workers, ray or None, show, shown_progress(quiet), accept_versions)
        answer(reproduce(options, quick, variants, figures, methods, authors), json_)


def reproduce(
    options: RunOptions,
    quick: bool = False,
    variants: bool = False,
    figures: bool = True,
    methods: str | None = None,
    authors: bool = False,
) -> StudyResult:
    """Run the study, or only show it, and write its tables and figures into its folder."""
    from dffl_studies.paper import study, tables
    from dffl_studies.paper import variants as compared
    from dffl_studies.paper.by_level import level_tables
    from dffl_studies.paper.nearness import nearness_table
    from dffl_studies.running.render import write_tables
    from dffl_studies.running.result import StudyResult, finished_rows

    if quick + variants + authors > 1:
        raise ValueError("--quick, --variants and --authors are different studies; ask for one of them")
    reading = tables.AUTHORS_READING if authors else tables.READING
    planned = study.quick() if quick else study.study(protocol=study.AUTHORS) if authors else study.study()
    if methods is not None:
        if variants or options.show:
            raise ValueError(f"--methods says what to run; leave {'--variants' if variants else '--show'} out")
        planned = planned.asking(study.checked_methods([name.strip() for name in methods.split(",")]))
    finished = compared.run_stages(options) if variants else finished_rows(planned, options)
    if variants:
        tables_made = compared.tables(finished.rows)
    else:
        tables_made = [
            nearness_table(finished.rows),
            *tables.all_tables(finished.rows, reading),
            *level_tables(finished.rows, reading=reading),
        ]
    write_tables(tables_made, finished.folder / "tables", finished.remark)
    drawn, speed = [], ""
    if not variants:
        speed = study.speed_line(finished)
        if figures:
            from dffl_studies.paper.figures import draw_all  # Matplotlib, only where pictures are wanted

            drawn = draw_all(finished.rows, finished.folder / "figures", ("png",) if quick else ("png", "pdf"), reading=reading)
    return StudyResult(finished, tables_made, SHOWN, drawn, speed)
