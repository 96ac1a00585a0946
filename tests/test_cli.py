"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

METHODS = {"mean-cost", "local", "fedavg", "interp-mse", "interp-spo", "finetune"}


def dffl(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dffl", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def test_help_is_quick_because_it_loads_neither_jax_nor_pandas(tmp_path: Path) -> None:
    code = "import sys, dffl.cli; print([m for m in ('jax', 'pandas', 'numpy', 'matplotlib') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
    answer = dffl("--help", cwd=tmp_path)
    assert answer.returncode == 0
    for command in ("demo", "bench", "paper", "advise", "bounds", "advice-study"):
        assert command in answer.stdout
        assert "Example: dffl" in dffl(command, "--help", cwd=tmp_path).stdout


def test_demo_prints_for_people_and_draws(tmp_path: Path) -> None:
    answer = dffl("demo", "--rounds", "2", "--figure", "here.png", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "client-20" in answer.stdout
    assert "clients harmed" in answer.stdout
    assert (tmp_path / "here.png").stat().st_size > 20_000


def test_demo_prints_json_for_programs(tmp_path: Path) -> None:
    answer = dffl("demo", "--json", "--rounds", "2", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert set(result) == {"clients", "summary", "seconds"}
    assert [client["n"] for client in result["clients"]] == [500] * 10 + [50] * 10
    for client in result["clients"]:
        assert set(client) == {"name", "n", "relative_regret", "lambda"}
        assert set(client["relative_regret"]) == METHODS
        assert 0 <= client["lambda"] <= 1
    assert set(result["summary"]) == METHODS
    assert set(result["summary"]["local"]) == {"mean", "median", "p75", "p90", "max"}
    local = [client["relative_regret"]["local"] for client in result["clients"]]
    assert result["summary"]["local"]["mean"] == pytest.approx(sum(local) / 20)
    assert not list(tmp_path.iterdir())


def test_advise_answers_people_and_programs(tmp_path: Path) -> None:
    answer = dffl("advise", "demo", "--rounds", "1", "--folds", "3", "--json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert len(result["clients"]) == 20
    assert {"recommendation", "gain", "gain_low", "gain_high", "reason", "use"} <= set(result["clients"][0])
    told = dffl("advise", "knapsack", "--quick", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "Why" in told.stdout
    assert "client-20: " in told.stdout
    assert "mean cost" in told.stdout
    assert not list(tmp_path.iterdir())


def test_bounds_answers_people_and_programs(tmp_path: Path) -> None:
    answer = dffl("bounds", "demo", "--no-search", "--figure", "heat.png", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "vacuous" in answer.stdout
    assert "certified at known costs" in answer.stdout
    assert (tmp_path / "heat.png").stat().st_size > 20_000
    plain = dffl("bounds", "portfolio", "--no-search", "--json", cwd=tmp_path)
    assert len(json.loads(plain.stdout)["pairs"]) == 190


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["advise", "nowhere"], "SOURCE must be demo, knapsack, portfolio, or a market"),
        (["advise", "demo", "--confidence", "2"], "confidence must be in (0, 1), found 2.0"),
        (["advise", "demo", "--folds", "60"], "client 'client-11': x must have at least 120 samples"),
        (["bounds", "demo", "--delta", "0"], "delta must be in (0, 1), found 0.0"),
        (["bounds", "demo", "--figure", "no/where.png"], "--figure must name a file in a folder that exists"),
    ],
)
def test_bad_questions_get_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    answer = dffl(*arguments, cwd=tmp_path)
    assert answer.returncode == 3
    assert message in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["demo", "--rounds", "0"], 3, "dffl: rounds must be a whole number >= 1, found 0"),
        (["demo", "--seed", "-1"], 3, "dffl: seed must be a whole number from 0"),
        (["demo", "--figure", "nowhere/x.png"], 3, "dffl: --figure must name a file in a folder that exists"),
        (["demo", "--rounds", "many"], 2, "Invalid value"),
        (["bench", "--only", "nothing at all"], 3, "dffl: no measurement's name contains 'nothing at all'"),
        (["unknown"], 2, "No such command"),
    ],
)
def test_bad_input_ends_with_one_line_and_a_code_of_its_own(arguments: list[str], code: int, line: str, tmp_path: Path) -> None:
    answer = dffl(*arguments, cwd=tmp_path)
    assert answer.returncode == code
    assert line in answer.stderr
    assert "Traceback" not in answer.stderr
    if code == 3:
        assert len(answer.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_at_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dffl", "demo", "--rounds", "100000"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "dffl: interrupted"
    assert not list(tmp_path.iterdir())
