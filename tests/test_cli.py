"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from dffl import Federation, advise, bounds
from dffl.advice.display import AdviceShown
from dffl.terminal import printable
from dffl.theory.display import draw
from tests.federations import client as dffl_client
from tests.federations import feasible_sets

COMMAND = (sys.executable, "-m", "dffl")
SEEDED = [[*command, "--seed", seed] for command in (["demo"], ["advise"], ["bounds"]) for seed in ("-1", str(2**63))]
METHODS = {"mean-cost", "local", "local-tuned", "fedavg", "interp-mse", "interp-spo", "finetune", "crossfit"}


def dffl(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_help_is_quick_because_it_loads_neither_jax_nor_pandas(tmp_path: Path) -> None:
    code = "import sys, dffl.cli; print([m for m in ('jax', 'pandas', 'numpy', 'matplotlib') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
    answer = dffl("--help", cwd=tmp_path)
    assert answer.returncode == 0
    for command in ("demo", "bench", "paper", "advise", "bounds", "advice-study", "privacy-study"):
        assert command in answer.stdout
        assert "Example: dffl" in dffl(command, "--help", cwd=tmp_path).stdout


def test_demo_prints_for_people_and_draws(tmp_path: Path) -> None:
    answer = dffl("demo", "--rounds", "2", "--figure", "here.png", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "client-20" in answer.stdout
    said = " ".join(answer.stdout.split())  # lines are as long as the terminal is wide
    assert all(words in said for words in ("single run", "local-tuned", "Harmed: regret more than 1 % higher"))
    assert max(map(len, answer.stdout.partition("Over all 20 clients")[2].partition("Read: ")[0].splitlines())) <= 100
    assert (tmp_path / "here.png").stat().st_size > 20_000


@pytest.mark.slow
def test_demo_prints_json_for_programs(tmp_path: Path) -> None:
    answer = dffl("demo", "--json", "--rounds", "2", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert set(result) == {"clients", "summary", "seconds"}
    assert [client["n"] for client in result["clients"]] == [500] * 10 + [50] * 10
    for client in result["clients"]:
        assert set(client) == {"name", "n", "relative_regret", "lambda", "harmed_by", "above_tolerance_by"}
        assert set(client["relative_regret"]) == METHODS
        assert 0 <= client["lambda"] <= 1
    assert set(result["summary"]) == METHODS
    counts = {"harmed", "above_tolerance", "harmed_against_local_tuned", "above_tolerance_against_local_tuned"}
    assert set(result["summary"]["local"]) == {"mean", "median", "p75", "p90", "max"} | counts
    for column in ("harmed", "above_tolerance"):
        by_client = [method for client in result["clients"] for method in client[f"{column}_by"]]
        assert {method: by_client.count(method) for method in METHODS} == {m: result["summary"][m][column] for m in METHODS}
    assert result["summary"]["local"]["harmed"] == result["summary"]["local-tuned"]["harmed_against_local_tuned"] == 0
    local = [client["relative_regret"]["local"] for client in result["clients"]]
    assert result["summary"]["local"]["mean"] == pytest.approx(sum(local) / 20)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("demo",), ("energy", "run", "none.csv")])
@pytest.mark.parametrize("page", ["page.pdf", "none/page.html"])
def test_a_page_that_cannot_be_written_is_refused_before_any_work(command: tuple[str, ...], page: str, tmp_path: Path) -> None:
    answer = dffl(*command, "--report", page, cwd=tmp_path)
    assert answer.returncode == 3
    assert answer.stderr.startswith("dffl: --report must ")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_advise_answers_people_and_programs(tmp_path: Path) -> None:
    answer = dffl("advise", "demo", "--rounds", "1", "--folds", "3", "--json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert len(result["clients"]) == 20
    assert {"recommendation", "gain", "gain_low", "gain_high", "reason", "deploy", "cause", "shared_model"} <= set(
        result["clients"][0]
    )
    answer = dffl("advise", "knapsack", "--quick", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "Why" in answer.stdout
    assert "client-20: " in answer.stdout
    assert "mean cost" in answer.stdout
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
        (
            ["advise", "nowhere"],
            "SOURCE must be demo, knapsack, portfolio, shortest-path, or a file of a federation",
        ),
        (["advise", "demo", "--confidence", "2"], "confidence must be in (0, 1), found 2.0"),
        (["advise", "demo", "--folds", "60"], "client 'client-11': x must have at least 120 samples"),
        (["bounds", "demo", "--delta", "0"], "delta must be in (0, 1), found 0.0"),
        (["bounds", "demo", "--form", "printed"], "bounds: form must be 'sharp' or 'paper', found 'printed'"),
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
        *((one, 3, "dffl: seed must be a whole number from 0") for one in SEEDED),
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
    screen, terminal = pty.openpty()  # on a terminal the progress bar says when training is under way
    process = subprocess.Popen([*COMMAND, "demo", "--rounds", "100000"], cwd=tmp_path, stderr=terminal)
    os.close(terminal)
    while b"%" not in os.read(screen, 4096):
        pass
    process.send_signal(signal.SIGINT)
    seen = b""
    with suppress(OSError):  # how Linux reports that the other side has closed
        while more := os.read(screen, 4096):
            seen += more
    assert process.wait(timeout=60) == 130
    assert seen.decode().strip().splitlines()[-1].endswith("dffl: interrupted")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("moment", ["parsing", "importing", "finished"])
def test_ctrl_c_has_one_exit_code_at_every_moment(moment: str, tmp_path: Path) -> None:
    """The signal comes while click parses, in the middle of an import, or when the answer has just been printed."""
    hooks = {
        "parsing": "cli.app.registered_callback.callback = press",
        "importing": "(tmp / 'slow_module.py').write_text('import press_now\\nready = True')\n"
        "(tmp / 'press_now.py').write_text('import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(.2)')\n"
        "sys.path.insert(0, str(tmp)); import dffl.terminal as t; old = t.answer\n"
        "def new(*a): import slow_module; assert slow_module.ready; time.sleep(9)\n"
        "cli.answer = new",
        "finished": "old = cli.answer\ndef new(*a): old(*a); press()\ncli.answer = new",
    }
    code = (
        "import os, signal, sys, time; from pathlib import Path; import dffl.cli as cli; tmp = Path.cwd()\n"
        "def press(): os.kill(os.getpid(), signal.SIGINT)\n"
        f"{hooks[moment]}\nsys.argv = ['dffl', 'bounds', 'demo', '--no-search', '--json']\ncli.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 130, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_fifty_interrupts_at_random_moments_over_all_commands_end_alike(tmp_path: Path) -> None:
    assert dffl("energy", "example", cwd=tmp_path).returncode == 0
    table, moments = str(tmp_path / "example.csv"), random.Random(0)
    commands = [
        ["demo"], ["advise", "demo"], ["bounds", "demo"], ["bench", "--quick"], ["paper", "--quick"], ["advice-study"],
        ["energy", "example"], ["energy", "run", table], ["energy", "train", table, "-o", "model.dffl"],
    ]  # fmt: skip
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = commands[number % len(commands)]
        process = subprocess.Popen(
            [*COMMAND, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        wait = moments.choice([moments.uniform(0, 1), moments.uniform(0.2, 4), moments.uniform(1, 15)])
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait)  # some are quick, and done
        done = process.poll() is not None
        if not done:
            process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=120)[1]
        allowed = [0] if done else [130] + [-signal.SIGINT] * (wait < 2)  # before main runs, Python dies of the signal itself
        assert process.returncode in allowed, (command, wait, process.returncode, errors)
        assert not list(folder.rglob("*.tmp"))


@pytest.mark.slow
def test_names_that_look_like_markup_are_printed_as_they_are(tmp_path: Path) -> None:
    name = "[red]x[/blue]"
    assert dffl("energy", "example", cwd=tmp_path).returncode == 0
    whole = (tmp_path / "example.csv").read_text()
    zone = whole.splitlines()[1].split(",")[0]
    (tmp_path / "odd.csv").write_text(whole.replace(f"{zone},", f"{name},"))
    advised = dffl("advise", "odd.csv", "--quick", cwd=tmp_path)
    assert advised.returncode == 0, advised.stderr
    assert name in advised.stdout
    refused = dffl("advise", "odd.csv", "--without", "[bold]\x1b[31mnobody", cwd=tmp_path)
    assert refused.returncode == 3
    assert "[bold]" in refused.stderr
    assert "\x1b" not in refused.stderr
    assert "\x1b" not in printable("a\x1b[31mb\x07")


def test_long_names_take_no_room_from_the_numbers() -> None:
    names = ["Northern Illinois Municipal Power", "x" * 300]
    clients = [dffl_client(name, feasible_sets()["topk"], n=30) for name in names]
    advice = advise(Federation(clients), quick=True, folds=3)
    console = Console(width=80, file=io.StringIO(), record=True)
    AdviceShown(advice, "two clients").show(console)
    shown = console.export_text()
    for row in advice.rows():
        assert f"{100 * row['local']:.2f}" in shown
        assert row["recommendation"] in shown


def test_a_name_with_dollars_is_no_formula(tmp_path: Path) -> None:
    clients = [dffl_client(name, feasible_sets()["topk"], n=12) for name in ("$\\frac{$", "$x^2$")]
    draw(bounds(Federation(clients), search=False), tmp_path / "names.png", "$\\foo$")
    assert (tmp_path / "names.png").stat().st_size > 10_000


def test_only_warnings_of_our_own_code_are_errors() -> None:
    warnings.warn_explicit("of another package", DeprecationWarning, "core.py", 1, module="typer.core")
    for module in ("dffl", "dffl.sets.ball", "tests.test_cli"):
        with pytest.raises(DeprecationWarning):
            warnings.warn_explicit("ours", DeprecationWarning, "ours.py", 1, module=module)
