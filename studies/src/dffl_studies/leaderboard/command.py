"""`dffl leaderboard`: every method and every loss, each with the same small search, on data that the search has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress
from dffl_studies.options import AcceptVersions, Only, Ray, Workers

if TYPE_CHECKING:
    from dffl_studies.running.result import RunOptions, StudyResult


def leaderboard(
    out: Annotated[Path | None, typer.Option(help="Where rows, tables and the figure go. Default: dffl-leaderboard.")] = None,
    zones: Annotated[
        Path | None, typer.Option(help="Judge on the electricity zones in this folder too (see dffl energy).")
    ] = None,
    quick: Annotated[bool, typer.Option(help="No search and three federations: a first look, in five minutes.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="All 1,920 configurations of the grid, not the balanced 240.")] = False,
    entries: Annotated[list[str] | None, typer.Option("--entry", help="Only this entry; may be repeated.")] = None,
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
    """Compare all methods and losses: regret, harm, cost, and which methods cannot be distinguished.

    First every entry searches its own options, all with the same number of candidates, on federations of its own. Then what it
    chose is judged on others. It takes hours; stop it at any time, and the same command continues.

    Example: dffl leaderboard --quick

    Example: dffl leaderboard --only seed=0 --entry crossfit --entry finetune

    Example: dffl leaderboard --only problem=shortest-path
    """
    with answering():
        from dffl_studies.running.result import RunOptions

        options = RunOptions(out, only or [], workers, ray or None, show, shown_progress(quiet), accept_versions)
        answer(judge(options, entries or [], zones, quick, whole), json_)


def judge(options: RunOptions, wanted: list[str], zones: Path | None, quick: bool = False, full: bool = False) -> StudyResult:
    """Search, judge the chosen options, and write tables and the figure."""
    from dataclasses import replace

    from dffl.files import write_text
    from dffl.named import find
    from dffl_studies.leaderboard import study, tables
    from dffl_studies.leaderboard.entries import ENTRIES
    from dffl_studies.leaderboard.figure import draw
    from dffl_studies.running.render import write_tables
    from dffl_studies.running.result import StudyResult, finished_rows

    if quick and (full or options.only):
        raise ValueError("--quick judges three federations of its own; leave --all and --only out")
    entries = [find(ENTRIES, name, "entry") for name in wanted] or list(ENTRIES.values())
    folder = options.out or Path("dffl-leaderboard-quick" if quick else "dffl-leaderboard")
    if quick:
        chosen = study.first_choice(entries)
        planned, known, there = study.quick_study(chosen, entries), None, None
    else:
        search = study.search_study(entries, zones)
        asked = replace(options, out=folder / "search", only=[text for text in options.only if text.startswith("problem=")])
        finished_rows(search, asked)
        # The tables include earlier problems: the choice is made from all existing rows.
        there = finished_rows(search, replace(asked, only=[], workers=None, ray=None, show=True))
        chosen, known = study.choose(there.rows, entries), study.searched(there.rows)
        planned = study.judging_study(chosen, entries, zones, full=full)
    finished = finished_rows(planned, replace(options, out=folder / "judged"))
    all_of_them = tables.all_tables(finished.rows)
    write_tables(all_of_them, folder / "tables", finished.remark)
    write_text(folder / "tables" / "chosen.md", tables.chosen_text(chosen, known))
    refused = tables.refused_text(finished.rows)
    shown, figures = tuple(table.name for table in all_of_them), draw(finished.rows, folder / "figures")
    return StudyResult(finished, all_of_them, shown, figures, f".\n{refused}".rstrip() if refused else "", there)
