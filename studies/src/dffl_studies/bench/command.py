"""`dffl bench`: speed and memory on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from dffl.terminal import Json, Quiet, answer, answering, shown_progress


def bench(
    only: Annotated[str, typer.Option(help="Only the measurements whose name contains this text.")] = "",
    quick: Annotated[bool, typer.Option(help="Shorter repeats and smaller federations.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure speed and memory on this machine, and compare with target values.

    Example: dffl bench --only knapsack
    """
    with answering():
        from dffl_studies.bench.measurements import measurements, run

        answer(run(measurements(quick), only=only, progress=shown_progress(quiet)), json_)
