"""The study of decisions over time: how markets are read, what a backtest's rows are, the tables, and the command."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from dffl.time import backtest as library
from dffl_studies.time.command import time_study
from dffl_studies.time.markets import FORECASTS, abroad, pjm
from dffl_studies.time.study import judge_one, study
from dffl_studies.time.tables import all_tables, change, relative

DAYS = 150


def write_epf(folder: Path) -> Path:
    for seed, name in enumerate(("BE", "FR")):
        rng = np.random.default_rng(seed)
        hours = pd.date_range("2015-01-04", periods=24 * DAYS, freq="h")
        price = 40 + 10 * np.sin(np.arange(len(hours)) / 4) + rng.normal(0, 3, len(hours))
        columns = {column: price + rng.normal(0, 2, len(hours)) for column in FORECASTS.values()}
        pd.DataFrame({"Real price": price, **columns}, index=hours).to_csv(folder / f"forecasts_{name}.csv.gz")
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = write_epf(tmp_path_factory.mktemp("epf"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "CANDIDATES", ("ridge", ("ridge", {"penalty": 10.0})))
        made = judge_one(fleet="BE and FR, dnn", refit=14, window=28, seed=0, epf=str(folder))
    return made.assign(fleet="BE and FR, dnn")


def test_rows_are_sums_over_weeks(rows: pd.DataFrame) -> None:
    counts = rows.groupby(["client", "rule"])["days"].sum()
    assert set(counts) == {DAYS - DAYS // 2}
    assert set(rows["client"]) == {"BE", "FR"}
    assert {"forecast", "steady", "mean-7", "mix", "chosen"} <= set(rows["rule"])
    chosen = rows[rows["rule"] == "chosen"]
    assert (chosen["held"] <= chosen["ranged"]).all()
    assert chosen["ranged"].sum() > 0
    assert rows["week"].min() == 0


def test_changes_are_of_ratios_of_sums(rows: pd.DataFrame) -> None:
    made = pd.DataFrame(
        [("a", rule, week, lost, 10.0) for week in range(12) for rule, lost in (("chosen", 0.9), ("steady", 1.0))],
        columns=["client", "rule", "week", "regret", "best"],
    )
    assert change(made, "chosen", "steady") == pytest.approx((-10, -10, -10))
    assert relative(made)["steady"] == pytest.approx(0.1)
    middle, low, high = change(rows, "mix", "forecast")
    assert low <= middle <= high


def test_tables_compare_with_what_users_have(rows: pd.DataFrame) -> None:
    main, rules, advice = all_tables(rows)
    numbers = {cell.column: cell.ours.mean for cell in main.cells if cell.row == ("BE and FR, dnn", "second half")}
    losses = relative(rows)
    assert numbers["against forecast"] == pytest.approx(100 * (losses["chosen"] / losses["forecast"] - 1))
    assert 50 <= numbers["held, %"] <= 100
    assert {cell.row[0] for cell in rules.cells} >= {"mix", "forecast", "chosen"}
    assert {cell.row[0] for cell in advice.cells} == {"BE and FR, dnn", "all"}


def test_days_of_other_lengths(tmp_path: Path) -> None:
    """The hour that spring leaves out is interpolated, the one that autumn repeats is averaged."""
    lines = ["zone,date,hour,fold,total"]
    for date, hours in (
        ("2020-11-01", [0, 1, 1, *range(2, 24)]),
        ("2020-11-02", range(24)),
        ("2021-03-14", [0, 1, *range(3, 24)]),
    ):
        seen: list[int] = []
        for hour in hours:
            lines.append(f"AECO,{date},{hour},{seen.count(hour)},{hour + 10 * seen.count(hour)}")
            seen.append(hour)
    (tmp_path / "prices.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "zones.csv").write_text("zone,station,demand\nAECO,PHL,6\n")
    client = pjm(tmp_path)["AECO"]
    assert client.c.shape == (3, 24)
    assert client.c[0, :3].tolist() == [0, 6, 2]
    assert client.c[2].tolist() == list(range(24))


def test_prices_alone_bring_no_forecast(tmp_path: Path) -> None:
    folder = write_epf(tmp_path)
    assert not abroad(folder, None).has_forecast
    assert abroad(folder, "lear").has_forecast
    assert [job.parameters["fleet"] for job in study({"epf": folder}).jobs] == [
        "BE and FR, dnn", "BE and FR, lear", "BE and FR, prices only",
    ]  # fmt: skip


def test_the_command_needs_some_data(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(time_study)
    words = ["--epf", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words, env={"DFFL_ENERGY_DATA": None})
    assert found.exit_code != 0
    assert "there are no data: give at least one of --energy, --pjm and --epf" in found.output
