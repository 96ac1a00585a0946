"""Advice where rows have an order: by what a backtest has lost, for the rows to come."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl.advice.over_time import ALONE, TOGETHER, AdviceOverTime, Expected, _rows, expected, settle
from dffl.advice.record import Record, alone_candidates
from dffl.cli import app


def test_the_interval_is_for_rows_to_come() -> None:
    """Rows without memory: the later mean is inside as often as stated, or more, and the past one alone would be too narrow."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(100):
        theirs, mine = rng.gamma(4, size=180), rng.gamma(3.6, size=180)
        told = expected(mine[:90], theirs[:90])
        held.append(told.low <= 1 - mine[90:].sum() / theirs[90:].sum() <= told.high)
    assert np.mean(held) >= 0.9
    assert told.high - told.low < 0.6


def test_nothing_lost_and_equal_rules_are_known_to_be_the_same() -> None:
    lost = np.random.default_rng(0).gamma(4, size=60)
    assert expected(lost, lost).same
    assert expected(np.zeros(60), np.zeros(60)).same
    assert math.isnan(expected(lost, np.zeros(60)).value)
    assert math.isnan(expected(lost[:2], 1.1 * lost[1::-1]).low)  # too few


CLEAR, BAD = Expected(0.2, 0.1, 0.3, 0.99), Expected(-0.2, -0.3, -0.1, 0.01)
OPEN, NONE = Expected(0.1, -0.2, 0.4, 0.7), Expected(0.0, 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("gain", "joining", "now", "answer", "deploy"),
    [
        (CLEAR, CLEAR, "forecast", "federate", TOGETHER),
        (CLEAR, BAD, "forecast", "stay local", ALONE),
        (CLEAR, NONE, "forecast", "stay local", ALONE),
        (CLEAR, OPEN, "forecast", "cannot tell", TOGETHER),
        (OPEN, CLEAR, "forecast", "cannot tell", "forecast"),
        (BAD, CLEAR, "forecast", "keep your forecast", "forecast"),
        (NONE, NONE, "steady", "use the moving average", "steady"),
        (Expected(0.1, math.nan, math.nan, math.nan), OPEN, "steady", "cannot tell", "steady"),
    ],
)
def test_every_answer(gain: Expected, joining: Expected, now: str, answer: str, deploy: str) -> None:
    assert settle(gain, joining, TOGETHER, now) == (answer, deploy)


def test_a_row_says_what_was_measured() -> None:
    rng = np.random.default_rng(0)
    own = rng.gamma(4, size=200)
    lost = {TOGETHER: 0.5 * own, ALONE: 0.8 * own, "forecast": own, "mean-7": 2 * own, "mean-14": 3 * own}
    one = Record("north", np.arange(200.0), lost, np.full(200, 100.0), {TOGETHER: "mix", ALONE: "local"})
    [row] = _rows([one], 0.9)
    assert (row["recommendation"], row["deploy"], row["now"], row["naive_rule"]) == ("federate", "mix", "forecast", "mean-7")
    np.testing.assert_allclose((row["gain"], row["joining_gain"]), (0.5, 0.375))
    assert "your forecast" in row["reason"]


def test_what_a_client_trains_alone_needs_no_others() -> None:
    assert [one if isinstance(one, str) else one[0] for one in alone_candidates()] == [
        "local", "local", "ridge", "ridge", "ridge", "local-tuned",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_file_with_an_order_is_advised_by_a_backtest(tmp_path: Path) -> None:
    """A forecast that is nearly right is kept; without an order, or with --blocks, folds are compared as before."""
    rng = np.random.default_rng(0)
    text = '[federation]\nfeatures = ["temp"]\ncosts = "price_*"\nforecast = "mine_*"\norder = "day"\n[training]\nrounds = 1\n'
    for name in ("north", "south"):
        prices = 30 + rng.normal(0, 4, (130, 4))
        columns = {"day": pd.date_range("2024-01-01", periods=130).strftime("%Y-%m-%d"), "temp": rng.normal(size=130)}
        columns |= {f"price_{i}": prices[:, i] for i in range(4)}
        columns |= {f"mine_{i}": prices[:, i] + rng.normal(0, 0.5, 130) for i in range(4)}
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
        text += f'[[client]]\nname = "{name}"\ntable = "{name}.csv"\nset = {{ type = "top-k", k = 1 }}\n'
    (tmp_path / "federation.toml").write_text(text)
    done = CliRunner().invoke(app, ["advise", str(tmp_path / "federation.toml"), "--json", "-q"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["clients"]
    assert {row["recommendation"] for row in rows} <= {"keep your forecast", "cannot tell"}
    assert {row["deploy"] for row in rows} == {"forecast"}
    shown = CliRunner().invoke(app, ["advise", str(tmp_path / "federation.toml"), "-q"])
    assert shown.stdout.startswith("Advice: ")
    assert "what you have now" in shown.stdout


@pytest.mark.slow
def test_clients_with_times_are_advised_by_a_backtest_in_python() -> None:
    rng, days = np.random.default_rng(0), np.datetime64("2024-01-01") + np.arange(130)
    clients = [
        dffl.Client(name, rng.normal(size=(130, 1)), 20 + rng.normal(size=(130, 4)), dffl.TopK(4, 1), times=days)
        for name in ("north", "south")
    ]
    found = dffl.advise(dffl.Federation(clients), rounds=1, progress=False)
    assert isinstance(found, AdviceOverTime)
    assert set(found.table["now"]) <= {"mean-7", "mean-14", "mean-28", "steady"}
    assert found["north"]["n"] == 65
