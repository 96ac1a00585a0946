"""Commands for users' own data, from `init` and `fit` to `decide` and `report`; `daily.py` has those of every day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dffl.files import require_replaceable, require_target
from dffl.terminal import Json, Quiet, Report, answer, answering, command_name, shown_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from dffl.tables.chosen import ChosenModel
    from dffl.tables.description import Description
    from dffl.tables.trained_model import TrainedModel

FederationFile = Annotated[
    Path, typer.Argument(metavar="FEDERATION", help="The file that describes the federation, such as federation.toml.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `dffl fit` wrote.")]
Starts = Annotated[int, typer.Option(min=1, max=1000, help="Number of random seeds; 3 or more give a harm verdict.")]


@dataclass(frozen=True)
class Written:
    """What a command wrote, for programs and for people."""

    plain: dict[str, Any]
    lines: list[str]

    def show(self, console: Console) -> None:
        """Print the lines as they are: paths are not broken."""
        for line in self.lines:
            console.print(line, soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        return self.plain


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder to write into; it is made if there is none. With --client: a federation's file."
        ),
    ],
    client: Annotated[
        str | None, typer.Option("--client", "-c", help="Add the lists of this client's own table to a federation's file.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="With --client: the table, if it is not where the file says.")] = None,
    json_: Json = False,
) -> None:
    """Write a small example of a federation: three sites, three kinds of constraints, one file that explains itself.

    With --client, for sites that are apart: add to a federation's file what the other sites cannot see in their own tables.
    These are the texts of categories, the dates with a time of day, and the columns with empty cells. No row leaves the site.

    Example: dffl init my-federation

    Example: dffl init federation.toml --client north
    """
    with answering():
        if client is None and table is not None:
            raise ValueError("--table requires --client")
        answer(_example(folder) if client is None else _lists(folder, client, table), json_)


def _example(folder: Path) -> Written:
    from dffl.tables.example import write_example

    files, dffl = [str(path) for path in write_example(folder)], command_name()
    lines = [*(f"wrote {path}" for path in files), f"\nNext, read {folder / 'federation.toml'}, then type:\n"]
    return Written({"files": files}, [*lines, f"  {dffl} fit {folder / 'federation.toml'} -o {folder / 'model.dffl'}"])


def _lists(file: Path, client: str, table: Path | None) -> Written:
    from dffl.tables.one_site import add_lists

    lists, agreement = add_lists(file, client, table=table)
    lines = [f"wrote {file}, with what {client} adds:", *lists.lines]
    lines.append(
        f"\nIt has {len(agreement.features)} features and {len(agreement.costs)} costs, digest {agreement.digest[:16]}."
    )
    lines.append("When the last site has added its own, send the file to all: the digest is then the same at every site.")
    moments = {key: str(value) for key, value in lists.moments.items()}
    return Written({"files": [str(file)], **lists.keys, **moments, "agreement": agreement.as_json()}, lines)


def fit(
    federation: FederationFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")],
    starts: Starts = 1,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the method that a federation.toml names, compare it with simpler rules on the test rows, and save the model.

    Where the file has an order and names no method, a backtest chooses: among your forecast, moving averages and models.

    Ctrl-C keeps the last finished round: the same command resumes from there.

    Example: dffl fit federation.toml -o model.dffl
    """
    with answering():
        from dataclasses import replace

        answer(replace(trained_into(federation, out, starts, quiet), path=out), json_)


def trained_into(
    federation: Path, out: Path, starts: int, quiet: bool, inputs: Sequence[Path] = (),
    require: Callable[[Description], object] | None = None,
) -> TrainedModel | ChosenModel:  # fmt: skip
    """Train what a file asks for and save it; ``require`` refuses a file, once it is read, before anything is trained."""
    from dffl.archive import require_model_target
    from dffl.tables.description import inputs_of, read
    from dffl.tables.reading import backtest_of, checkpoints
    from dffl.tables.trained_model import train_file

    part, inputs = out.with_name(out.name + ".part"), [*inputs, *inputs_of(federation)]
    require_model_target(out, "--out", inputs)
    parts = checkpoints(part, starts)
    for target in (*parts, *map(backtest_of, parts)):
        require_target(target, "--out", inputs)
    description = read(federation)
    if require is not None:
        require(description)
    try:
        trained = train_file(description, shown_progress(quiet), part, starts)
    except KeyboardInterrupt:
        saved = next((candidate for path in parts for candidate in (path, backtest_of(path)) if candidate.exists()), None)
        message = f"what is finished is in {saved}; the same command resumes from there" if saved else "nothing is kept"
        raise KeyboardInterrupt(f"interrupted: {message}") from None
    trained.fit.save(out)
    return trained


