"""`dffl paper`, as a user calls it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl_studies.running import Store

PAPER = Path(__file__).parents[2] / "results" / "paper-authors"

ONE = ["--only", "problem=knapsack", "--only", "eta_obj=0", "--only", "eta_constr=0"]


def call(*arguments: str):
    return CliRunner().invoke(app, ["paper", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "out"
    answer = call("--quick", *ONE, "--out", folder, "--workers", 1, "--quiet")
    assert answer.exit_code == 0, answer.output
    assert "1 of 1 configurations, 0 failed" in answer.output
    assert "Interp-DFFL(SPO+)" in answer.output
    return folder


def test_it_leaves_rows_tables_and_figures(finished):
    names = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert {"study.json", "rows.parquet", "jobs.parquet", "tables/table2.md", "tables/table2.csv", "tables/table2.tex"} <= names
    assert {"figures/toy.png", "figures/means.png", "figures/winners.png"} <= names
    described = json.loads((finished / "study.json").read_text())
    assert described["study"] == "paper-quick"
    assert set(described["machine"]) >= {"processor", "cores", "python", "jax"}


def test_show_and_json_run_nothing(finished):
    before = (finished / "rows.parquet").stat().st_mtime_ns
    answer = call("--quick", "--show", "--json", "--no-figures", "--out", finished)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.output)
    assert (found["configurations"], found["finished"]) == (32, 1)
    assert found["core_hours"] > 0
    cell = next(c for c in found["tables"]["table2"] if c["method"] == "Local" and c["statistic"] == "mean")
    assert cell["paper"] == {"mean": 1.21, "sd": 0.15}
    assert 0.1 < cell["ours"]["mean"] < 5
    assert cell["ours"]["sd"] is None
    assert (finished / "rows.parquet").stat().st_mtime_ns == before


def test_show_of_what_is_not_finished_writes_nothing(finished):
    before = sorted(finished.rglob("*"))
    answer = call("--quick", "--show", "--out", finished, "--only", "problem=portfolio")
    assert answer.exit_code == 3
    assert "no configuration of these is finished yet" in answer.stderr
    assert sorted(finished.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--show", "--out", "nowhere"], "nowhere: holds no study"),
        (["--quick", "--variants"], "--quick, --variants and --authors are different studies; ask for one of them"),
        (["--show", "--workers", 2], "--show runs nothing"),
        (["--only", "colour=red"], "--only must be NAME=VALUE"),
        (["--only", "degree=3"], "--only degree: must be among 2, 4, 6, 8, found 3"),
        (["--workers", 0], "workers must be"),
        (["--methods", "ditto", "--show"], "--methods says what to run; leave --show out"),
        (["--methods", "ditto", "--variants"], "--methods says what to run; leave --variants out"),
        (["--methods", "local,dito"], "unknown method 'dito'"),
        (["--methods", ""], "unknown method ''"),
        (["--ray", "somewhere"], "--ray must be 'auto' or HOST:PORT"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    answer = call(*arguments)
    assert answer.exit_code == 3
    assert answer.stderr.startswith("dffl: ")
    assert answer.stderr.count("\n") == 1
    assert message in answer.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", [[], ["--show"]])
def test_a_folder_of_another_study_is_refused(finished, how):
    answer = call("--out", finished, *how)
    assert answer.exit_code == 3
    assert "holds another run (study = 'paper-quick' there and 'paper' here)" in answer.stderr


@pytest.fixture
def began_with_0_1_0(tmp_path) -> Path:
    """A copy of the results of the repository, which version 0.1.0 made with eight methods."""
    if not PAPER.exists():
        pytest.skip("needs the results of the repository")
    shutil.copytree(PAPER, tmp_path / "paper", ignore=shutil.ignore_patterns("tables", "figures"))
    return tmp_path / "paper"


def test_rows_of_another_version_are_not_added_to_by_mistake(began_with_0_1_0):
    folder = began_with_0_1_0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for more in ([], ["--methods", "ditto"], ["--only", "noise=1"]):
        answer = call("--authors", "--out", folder, *more)
        assert answer.exit_code == 3
        assert answer.stderr == (
            f"dffl: {folder}: holds rows of dffl 0.1.0 (1,440 configurations), and this is {dffl.__version__}, whose "
            "numbers may differ; add to them with --accept-versions (accept_versions=True), or choose another folder\n"
        )
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == before


@pytest.mark.slow
def test_the_results_of_the_repository_are_shown(began_with_0_1_0):
    answer = call("--authors", "--show", "--no-figures", "--out", began_with_0_1_0)
    assert answer.exit_code == 0, answer.output
    assert "1440 of 2560 configurations, 0 failed" in answer.output
    assert "None has local-tuned, crossfit.\nRun the same command again for the rest." in answer.output
    for name in ("table1.md", "noise.csv", "by-seed.csv"):
        assert (began_with_0_1_0 / "tables" / name).read_text() == (PAPER / "tables" / name).read_text()


@pytest.mark.slow
def test_methods_are_added_to_a_folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "out")
    answer = call("--quick", *ONE, "--methods", "local,nearest", "--out", tmp_path / "out", "--workers", 1, "--json", "--quiet")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.output)
    assert found["values"]["nearest"] == 1
    assert found["versions"] == {dffl.__version__: 1}
    before, after = (Store(folder).rows() for folder in (finished, tmp_path / "out"))
    assert after["method"].unique().tolist() == [*before["method"].unique(), "nearest"]
    pd.testing.assert_frame_equal(after[after["method"] != "nearest"].reset_index(drop=True), before)


def test_interrupted_it_says_how_far_it_came(tmp_path):
    command = [sys.executable, "-m", "dffl", "paper", "--quick", "--out", str(tmp_path / "out"), "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not (tmp_path / "out" / "study.json").exists() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        errors = process.stderr.read()
    assert process.returncode == 130
    assert errors.count("\n") == 1
    assert "of 32 configurations are finished in" in errors
