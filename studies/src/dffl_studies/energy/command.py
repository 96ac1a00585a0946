"""`dffl energy`: electricity zones that buy the cheapest hours of tomorrow, from market files to a decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dffl.terminal import Json, Quiet, Report, Seed, Without, answer, answering, console, settings_of, shown_progress
from dffl_studies.options import AcceptVersions, Workers

if TYPE_CHECKING:
    from dffl_studies.energy.data import Panel
    from dffl_studies.energy.setup import Setup

energy = typer.Typer(
    help="Electricity zones that buy the cheapest of the next 24 hours: panels, the study, and a decision for tomorrow.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ROUNDS, SEEDS = 50, 5
"""The defaults of `dffl.Settings` and of the study, which are too slow to import for help."""
PanelFile = Annotated[
    Path, typer.Argument(metavar="PANEL", help="A panel (.csv, .csv.gz, .parquet), or a folder with prices and weather.")
]
Split = Annotated[str | None, typer.Option(help="The first test day. Default: the first day of the second half.")]
Lags = Annotated[bool, typer.Option(help="Also use past prices, which the paper does not.")]
Cost = Annotated[str, typer.Option(help="What an hour costs: total (its price), or total+own (the authors' choice).")]
WeatherLag = Annotated[
    int,
    typer.Option(
        min=0, max=366, help="Use the covariates of N days earlier; 0: of the day itself, as if forecasts were perfect."
    ),
]
Covariates = Annotated[
    str | None,
    typer.Option(help="The covariates, separated by commas, or all. Default: all of a panel; of a folder, those of the paper."),
]
DemandSeed = Annotated[int, typer.Option(help="The seed of the demands, if the panel has none.")]
Blocked = Annotated[
    bool, typer.Option("--blocked/--random-days", help="Choose by consecutive days that are held out, or random ones.")
]
From = Annotated[
    str | None, typer.Option("--from", help="The first day to use, such as 2020-05-01. Default: the panel's first.")
]
To = Annotated[str | None, typer.Option("--to", help="The last day to use. Default: the panel's last.")]
Rounds = Annotated[int, typer.Option(help="Federated rounds; fewer is quicker and worse.")]
Other = Annotated[
    list[str] | None, typer.Option("--set", help="Another setting of dffl.Settings, NAME=VALUE; may be repeated.")
]


@energy.command()
def run(
    panel: PanelFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the results. Default: dffl-energy- and the panel's name."),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="The paper's protocol: the training settings of its synthetic study (dffl paper), five seeds, one year whose "
            "first six months train, random days held out. Prints its Tables 4 and 5.",
        ),
    ] = False,
    market: Annotated[
        str | None,
        typer.Option(help="pjm: the prices are day-ahead prices of PJM. The paper's numbers are shown next to these only."),
    ] = None,
    first: From = None,
    last: To = None,
    split: Split = None,
    lags: Lags = False,
    blocked: Annotated[
        bool | None,
        typer.Option(
            "--blocked/--random-days",
            help="Choose by consecutive days that are held out, or random ones. Default: consecutive; random with "
            "--as-published.",
            show_default=False,
        ),
    ] = None,
    cost: Cost = "total",
    weather_lag: WeatherLag = 0,
    covariates: Covariates = None,
    without: Without = None,
    demand_seed: DemandSeed = 0,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="The number of seeds.")] = SEEDS,
    rounds: Rounds = ROUNDS,
    set_: Other = None,
    zone: Annotated[str | None, typer.Option(help="The zone of the calendar figure. Default: that with most regret.")] = None,
    workers: Workers = None,
    accept_versions: AcceptVersions = False,
    model: Annotated[bool, typer.Option(help="Train a model on all days, for dffl energy decide.")] = True,
    figures: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    show: Annotated[bool, typer.Option(help="Run nothing: show the tables of what is finished.")] = False,
    report: Report = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train every method on the first half of a panel and test it on the second half, zone by zone, beside naive rules.

    By default all zones take part in each round, and consecutive days are held out. With --as-published everything is as in
    the paper's energy study, whose training settings are those of its synthetic one. A run that was stopped continues with the
    same command.

    Example: dffl energy run panel.csv

    Example: dffl energy run pjm.csv --as-published --market pjm

    Example: dffl energy run panel.csv --lags --out with-past-prices --report report.html
    """
    with answering():
        from dffl_studies.energy.as_published import refuse_contradictions
        from dffl_studies.energy.compared import checked_market
        from dffl_studies.energy.running import run as run_study
        from dffl_studies.running.result import RunOptions

        known = checked_market(market)
        if as_published:
            contradictions = {
                "--lags": (lags, "uses no past prices"),
                "--split": (split is not None, "trains on the first six months"),
                "--blocked": (blocked is True, "holds out random days"),
                "--weather-lag": (weather_lag != 0, "uses the weather of the day itself"),
                "--covariates": (covariates is not None, "uses the covariates of the paper"),
                f"--seeds {seeds}": (seeds != SEEDS, f"has {SEEDS} seeds"),
                f"--rounds {rounds}": (rounds != ROUNDS, f"has {ROUNDS} rounds"),
            }
            refuse_contradictions(contradictions)
            blocked = False
        asked = _setup(
            split, lags, blocked is not False, cost, weather_lag, covariates, without, demand_seed, rounds, set_, first, last,
            as_published,
        )  # fmt: skip
        options = RunOptions(out, workers=workers, show=show, progress=shown_progress(quiet), accept_versions=accept_versions)
        answer(run_study(panel, asked, options, list(range(seeds)), zone, model, figures, report, known), json_)


