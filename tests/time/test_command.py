"""`dffl backtest` on a federation's file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app

TOML = """
[federation]
features = ["temp"]
costs = "price_*"
{order}
{forecast}
[[client]]
name = "north"
table = "north.csv"
set = {{ type = "top-k", k = 2 }}
[[client]]
name = "south"
table = "south.csv"
set = {{ type = "top-k", k = 1 }}
"""
DATES = 'order = "day"'


def write(folder: Path, order: str = DATES, error: float | None = None, rows: int = 150, numbers: bool = False) -> Path:
    for seed, name in enumerate(("north", "south")):
        rng = np.random.default_rng(seed)
        costs = 30 + 8 * np.sin(np.arange(4) + np.cumsum(rng.normal(0, 0.1, rows))[:, None]) + rng.normal(0, 1, (rows, 4))
        day = np.arange(rows) if numbers else pd.date_range("2021-01-04", periods=rows).strftime("%Y-%m-%d")
        frame = pd.DataFrame(costs, columns=[f"price_{hour}" for hour in range(4)])
        frame.insert(0, "day", day)
        frame["temp"] = rng.normal(size=rows)
        if error is not None:
            frame[[f"mine_{hour}" for hour in range(4)]] = costs + rng.normal(0, error, costs.shape)
        frame.to_csv(folder / f"{name}.csv", index=False)
    path = folder / "federation.toml"
    path.write_text(TOML.format(order=order, forecast="" if error is None else 'forecast = "mine_*"'))
    return path


def call(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, ["backtest", *(str(word) for word in words), "-q"])
    assert found.exit_code == code, (found.output, found.exception)
    assert "Traceback" not in found.output
    return found.output if code else found.stdout


def test_json_covers_the_rows_from_the_date_on(tmp_path: Path) -> None:
    words = (write(tmp_path), "--from", "2021-05-04", "--refit", "20", "--window", "20", "--method", "ridge", "--json")
    found = json.loads(call(*words))
    assert (found["from"], found["refits"]) == ("2021-05-04", 2)
    assert {"mean-7", "mean-14", "mean-28", "steady", "ridge", "ridge+steady"} == set(found["rules"])
    assert set(found["ranges"]) == {"north", "south"}
    assert found["chosen"]["rules"]["north"][0][0] == "2021-05-04"


def test_the_first_sentence_names_a_good_forecast(tmp_path: Path) -> None:
    said = call(write(tmp_path, error=0.05), "--method", "ridge", "--window", "28")
    assert said.startswith("Your own forecast loses least (")
    assert "Keep using your forecast." in said


def test_an_order_of_numbers(tmp_path: Path) -> None:
    found = json.loads(call(write(tmp_path, numbers=True), "--from", "100", "--method", "ridge", "--json"))
    assert found["from"] == "100"


@pytest.mark.parametrize("error", [0.0, 1e-4])
def test_a_forecast_that_is_the_costs_is_noted(tmp_path: Path, error: float) -> None:
    """Also rounded, or in another unit: it decides perfectly, until it is used."""
    found = json.loads(call(write(tmp_path, error=error), "--method", "ridge", "--json"))
    [note] = [note for note in found["notes"] if "client 'north'" in note]
    assert "its column 'mine_0' equals the cost 'price_0' in every row, but for its unit or rounding; is it known" in note


@pytest.mark.parametrize(
    ("made", "words", "message"),
    [
        ({"order": ""}, (), "federation.order: is missing; write order ="),
        ({}, ("--refit", 500), "refit must be at most 75"),
        ({}, ("--from", "2021-01-09"), "start must be 2021-03-01 or later, found 2021-01-09"),
        ({}, ("--from", "soon"), "start must be a date such as 2024-09-01, found 'soon'"),
        ({"rows": 50}, (), "client 'north': a backtest needs more than 56 rows, found 50"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, made: dict, words: tuple, message: str) -> None:
    said = call(write(tmp_path, **made), *words, code=3)
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_equal_keys_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    frame = pd.read_csv(tmp_path / "south.csv")
    frame.loc[3, "day"] = frame.loc[2, "day"]
    frame.to_csv(tmp_path / "south.csv", index=False)
    said = call(path, code=3)
    assert f"{tmp_path / 'south.csv'}, line 5, column 'day': two rows are of 2021-01-06, this one and line 4" in said
