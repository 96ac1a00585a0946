"""`dffl energy`, as a user calls it."""

import inspect
import json
import os

import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl.terminal import console
from dffl_studies.energy.command import train
from dffl_studies.energy.model import METHOD
from dffl_studies.energy.naive import RULES
from dffl_studies.energy.result import print_notes
from dffl_studies.energy.setup import METHODS
from studies.tests.energy.markets import authors_file, frame, panel_file

QUICK = ("--rounds", 2, "--seeds", 2, "--quiet")
ONCE = ("--rounds", 1, "--seeds", 1, "--quiet")
EVERYTHING = {*METHODS, *RULES}


def call(*arguments: object):
    return CliRunner().invoke(app, ["energy", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    panel = panel_file(folder)
    answer = call("run", panel, "--out", folder / "out", *QUICK, "--report", folder / "page.html")
    assert answer.exit_code == 0, answer.output
    return panel, folder / "out", answer.stdout


def test_its_folder_keeps_the_page(finished, tmp_path):
    pytest.importorskip("plotly")
    _, folder, _ = finished
    answer = CliRunner().invoke(app, ["report", str(folder), "-o", str(tmp_path / "page.html")])
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "page.html").read_text() == (folder.parent / "page.html").read_text()


@pytest.mark.parametrize("command", ["run", "train", "decide", "panel", "example", "fetch"])
def test_every_command_has_an_example(command):
    assert f"Example: dffl energy {command}" in call(command, "--help").stdout


def test_it_tells_people_who_gains_and_what_a_naive_rule_would_have_given(finished):
    _, _, text = finished
    for words in ("The naive rule that the training days choose", "no interval: too few seeds"):
        assert words in " ".join(text.split())
    for words in ("4 zones", "The result in short", "Moving average", "saved: rule", "Read:", "Z03", "hindsight)"):
        assert words in text
    assert "Demands: from the panel" in text


def test_it_leaves_rows_tables_figures_and_a_model_and_none_of_the_data(finished):
    panel, out, _ = finished
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {
        "rows.parquet",
        "model.dffl",
        "tables/summary.md",
        "tables/changes-local.md",
        "tables/zones.tex",
        "tables/money.csv",
    } <= names
    assert {"figures/changes.png", "figures/weights.png", "figures/calendar.png"} <= names
    described = (out / "study.json").read_text()
    assert str(panel) not in described
    rows = pd.read_parquet(out / "rows.parquet")
    assert set(rows["method"]) == EVERYTHING
    assert set(rows["seed"]) == {0, 1}


def test_the_page_has_every_zone_rule_and_method(finished):
    _, out, _ = finished
    page = (out.parent / "page.html").read_text(encoding="utf-8")
    for words in (
        "Z03",
        "yesterday",
        "crossfit",
        "buy 3 of 24 hours",
        "US$ for each MW",
        "was not judged",
        "How training went",
    ):
        assert words in page


def test_the_answer_for_programs_and_show_run_nothing_again(finished):
    panel, out, _ = finished
    before = (out / "rows.parquet").stat().st_mtime_ns
    answer = call("run", panel, "--out", out, *QUICK, "--show", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert [zone["zone"] for zone in found["zones"]] == ["Z00", "Z01", "Z02", "Z03"]
    first = found["zones"][0]
    assert first["demand"] == 3
    assert set(first["regret"]) == EVERYTHING
    assert all(len(values) == 2 for values in first["regret"].values())
    assert len(first["lambda"]) == 2
    assert first["regret"]["perfect-foresight"] == [0, 0]
    assert found["seeds"] == [0, 1]
    assert found["money"]["perfect-foresight"]["lost a year"] == 0
    assert set(found["against"]) == {"local-tuned", "local"}
    assert set(found["rules"]) == {"chosen", "hindsight"}
    assert set(found["total_change"]) == {"local-tuned", "local", found["rules"]["chosen"]}
    rows = pd.read_parquet(out / "rows.parquet")
    by_hand = rows.pivot_table(index=["seed", "zone"], columns="method", values="regret")
    for against, summary in found["against"].items():
        change = 100 * (by_hand["fedavg"] / by_hand[against] - 1)
        assert summary["fedavg"]["mean_change"] == pytest.approx(change.mean())
        assert summary["fedavg"]["worst_harm"] == pytest.approx(change.groupby("seed").max().mean())
    assert (out / "rows.parquet").stat().st_mtime_ns == before


def test_the_same_command_with_another_protocol_is_refused_in_the_same_folder(finished):
    panel, out, _ = finished
    answer = call("run", panel, "--out", out, *QUICK, "--lags")
    assert answer.exit_code == 3
    assert "holds another run (lags = False there and True here); choose another folder with --out" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_a_decision_for_tomorrow(finished, tmp_path):
    _, out, _ = finished
    pd.DataFrame([{"date": "2022-03-02", "temperature": 4, "wind": 9}]).to_csv(tmp_path / "t.csv", index=False)
    answer = call("decide", out / "model.dffl", "--zone", "Z01", "--features", tmp_path / "t.csv")
    assert answer.exit_code == 0, answer.output
    assert "buy 6 hours" in answer.stdout
    assert "expected cost" in answer.stdout
    found = json.loads(call("decide", out / "model.dffl", "--zone", "Z01", "--features", tmp_path / "t.csv", "--json").stdout)
    assert len(found[0]["buy"]) == 6
    table = pd.DataFrame([{"zone": zone, "date": "2022-03-02", "temperature": 4, "wind": 9} for zone in ("Z01", "Z03")])
    table.to_csv(tmp_path / "all.csv", index=False)
    every = json.loads(call("decide", out / "model.dffl", "--features", tmp_path / "all.csv", "--json").stdout)
    assert [one["zone"] for one in every] == ["Z01", "Z03"]
    assert every[0] == found[0]
    nobody = call("decide", out / "model.dffl", "--features", tmp_path / "t.csv")
    assert (nobody.exit_code, "name the zone with --zone" in nobody.stderr) == (3, True)
    assert found[0]["low"] <= found[0]["expected_cost"] <= found[0]["high"]


def test_the_authors_layout_runs_as_it_is(tmp_path):
    answer = call("run", authors_file(tmp_path), "--out", tmp_path / "out", *ONCE, "--cost", "total+own", "--no-model")
    assert answer.exit_code == 0, answer.output
    assert "COMED" in answer.stdout
    assert "left out congestion_*, by the hour" in answer.stdout.replace("\n", " ")
    assert not (tmp_path / "out" / "model.dffl").exists()


@pytest.mark.slow
def test_another_market_with_components_lags_random_days_and_yesterdays_weather(tmp_path):
    table = frame(zones=12, days=50)
    for part in ("energy", "loss"):
        table[[f"{part}_{h}" for h in range(24)]] = table[[f"price_{h}" for h in range(24)]].to_numpy() / 2
    table["zone"] = table["zone"].map(lambda name: f"Zone {name} (North)")
    table.to_parquet(tmp_path / "market.parquet")
    options = (
        "--lags",
        "--random-days",
        "--weather-lag",
        1,
        "--set",
        "client_fraction=0.5",
        "--seeds",
        1,
        "--rounds",
        1,
        "--quiet",
        "--no-figures",
        "--no-model",
        "--json",
    )
    answer = call("run", tmp_path / "market.parquet", "--out", tmp_path / "out", *options)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert len(found["zones"]) == 12
    assert all(4 <= zone["demand"] <= 12 for zone in found["zones"])
    assert any("energy_*, loss_*" in note for note in found["notes"])


def test_a_panel_from_tables_runs(tmp_path):
    table = frame(zones=2, days=40)
    long = table.melt(["zone", "date"], [f"price_{h}" for h in range(24)], "hour", "total")
    long["hour"] = long["hour"].str[6:].astype(int)
    long.drop(index=30).to_csv(tmp_path / "p.csv", index=False)
    table[["zone", "date", "temperature", "wind"]].to_csv(tmp_path / "w.csv", index=False)
    answer = call("panel", "--prices", tmp_path / "p.csv", "--weather", tmp_path / "w.csv", "-o", tmp_path / "panel.csv.gz")
    assert answer.exit_code == 0, answer.output
    assert "1 of 24 hours missing, interpolated" in answer.stdout.replace("\n", " ")
    ran = call(
        "run", tmp_path / "panel.csv.gz", "--out", tmp_path / "out", "--rounds", 1, "--seeds", 1, "--no-model", "--quiet"
    )
    assert ran.exit_code == 0, ran.output
    trained = call(
        "train", tmp_path / "panel.csv.gz", "-o", tmp_path / "m.dffl", "--rounds", 1, "--method", "fedavg", "--quiet"
    )
    assert trained.exit_code == 0, trained.output
    assert (tmp_path / "m.dffl").is_file()


@pytest.mark.parametrize(
    ("change", "options", "line"),
    [
        (lambda t: t.assign(demand=25), (), "line 2: zone Z00, 2022-01-01: demand must be from 0 to 24 hours a day, found 25"),
        (lambda t: t[t["zone"] != "Z00"].head(25), (), "zone Z02 has 5 days from"),
        (lambda t: t, ("--split", "soon"), "--split must be a day such as 2021-01-31, found 'soon'"),
        (lambda t: t, ("--split", "2030-01-01"), "--split must be after 2022-01-01 and not after"),
        (lambda t: t, ("--cost", "free"), "cost must be one of total, total+own, found 'free'"),
        (lambda t: t, ("--covariates", "rain"), "must have a column 'rain'"),
        (lambda t: t, ("--without", "Z77"), "--without names zone 'Z77', which is not there"),
        (lambda t: t, ("--set", "local_epoch=3"), "unknown setting or option 'local_epoch'; did you mean 'local_epochs'?"),
        (lambda t: t, ("--set", "hidden"), "--set must be NAME=VALUE, such as local_epochs=3, found 'hidden'"),
        (lambda t: t, ("--rounds", "0"), "rounds must be a whole number >= 1, found 0"),
        (lambda t: t, ("--zone", "Z77"), "there is no zone 'Z77'"),
        (lambda t: t.assign(price_3="cheap"), (), "zone Z00, 2022-01-01: price_3 must be a finite number, found 'cheap'"),
    ],
)  # fmt: skip
def test_bad_input_ends_in_one_line_and_leaves_nothing(tmp_path, change, options, line):
    change(frame(days=20).assign(demand=5)).to_csv(tmp_path / "panel.csv", index=False)
    answer = call("run", tmp_path / "panel.csv", "--out", tmp_path / "out", "--quiet", *options)
    assert answer.exit_code == 3
    assert line in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif("DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the real zones' folder")
def test_on_the_real_zones_federating_gains_on_average(tmp_path):
    out = tmp_path / "out"
    options = ("--without", "NE_INTERNAL_HUB", "--seeds", 1, "--no-model", "--quiet", "--json")
    answer = call("run", os.environ["DFFL_ENERGY_DATA"], "--out", out, *options)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert len(found["zones"]) == 19
    assert found["against"]["local"]["fedavg"]["mean_change"] < -5
    assert found["against"]["local-tuned"]["crossfit"]["mean_change"] < -2
    assert found["rules"]["chosen"] == "steady-average"
    assert (out / "figures" / "places.png").is_file()


@pytest.mark.parametrize("seed", [-1, 2**63, 10**40])
@pytest.mark.parametrize(
    ("command", "option"), [("run", "demand-seed"), ("train", "demand-seed"), ("train", "seed"), ("example", "seed")]
)
def test_a_seed_that_is_none_is_named_in_one_line(tmp_path, command, option, seed):
    panel = [] if command == "example" else [panel_file(tmp_path)]
    answer = call(command, *panel, "--out", tmp_path / "out.csv", f"--{option}", seed)
    assert answer.exit_code == 3
    field = option.replace("-", "_")
    assert answer.stderr.startswith(f"dffl: {field} must be a whole number from 0 to 2**63 - 1, found {seed!r:.40}")
    assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()


def test_the_default_of_train_is_the_method_of_run():
    assert inspect.signature(train).parameters["method"].default == METHOD


def test_the_help_of_run_says_which_settings_are_the_papers():
    text = " ".join(call("run", "--help").stdout.replace("\u2502", " ").split())
    assert "By default all zones take part in each round" in text
    assert "the paper's energy study, whose training settings are those of its synthetic one" in text


def test_notes_reach_a_terminal_without_control_characters(capsys):
    print_notes(("zone \x1b[31mA Total: left out",), console())
    assert capsys.readouterr().out == "note: zone \\x1b[31mA Total: left out\n"
