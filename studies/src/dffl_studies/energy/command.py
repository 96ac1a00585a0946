"""`dffl energy`: electricity zones that buy the cheapest hours of tomorrow, from market files to a decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dffl.terminal import Json, Quiet, Report, Seed, Without, answer, answering, console, settings_of, shown_progress
from dffl_studies.options import AcceptVersions, Only, Workers

if TYPE_CHECKING:
    from dffl_studies.energy.data import Panel
    from dffl_studies.energy.preset import Preset
    from dffl_studies.energy.setup import Setup

energy = typer.Typer(
    help="Electricity zones that decide for the periods of tomorrow: any market, backtests, and a decision.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SEEDS, PAPERS_SEEDS = 1, 5
"""The default number of seeds, and that of the paper's protocol."""
PanelFile = Annotated[
    Path,
    typer.Argument(
        metavar="PANEL",
        help="A panel or a table of prices (.csv, .csv.gz, .parquet), a file of ENTSO-E or Energy-Charts, or a folder.",
    ),
]
Split = Annotated[str | None, typer.Option(help="The first test day. Default: the first day of the later half.")]
Cost = Annotated[str, typer.Option(help="What a period costs: total (its price), or total+own (the authors' choice).")]
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
From = Annotated[
    str | None, typer.Option("--from", help="The first day to use, such as 2020-05-01. Default: the panel's first.")
]
To = Annotated[str | None, typer.Option("--to", help="The last day to use. Default: the panel's last.")]
Rounds = Annotated[int | None, typer.Option(help="Federated rounds of a training; fewer is quicker and worse.")]
Other = Annotated[
    list[str] | None, typer.Option("--set", help="Another setting of dffl.Settings, NAME=VALUE; may be repeated.")
]
Currency = Annotated[
    str | None, typer.Option(help="The currency of the prices, such as EUR, or the one to convert to. Default: the file's.")
]
Unit = Annotated[str | None, typer.Option(help="What a price is for. Default: the file's, or MWh.")]
Rates = Annotated[
    Path | None, typer.Option(help="A table with the columns currency and rate: what each is worth in --currency.")
]
Forecast = Annotated[
    str | None, typer.Option(help="The column of a published forecast to start from, in a file of epftoolbox: 'DNN Ensemble'.")
]
Decisions = Annotated[
    Path | None, typer.Option(help="A small TOML: what each zone decides (a block, a battery, a flexible load, ...).")
]
Methods = Annotated[
    str | None, typer.Option(help="What is trained, separated by commas. Default: the networks of dffl.backtest.")
]
Refit = Annotated[int, typer.Option(min=1, max=3660, help="Days from one training to the next.")]


@energy.command()
def run(
    panel: PanelFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder of the results. Default: dffl-energy- and the panel's name.")
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
    cost: Cost = "total",
    weather_lag: WeatherLag = 0,
    covariates: Covariates = None,
    without: Without = None,
    demand_seed: DemandSeed = 0,
    currency: Currency = None,
    unit: Unit = None,
    rates: Rates = None,
    forecast: Forecast = None,
    decisions: Decisions = None,
    methods: Methods = None,
    refit: Refit = 28,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="The number of seeds. Default: 1; with --as-published 5.")
    ] = None,
    rounds: Rounds = None,
    set_: Other = None,
    workers: Workers = None,
    accept_versions: AcceptVersions = False,
    model: Annotated[bool, typer.Option(help="Train a model on all days, for dffl energy decide.")] = True,
    figures: Annotated[bool, typer.Option(help="Draw the figures of --as-published.")] = True,
    show: Annotated[bool, typer.Option(help="Run nothing: show the tables of what is finished.")] = False,
    report: Report = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Decide every day of the later half of a market by models and by naive rules, each with what was known before it.

    Prices alone are enough; weather, load and forecasts are used where they are there. The first line says what to use, and
    what it saves in a year. A run that was stopped continues with the same command.

    Example: dffl energy run panel.csv

    Example: dffl energy run prices.csv --currency EUR --decisions zones.toml --report report.html

    Example: dffl energy run pjm.csv --as-published --market pjm
    """
    with answering():
        from dffl_studies.energy.published import checked_market
        from dffl_studies.running.result import RunOptions

        known, options = checked_market(market), _preset_options(locals())
        how = RunOptions(out, workers=workers, show=show, progress=shown_progress(quiet), accept_versions=accept_versions)
        if as_published:
            from dffl_studies.energy.study import run as run_published

            setup = _published(options, seeds, report)
            answer(run_published(panel, setup, how, list(range(PAPERS_SEEDS)), figures, known), json_)
            return
        from dffl_studies.energy.market_result import run as run_market

        answer(run_market(panel, _preset(options), how, list(range(seeds or SEEDS)), model, report), json_)


@energy.command()
def study(
    zones: Annotated[
        Path | None, typer.Option(help="Zones of 2021: a folder with prices, weather and zones.", envvar="DFFL_ENERGY_DATA")
    ] = None,
    pjm: Annotated[Path | None, typer.Option(help="PJM, 2020 and 2021: a folder of the same layout.")] = None,
    epf: Annotated[Path | None, typer.Option(help="Published forecasts: a folder with forecasts_BE.csv.gz and _FR.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder of rows and tables.")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="The number of seeds.")] = 3,
    only: Only = None,
    workers: Workers = None,
    show: Annotated[bool, typer.Option(help="Run nothing: tables of what is finished.")] = False,
    accept_versions: AcceptVersions = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge real markets on every half-year: chosen rules against naive rules, and models that are shared against models alone.

    It takes about an hour on two cores; stop it at any time, and the same command continues.

    Example: dffl energy study --zones data/energy --pjm data/pjm --epf data/epf
    """
    with answering():
        from dffl_studies.energy.half_year_tables import judged
        from dffl_studies.running.result import RunOptions

        options = RunOptions(out, only or [], workers, None, show, shown_progress(quiet), accept_versions)
        answer(judged(options, {"zones": zones, "pjm": pjm, "epf": epf}, list(range(seeds))), json_)