def compare(
    federation: FederationFile,
    method: Annotated[list[str] | None, typer.Option(help="A method to compare; may be repeated.")] = None,
    starts: Starts = 3,
    report: Report = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on your federation, client by client, with several random seeds; no model is saved.

    Example: dffl compare federation.toml --method finetune --method crossfit --report comparison.html
    """
    with answering():
        from dffl.report.target import require_page
        from dffl.tables.description import inputs_of, read
        from dffl.tables.method_comparison import compare as compare_methods

        if report is not None:
            require_page(report, inputs=inputs_of(federation))

        answer(compare_methods(read(federation), method, starts, shown_progress(quiet), report), json_)


def backtest(
    federation: FederationFile,
    start: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="The first row that counts; by default the later half.")
    ] = None,
    refit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Train and choose again after this many rows. Default: that of the file, or 28.", show_default=False
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Choose by the regret in this many rows before. Default: that of the file, or 90.", show_default=False
        ),
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="A method to train, instead of fedavg; may be repeated.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file from which a backtest that was stopped resumes; it is removed at the end.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Models trained at once; by default one per core. It changes no number.")
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Decide the later rows one by one with what was known before each: by naive rules, your forecast and trained models.

    It needs `order` in the federation's file. No model is saved.

    Example: dffl backtest federation.toml --from 2024-09-01 --refit 28
    """
    with answering():
        from dffl.tables.backtesting import run
        from dffl.tables.description import inputs_of, read

        if checkpoint is not None:
            require_target(checkpoint, "--checkpoint", inputs_of(federation))
        answer(run(read(federation), start, refit, window, method, shown_progress(quiet), checkpoint, jobs), json_)


def decide(
    model: ModelPath,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The rows to decide for: CSV or Parquet.")],
    client: Annotated[str, typer.Option("--client", "-c", help="The client that decides.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write the decisions, as CSV.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column of the table to write before the decisions; the one under `order` is written anyway."),
    ] = None,
    state: Annotated[Path | None, typer.Option(help="What `dffl score` has written: rows that are known by now.")] = None,
    json_: Json = False,
) -> None:
    """Decide for new rows of a client, and say what such decisions have cost so far.

    Example: dffl decide model.dffl --client north new.csv -o decisions.csv
    """
    with answering():
        if out is not None:
            require_target(out, "--out", [model, table, *([] if state is None else [state])])
        from dffl.tables.decisions import are_decisions
        from dffl.tables.decisions import decide as decide_rows
        from dffl.tables.model import OwnModel

        fitted = OwnModel.load(model)
        if out is not None:
            require_replaceable(out, "--out", "a table of such decisions", lambda path: are_decisions(path, fitted, table))
        answer(decide_rows(fitted, client, table, out, keep or (), state), json_)


def export(
    model: ModelPath,
    client: Annotated[str, typer.Option("--client", "-c", help="The client whose model is written.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write it.")],
    json_: Json = False,
) -> None:
    """Write what one client needs to decide on its own, and nothing of the others.

    Example: dffl export model.dffl --client north -o north.dffl
    """
    with answering():
        from dffl.archive import require_model_target

        require_model_target(out, "--out", [model])
        from dffl.tables.model import OwnModel

        OwnModel.load(model).only(client).fit.save(out)
        message = f"wrote {out}: the model of {client}, and nothing of the others"
        answer(Written({"client": client, "model": str(out)}, [message]), json_)


def report(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL_OR_FOLDER", help="A model of `dffl fit`, or a folder of models or of an energy study."),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write the page.")] = None,
    client: Annotated[str | None, typer.Option("--client", "-c", help="One client alone: not a word about the others.")] = None,
    each: Annotated[Path | None, typer.Option("--each", help="A folder for the page of each client.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print a summary of five lines, to be mailed.")] = False,
    json_: Json = False,
) -> None:
    """Write the report of a model, or of all models in a folder side by side, as one HTML file that needs no network.

    Example: dffl report model.dffl -o report.html

    Example: dffl report model.dffl -o fleet.html --each sites --text

    Example: dffl report model.dffl --client north -o north.html
    """
    with answering():
        from dffl.tables.pages import Wanted, written

        answer(written(model, Wanted(out, client, each, text)), json_)


def register(app: Any) -> None:
    """Add the commands."""
    for command in (init, fit, compare, backtest, decide, report, export):
        app.command()(command)
