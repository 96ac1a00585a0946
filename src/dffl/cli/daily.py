"""Commands of every day, once there is a model: `score` what came after it, and `update` it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dffl.cli.own import FederationFile, ModelPath, trained_into
from dffl.files import require_replaceable, require_target
from dffl.terminal import Exit, Json, Quiet, answer, answering


def score(
    model: ModelPath,
    table: Annotated[Path, typer.Argument(metavar="REALISED", help="Rows with the costs that came: CSV or Parquet.")],
    client: Annotated[str, typer.Option("--client", "-c", help="The client that decided.")],
    state: Annotated[Path | None, typer.Option(help="What was scored before: it is read, if it is there, and written.")] = None,
    json_: Json = False,
) -> None:
    """Say how a client's rule has done on rows that came after the model, and whether it should be refitted.

    The model stays as it is. Exit code 0: all is well; 7: the rule should be refitted, and the last line says why.

    Example: dffl score model.dffl --client north realised.csv --state north.state
    """
    with answering():
        from dffl.tables.model import OwnModel
        from dffl.tables.scoring import score_file
        from dffl.time.observed import is_state

        if state is not None:
            require_target(state, "--state", [model, table])
            require_replaceable(state, "--state", "a state of dffl score", is_state)
        scored = score_file(OwnModel.load(model), client, table, state)
        answer(scored, json_)
        if scored.refit:
            raise typer.Exit(Exit.REFIT)


def update(
    model: ModelPath,
    federation: FederationFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the new model.")],
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model again with the grown tables of its federation, and say what changed. The old model stays as it is.

    Example: dffl update model.dffl federation.toml -o new.dffl
    """
    with answering():
        from dffl.tables.model import OwnModel
        from dffl.tables.updating import ModelUpdate, require_grown

        old = OwnModel.load(model)
        rows: dict[str, Any] = {}
        trained = trained_into(
            federation, out, 1, quiet, [model], lambda description: rows.update(require_grown(old, description))
        )
        answer(ModelUpdate.of(old, trained, rows, out), json_)


def register(app: Any) -> None:
    """Add the commands."""
    for command in (score, update):
        app.command()(command)