@energy.command()
def train(
    panel: PanelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's file.")],
    method: Annotated[str, typer.Option(help="A method of dffl.fit, except for the oracles.")] = "finetune-mix",
    lags: Lags = False,
    blocked: Blocked = True,
    split: Annotated[
        str | None, typer.Option(help="The first test day of a second model, whose errors give the range of expected costs.")
    ] = None,
    first: From = None,
    last: To = None,
    cost: Cost = "total",
    weather_lag: WeatherLag = 0,
    covariates: Covariates = None,
    without: Without = None,
    demand_seed: DemandSeed = 0,
    rounds: Rounds = ROUNDS,
    set_: Other = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train one model on all the days of a panel, for dffl energy decide.

    Example: dffl energy train panel.csv --lags -o market.dffl
    """
    with answering():
        from dffl.archive import require_model_target
        from dffl_studies.energy.data.folder import panel_files

        require_model_target(out, "--out", panel_files(panel))
        from dffl_studies.energy.model import train as train_model
        from dffl_studies.energy.result import print_notes

        asked = _setup(
            split, lags, blocked, cost, weather_lag, covariates, without, demand_seed, rounds, set_, first, last
        )  # fmt: skip
        opened, screen = asked.open(str(panel)), console()
        print_notes(opened.notes, screen)
        train_model(opened, asked, method, seed, progress=shown_progress(quiet)).model.save(out)
        screen.print(f"{method} of {len(opened.names)} zones, {opened.days[0]} to {opened.days[-1]}: {out}")


@energy.command()
def decide(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What dffl energy run or train has written.")],
    features: Annotated[Path, typer.Option(help="A table with the date and the covariates of each day to decide for.")],
    zone: Annotated[str | None, typer.Option(help="The zone that decides. Default: every zone in the table.")] = None,
    past: Annotated[
        Path | None, typer.Option(help="Prices since the model was trained: zone, date, price_0 to price_23.")
    ] = None,
    json_: Json = False,
) -> None:
    """Print which hours a zone should buy, and what they are expected to cost.

    Example: dffl energy decide dffl-energy-example/model.dffl --zone Ashford --features tomorrow.csv
    """
    with answering():
        from dffl.storage import load
        from dffl_studies.energy.decide import decide as decide_days

        found = decide_days(load(model), zone, features, past)
        if json_:
            typer.echo(json.dumps([one.as_json() for one in found]))
            return
        for one in found:
            typer.echo(one.in_words())


@energy.command()
def panel(
    prices: Annotated[Path, typer.Option(help="Hourly prices: zone, date, hour, total.")],
    weather: Annotated[Path, typer.Option(help="Daily weather: zone, date, covariates.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The panel: .csv, .csv.gz or .parquet.")],
    zones: Annotated[Path | None, typer.Option(help="Places and demands: zone, lat, lon, demand.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns of the weather, separated by commas, or all. Default: those of the paper.")
    ] = None,
    without: Without = None,
) -> None:
    """Make a panel from a table of prices and one of weather. Missing and repeated hours are filled or averaged, and reported.

    Example: dffl energy panel --prices prices.csv.gz --weather weather.csv.gz --zones zones.csv -o panel.csv
    """
    with answering():
        from dffl_studies.energy.data.hourly import build_panel
        from dffl_studies.energy.data.panel import check_target

        check_target(out, [one for one in (prices, weather, zones) if one is not None])
        _written(build_panel(prices, weather, zones, _names(covariates), without or ()), out)


@energy.command()
def example(
    out: Annotated[Path, typer.Option("--out", "-o", help="The panel: .csv, .csv.gz or .parquet.")] = Path("example.csv"),
    seed: Seed = 0,
) -> None:
    """Write a synthetic panel of eight towns and one year, to try the other commands.

    Example: dffl energy example -o example.csv && dffl energy run example.csv
    """
    with answering():
        from dffl_studies.energy.data.example import example_panel
        from dffl_studies.energy.data.panel import check_target

        check_target(out)
        _written(example_panel(seed=seed), out)


@energy.command()
def fetch(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="eia, pjm (with a key in PJM_API_KEY), or authors.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The panel: .csv, .csv.gz or .parquet.")],
    market: Annotated[str, typer.Option(help="pjm, nyiso, miso, isone, ercot, caiso or spp.")] = "pjm",
    year: Annotated[int | None, typer.Option(help="A whole year, instead of --first and --last.")] = None,
    first: Annotated[str, typer.Option(help="The first day, such as 2025-01-01.")] = "",
    last: Annotated[str, typer.Option(help="The last day.")] = "",
    kind: Annotated[str, typer.Option(help="da (day-ahead) or rt (real-time).")] = "da",
    places: Annotated[Path | None, typer.Option(help="zone, lat, lon of zones that are not known here.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where downloads are kept. Default: the user's cache folder.")] = None,
    refresh: Annotated[bool, typer.Option(help="Ask the server again for files that may have changed.")] = False,
    prices_from: Annotated[str | None, typer.Option(help="The address of a mirror of the prices.")] = None,
    weather_from: Annotated[str | None, typer.Option(help="The address of a mirror of the weather.")] = None,
    quiet: Quiet = False,
) -> None:
    """Download prices and weather and make a panel from them; or download the panel of the paper's authors.

    Prices: the U.S. EIA's market files, or PJM's Data Miner 2. Weather: the Open-Meteo archive. Downloads are kept, and
    an interrupted download continues where it stopped.

    Example: dffl energy fetch eia --market nyiso --kind rt --year 2021 -o nyiso.csv

    Example: dffl energy fetch authors -o pjm.csv
    """
    with answering():
        from dffl_studies.energy.data.panel import check_target
        from dffl_studies.energy.fetch.market import FetchRequest, fetch_panel

        check_target(out)
        if year is not None and (first or last):
            raise ValueError("--year replaces --first and --last; give one or the other")
        if source != "authors" and year is None and not (first and last):
            raise ValueError("give --year, or --first and --last")
        span = (f"{year}-01-01", f"{year}-12-31") if year is not None else (first, last)
        request = FetchRequest(source, market, *span, kind, places, cache, refresh, prices_from, weather_from)
        check_target(out, request.inputs)
        _written(fetch_panel(request, progress=shown_progress(quiet)), out)


def _written(made: Panel, out: Path) -> None:
    """Write a panel, and print its notes and what it contains."""
    from dffl_studies.energy.result import print_notes

    made.write(out)
    screen = console()
    print_notes(made.notes, screen)
    days = f"{made.days[0]} to {made.days[-1]}"
    screen.print(f"{len(made.names)} zones, {days}, {', '.join(made.covariate_names)}: {out}")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _setup(
    split: str | None, lags: bool, blocked: bool, cost: str, weather_lag: int, covariates: str | None,
    without: list[str] | None, demand_seed: int, rounds: int, others: list[str] | None, first: str | None, last: str | None,
    published: bool = False,
) -> Setup:  # fmt: skip
    from dffl_studies.energy.as_published import published_settings
    from dffl_studies.energy.data.days import Days
    from dffl_studies.energy.setup import Setup

    names, settings, days = _names(covariates), settings_of(others), Days(first, last).checked()
    if rounds != ROUNDS:
        settings["rounds"] = rounds
    if published:
        settings = published_settings(settings)
    chosen = None if names is None else tuple(names)
    return Setup(
        split, lags, cost, weather_lag, chosen, tuple(without or ()), demand_seed, blocked, settings, *days, published
    )  # fmt: skip
