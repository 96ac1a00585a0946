"""The command line. Heavy imports wait until a command runs, so that ``--help`` answers at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import dffl
from dffl.cli import daily, own
from dffl.cli.extensions import Commands
from dffl.cli.federation import federation
from dffl.cli.site import site
from dffl.interrupts import interruptible
from dffl.terminal import (
    Exit,
    Json,
    Quiet,
    Report,
    Seed,
    Without,
    answer,
    answering,
    leave,
    printable,
    printing,
    require_picture,
    shown_progress,
)

app = typer.Typer(
    cls=Commands,
    help="Decision-focused federated learning: train together on the decisions that follow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # paragraphs of docstrings are wrapped again
    context_settings={"help_option_names": ["-h", "--help"]},
)

SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A federation.toml, or demo, knapsack, portfolio, shortest-path; with dffl-studies, the panel of a market.",
    ),
]
Rounds = Annotated[int, typer.Option(help="Federated rounds; fewer are faster but less accurate.")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Decision-focused federated learning."""
    if version:
        with answering(), printing():
            typer.echo(f"dffl {dffl.__version__}")
        raise typer.Exit


@app.command()
def demo(
    seed: Seed = 0,
    rounds: Rounds = 50,
    figure: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("dffl-demo.png"),
    report: Report = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train 20 knapsack clients with eight methods and show who gains.

    Ten clients have 500 samples and ten have 50; each client's prices depend on the features in its own way, and budgets
    differ. Takes about a minute.

    Example: dffl demo --seed 1 --figure demo.png --report demo.html
    """
    with answering():
        if not json_:
            require_picture(figure)
        from dffl.demo import run

        answer(run(seed, shown_progress(quiet), None if json_ else figure, report, rounds=rounds), json_)


@app.command()
def advise(
    source: SourceName = "demo",
    without: Without = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Fixes everything that is random. Default: that of the file, or 0.", show_default=False),
    ] = None,
    folds: Annotated[int, typer.Option(help="The number of cross-validation folds.")] = 5,
    blocks: Annotated[
        bool | None, typer.Option(help="Hold out consecutive samples, as time series need. Default: on for electricity panels.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence level of the interval.")] = 0.9,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Federated rounds; fewer are faster but less accurate. Default: those of the file, or 50.", show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Train nothing: a rough answer from cost models, in seconds.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell each client whether to federate: the expected gain, an interval, and the reason in plain words.

    The settings under [training] of a federation's file are used; options that are typed override them. Where the file has an
    order, a backtest also compares with your forecast and moving averages, unless --blocks or --no-blocks asks for folds.

    Example: dffl advise demo

    Example: dffl advise portfolio --quick --json
    """
    with answering():
        from dffl.advice import advise as advise_clients
        from dffl.advice.display import AdviceShown, OverTimeShown
        from dffl.advice.over_time import AdviceOverTime, advise_over_time
        from dffl.cli.sources import load, unused_if_quick

        loaded = load(source, seed or 0, without or ())
        typed = {name: value for name, value in (("seed", seed), ("rounds", rounds)) if value is not None}
        if (timed := loaded.over_time) is not None and blocks is None and not quick and len(timed.federation) > 1:
            keywords = {**timed.keywords, **typed}
            told = advise_over_time(timed.federation, confidence=confidence, progress=shown_progress(quiet), **keywords)
            answer(OverTimeShown(told, loaded.title, timed.notes), json_)
            return
        advice = advise_clients(
            loaded.federation, folds=folds, blocks=loaded.ordered if blocks is None else blocks, quick=quick,
            confidence=confidence, progress=shown_progress(quiet), **{**loaded.settings, **typed},
        )  # fmt: skip
        notes = [*loaded.notes, *(unused_if_quick(loaded.settings) if quick else ())]
        if isinstance(advice, AdviceOverTime):  # of a source whose clients have times
            answer(OverTimeShown(advice, loaded.title, notes), json_)
        else:
            answer(AdviceShown(advice, loaded.title, notes), json_)


@app.command()
def bounds(
    source: SourceName = "demo",
    without: Without = None,
    seed: Seed = 0,
    delta: Annotated[float, typer.Option(help="The bounds hold with probability 1 - delta.")] = 0.05,
    search: Annotated[bool, typer.Option(help="Search for lower bounds on complexity and discrepancy (half a minute).")] = True,
    form: Annotated[str, typer.Option(help="sharp: the bounds that hold; paper: as printed there, for comparison.")] = "sharp",
    figure: Annotated[Path, typer.Option(help="Where to write the heat map.")] = Path("dffl-bounds.png"),
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """What the theory says about a federation: pairwise bounds, the terms of Theorem 2, and which bounds are vacuous.

    Example: dffl bounds demo --figure bounds.png

    Example: dffl bounds portfolio --no-search --json
    """
    with answering():
        from dffl.cli.sources import inputs_at, load

        if not json_:
            require_picture(figure, inputs_at(source))
        from dffl.theory.display import BoundsShown
        from dffl.theory.report import bounds as bound

        loaded = load(source, seed, without or ())
        wanted: Any = form  # `bounds` checks it
        report = bound(loaded.federation, delta=delta, search=search, form=wanted, progress=shown_progress(quiet), seed=seed)
        answer(BoundsShown(report, loaded.title, figure), json_)


own.register(app)
daily.register(app)
app.add_typer(federation, name="federation")
app.add_typer(site, name="site")


def main() -> Any:
    """The entry point of the command ``dffl``."""
    # A warning is a note for the reader, who has nothing to do with the line of code that gave it.
    warnings.formatwarning = lambda message, *_, **__: f"dffl: note: {printable(str(message))}\n"
    with interruptible() as interrupted:
        try:
            return app()
        except SystemExit as end:
            if interrupted or end.code == Exit.INTERRUPTED:
                leave(Exit.INTERRUPTED)
            raise
