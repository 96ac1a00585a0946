"""The command line. Heavy imports wait until a command runs, so that ``--help`` answers at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import dffl
from dffl.cli.energy import energy
from dffl.cli.shared import Json, Only, Quiet, Ray, Seed, Without, Workers, answer, answering, console, require_folder

app = typer.Typer(
    help="Decision-focused federated learning: train together on the decisions that follow, while the data stay home.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(energy, name="energy")


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Decision-focused federated learning."""
    if version:
        typer.echo(f"dffl {dffl.__version__}")
        raise typer.Exit


@app.command()
def demo(
    seed: Seed = 0,
    rounds: Annotated[int, typer.Option(help="Federated rounds; fewer is quicker and worse.")] = 50,
    figure: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("dffl-demo.png"),
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train 20 knapsack clients with every method and show who gains.

    Ten clients have 500 samples and ten have 50; prices move differently for each and budgets differ. Takes under a minute.

    Example: dffl demo --seed 1 --figure demo.png
    """
    with answering():
        if not json_:
            require_folder(figure)
        from dffl import demo as demonstration

        federation, table, seconds = demonstration.run(seed, progress=False if quiet else None, rounds=rounds)
        if json_:
            typer.echo(json.dumps(demonstration.as_json(table, seconds)))
            return
        screen = console()
        demonstration.show(federation, table, screen)
        demonstration.draw(table, figure)
        screen.print(f"\n{seconds:.0f} s. Picture: {figure}", highlight=False)


@app.command()
def bench(
    peers: Annotated[bool, typer.Option(help="Measure PyEPO, PyTorch and Flower too (extra: dffl\\[peers]).")] = False,
    only: Annotated[str, typer.Option(help="Only the measurements whose name contains this text.")] = "",
    quick: Annotated[bool, typer.Option(help="Shorter repeats and smaller federations.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure speed and memory on this machine, beside the figures that we aim at.

    Example: dffl bench --only knapsack
    """
    with answering():
        from dffl.bench import run

        results = run(peers=peers, only=only, quick=quick, progress=False if quiet else None)
        if json_:
            typer.echo(json.dumps(results.as_json()))
        else:
            results.show(console())


@app.command()
def paper(
    out: Annotated[
        Path | None, typer.Option(help="Where rows, tables and figures go. Default: dffl-paper (-quick, -protocol).")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="A faithful small version: 32 configurations, one seed; about three minutes.")
    ] = False,
    protocol: Annotated[
        bool, typer.Option(help="Compare what the paper's silence allows, instead of the study itself.")
    ] = False,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[
        bool, typer.Option(help="Run nothing: tables and figures of what is finished, even of a run under way.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's synthetic study: every table and figure, beside the paper's own numbers.

    The whole grid is 2,560 configurations and takes hours; stop it at any time, and the same command goes on where it was.

    Example: dffl paper --quick

    Example: dffl paper --only problem=knapsack --only degree=2,4 --out knapsack
    """
    with answering():
        from dffl.studies import command

        options = command.Options(out, quick, protocol, only or [], workers, ray or None, show, figures)
        outcome = command.paper(options, progress=False if quiet else None)
        answer(outcome, json_)


@app.command("advice-study")
def advice_study(
    out: Annotated[Path | None, typer.Option(help="Where rows and tables go. Default: dffl-advice (-zones).")] = None,
    zones: Annotated[
        Path | None, typer.Option(help="Judge on the electricity zones in this folder instead of synthetic federations.")
    ] = None,
    only: Only = None,
    workers: Workers = None,
    ray: Ray = "",
    show: Annotated[bool, typer.Option(help="Run nothing: the tables of what is finished, even of a run under way.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge `dffl advise` where the truth is known: 432 synthetic federations, or real zones. Takes an hour.

    Example: dffl advice-study --only sizes=equal --only noise=0

    Example: dffl advice-study --zones FOLDER
    """
    with answering():
        from dffl.studies.advice_command import advice_study as judge
        from dffl.studies.command import Options

        options = Options(out, False, False, only or [], workers, ray or None, show, False)
        outcome = judge(options, zones, progress=False if quiet else None)
        answer(outcome, json_)


SOURCE_HELP = "demo, knapsack, portfolio, or the panel of an electricity market (see dffl energy)."
SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)]


@app.command()
def advise(
    source: SourceName = "demo",
    without: Without = None,
    seed: Seed = 0,
    folds: Annotated[int, typer.Option(help="In how many parts each client's samples are held out.")] = 5,
    blocks: Annotated[
        bool | None, typer.Option(help="Hold out consecutive samples, as time series need. Default: for zones.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often the interval is to hold the truth.")] = 0.9,
    rounds: Annotated[int, typer.Option(help="Federated rounds; fewer is quicker and worse.")] = 50,
    quick: Annotated[bool, typer.Option(help="Train nothing: a rough answer from cost models, in seconds.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell each client whether to federate: the expected gain, an interval, and the reason in plain words.

    Example: dffl advise demo

    Example: dffl advise portfolio --quick --json
    """
    with answering():
        from dffl.advice import advise as advise_clients
        from dffl.advice.display import show
        from dffl.sources import load

        found = load(source, seed, without or ())
        advice = advise_clients(
            found.federation, folds=folds, blocks=found.ordered if blocks is None else blocks, quick=quick,
            confidence=confidence, progress=False if quiet else None, seed=seed, rounds=rounds,
        )  # fmt: skip
        if json_:
            typer.echo(json.dumps(advice.as_json()))
        else:
            show(advice, found.title, console())


@app.command()
def bounds(
    source: SourceName = "demo",
    without: Without = None,
    seed: Seed = 0,
    delta: Annotated[float, typer.Option(help="The bounds hold with probability 1 - delta.")] = 0.05,
    search: Annotated[bool, typer.Option(help="Search for lower bounds on complexity and discrepancy (half a minute).")] = True,
    figure: Annotated[Path, typer.Option(help="Where to write the heat map.")] = Path("dffl-bounds.png"),
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """What the theory says about a federation: pairwise bounds, the terms of Theorem 2, and what of it is vacuous.

    Example: dffl bounds demo --figure bounds.png

    Example: dffl bounds portfolio --no-search --json
    """
    with answering():
        if not json_:
            require_folder(figure)
        from dffl.sources import load
        from dffl.theory.display import draw, show
        from dffl.theory.report import bounds as bound

        found = load(source, seed, without or ())
        report = bound(found.federation, delta=delta, search=search, progress=False if quiet else None, seed=seed)
        if json_:
            typer.echo(json.dumps(report.as_json()))
            return
        screen = console()
        show(report, found.title, screen)
        draw(report, figure, found.title)
        screen.print(f"\nHeat map: {figure}", highlight=False)


def main() -> Any:
    """The entry point of the command ``dffl``."""
    return app()
