"""The options that the commands of all studies share."""

from __future__ import annotations

from typing import Annotated

import typer

Only = Annotated[list[str] | None, typer.Option(help="Only configurations with NAME=VALUE[,VALUE]; may be repeated.")]
Workers = Annotated[int | None, typer.Option(help="Processes, one core each. Default: one for each core.")]
Ray = Annotated[str, typer.Option(help="Run on the Ray cluster at HOST:PORT, or auto (extra: dffl-studies\\[ray]).")]
AcceptVersions = Annotated[
    bool, typer.Option("--accept-versions", help="Add rows to a folder that has rows of another version of dffl.")
]