@energy.command()
def train(
    panel: PanelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's file.")],
    method: Annotated[
        str | None,
        typer.Option(help="A rule: steady, mean-7, fedavg, fedavg+steady, mix, ... Default: the one that a backtest chooses."),
    ] = None,
    split: Split = None,
    first: From = None,
    last: To = None,
    cost: Cost = "total",
    weather_lag: WeatherLag = 0,
    covariates: Covariates = None,
    without: Without = None,
    demand_seed: DemandSeed = 0,
    currency: Currency = None,
    unit: Unit = None,
    rates: Rates = None,
    forecast: Forecast = None,
    decisions: Decisions = None,
    methods: Methods = None,
    refit: Refit = 28,
    rounds: Rounds = None,
    set_: Other = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train one rule on all the days of a panel, for dffl energy decide.

    Example: dffl energy train panel.csv --method mix -o market.dffl
    """
    with answering():
        from dffl.archive import require_model_target
        from dffl_studies.energy.data.folder import panel_files

        require_model_target(out, "--out", panel_files(panel))
        from dffl_studies.energy.model import train as train_model
        from dffl_studies.energy.study import print_notes

        preset = _preset(_preset_options(locals()))
        market, screen = preset.market(panel), console()
        print_notes(market.panel.notes, screen)
        chosen = train_model(market, preset, method, seed, progress=shown_progress(quiet))
        chosen.save(out)
        rule, days = chosen.about["energy"]["rule"], market.panel.days
        screen.print(f"{rule} of {len(market.panel.names)} zones, {days[0]} to {days[-1]}: {out}")


@energy.command()
def newcomer(
    panel: PanelFile,
    zone: Annotated[list[str] | None, typer.Option(help="A zone to leave out; may be repeated. Default: each in turn.")] = None,
    split: Split = None,
    without: Without = None,
    demand_seed: DemandSeed = 0,
    currency: Currency = None,
    rounds: Rounds = None,
    set_: Other = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder for the regrets, the table and its figure.")] = None,
    json_: Json = False,
) -> None:
    """Leave a zone out of training, give it its last 3 to 60 days, and say until when the others' model is better.

    Example: dffl energy newcomer panel.csv --zone Ashford
    """
    with answering():
        from dffl_studies.energy.newcomers import newcomers
        from dffl_studies.energy.preset import Preset

        settings = settings_of(set_) | ({} if rounds is None else {"rounds": rounds})
        shared = {"split": split, "without": tuple(without or ()), "demand_seed": demand_seed, "currency": currency}
        preset = Preset(**shared, settings=settings)  # type: ignore[arg-type]
        market = preset.market(panel)
        result = newcomers(market, preset, zone or list(market.panel.names), seed)
        if out is not None:
            result.write(out)
        answer(result, json_)


@energy.command()
def decide(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What dffl energy run or train has written.")],
    features: Annotated[Path, typer.Option(help="A table with the date and the covariates of each day to decide for.")],
    zone: Annotated[str | None, typer.Option(help="The zone that decides. Default: every zone in the table.")] = None,
    past: Annotated[Path | None, typer.Option(help="The days since the model was trained: zone, date, price_0, ...")] = None,
    json_: Json = False,
) -> None:
    """Print in which periods a zone should buy, where its demand comes from, and what that is expected to cost.

    Example: dffl energy decide dffl-energy-example/model.dffl --zone Ashford --features tomorrow.csv
    """
    with answering():
        import dffl
        from dffl_studies.energy.decide import decide as decide_days

        decided = decide_days(dffl.load(model), zone, features, past)
        if json_:
            typer.echo(json.dumps([day.as_json() for day in decided]))
            return
        for day in decided:
            typer.echo(day.in_words())


@energy.command()
def panel(
    prices: Annotated[Path, typer.Option(help="Prices: zone, date, hour (and minute, or period), total.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The panel: .csv, .csv.gz or .parquet.")],
    weather: Annotated[Path | None, typer.Option(help="Daily weather: zone, date, covariates.")] = None,
    zones: Annotated[Path | None, typer.Option(help="Places and demands: zone, lat, lon, demand.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns of the weather, separated by commas, or all. Default: those of the paper.")
    ] = None,
    without: Without = None,
    currency: Currency = None,
    unit: Unit = None,
    rates: Rates = None,
) -> None:
    """Make a panel from a table of prices and one of weather. Missing and repeated hours are filled or averaged, and reported.

    Example: dffl energy panel --prices prices.csv.gz --weather weather.csv.gz --zones zones.csv -o panel.csv
    """
    with answering():
        from dffl_studies.energy.data.hourly import build_panel
        from dffl_studies.energy.data.money import Money
        from dffl_studies.energy.data.panel import check_target

        check_target(out, [source for source in (prices, weather, zones, rates) if source is not None])
        money = Money(currency, unit, rates)
        _written(build_panel(prices, weather, zones, _names(covariates), without or (), money=money), out)


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


def _written(panel: Panel, out: Path) -> None:
    """Write a panel, and print its notes and what it contains."""
    from dffl_studies.energy.study import print_notes

    panel.write(out)
    screen = console()
    print_notes(panel.notes, screen)
    days = f"{panel.days[0]} to {panel.days[-1]}"
    screen.print(f"{len(panel.names)} zones, {days}, {', '.join(panel.covariate_names)}: {out}")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


SHARED = (
    "split", "cost", "weather_lag", "covariates", "without", "demand_seed", "first", "last", "currency", "unit", "rates",
    "forecast", "decisions", "methods", "refit", "rounds", "set_",
)  # fmt: skip


def _preset_options(typed: dict[str, Any]) -> dict[str, Any]:
    """The options that run and train share, checked as far as they are texts."""
    from dffl_studies.energy.input_table import Days

    options = {name: typed[name] for name in SHARED}
    settings = settings_of(options.pop("set_"))
    if (rounds := options.pop("rounds")) is not None:
        settings["rounds"] = rounds
    first, last = Days(options["first"], options["last"]).checked()
    lists = {"covariates": _names(options["covariates"]), "methods": _names(options["methods"])}
    lists |= {"without": tuple(options["without"] or ())}
    for name in ("covariates", "methods"):
        if lists[name] == ():
            raise ValueError(f"--{name} must name at least one, found none")
    paths = {name: None if options[name] is None else str(options[name]) for name in ("rates", "decisions")}
    return options | lists | paths | {"first": first, "last": last, "settings": settings}


def _preset(options: dict[str, Any]) -> Preset:
    from dffl_studies.energy.preset import Preset

    for name in ("rates", "decisions"):
        if options[name] is not None and not Path(options[name]).is_file():
            raise ValueError(f"--{name} must name a file, found {options[name]!r}")
    return Preset(**options)


def _published(options: dict[str, Any], seeds: int | None, report: Path | None) -> Setup:
    """The paper's protocol, with the options that do not contradict it."""
    from dffl_studies.energy.setup import Setup, published_settings, refuse_contradictions

    rounds = options["settings"].get("rounds", 50)
    contradictions = {
        "--split": (options["split"] is not None, "trains on the first six months"),
        "--weather-lag": (options["weather_lag"] != 0, "uses the weather of the day itself"),
        "--covariates": (options["covariates"] is not None, "uses the covariates of the paper"),
        f"--seeds {seeds}": (seeds not in (None, PAPERS_SEEDS), f"has {PAPERS_SEEDS} seeds"),
        f"--rounds {rounds}": (rounds != 50, "has 50 rounds"),
        "--report": (report is not None, "writes tables and figures"),
    }
    for name in ("currency", "unit", "rates", "forecast", "decisions", "methods"):
        contradictions[f"--{name}"] = (options[name] is not None, "has the paper's market, decisions and methods")
    refuse_contradictions(contradictions)
    shared = {name: options[name] for name in ("cost", "without", "demand_seed", "first", "last")}
    return Setup(**shared, blocked=False, settings=published_settings(options["settings"]), published=True)
