"""Every day: `dffl score` judges rows that came after a model, keeps its state in a file, and `dffl update` refits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.tables.updating import ModelUpdate
from dffl.time import choosing
from dffl.time.observed import Observed
from dffl.time.refits import Prepared
from tests.tables.test_over_time import COSTS, SHORT, federation
from tests.time.test_command import write

DAYS, MADE = 260, 120
"""Days of the tables, and those that the model is made of."""
FEW = ("mean-cost", "forecast", "local")
"""Baselines that are quick; what trains is tested elsewhere."""


def call(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, (found.exit_code, found.output, found.exception)
    assert "Traceback" not in found.output
    return " ".join(found.output.split()) if code == 3 else found.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the first days; `later-NAME.csv` has the days after them."""
    where = tmp_path_factory.mktemp("daily")
    (where / "all").mkdir()
    write(where / "all", rows=DAYS, error=3.0)
    path = federation(where, SHORT, error=3.0)
    path.write_text(path.read_text().replace("[federation]", '[federation]\nunit = "EUR"'))
    for name in ("north", "south"):
        whole = pd.read_csv(where / "all" / f"{name}.csv")
        whole[:MADE].to_csv(where / f"{name}.csv", index=False)
        whole[MADE:].to_csv(where / f"later-{name}.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "CANDIDATES", ("ridge",))
        patch.setattr("dffl.tables.reading.TRAINED_ONCE", FEW)
        patch.setattr(choosing, "final_rules", lambda found, *_: (["ridge+forecast"] * len(found.clients), "recent"))
        call("fit", path, "-o", where / "m.dffl", "-q")
    return where


def later(folder: Path, name: str = "north") -> pd.DataFrame:
    return pd.read_csv(folder / f"later-{name}.csv")


def scored(folder: Path, table: pd.DataFrame, where: Path, *words: object, code: int = 0) -> dict:
    table.to_csv(where / "realised.csv", index=False)
    return json.loads(call("score", folder / "m.dffl", where / "realised.csv", "-c", "north", *words, "--json", code=code))


def test_a_score_is_what_the_decisions_lost_and_changes_no_model(folder: Path, tmp_path: Path) -> None:
    before = (folder / "m.dffl").read_bytes()
    found = scored(folder, later(folder)[:30], tmp_path)
    model, rows = dffl.load(folder / "m.dffl"), later(folder)[:30]
    seen = model.observe("north", rows)
    assert found["relative_regret"] == pytest.approx(seen.regret)
    assert (found["rows"], found["new"], found["unit"], found["reference"]) == (30, 30, "EUR", "forecast")
    costs = rows[COSTS].to_numpy()
    unknown = rows.assign(**dict.fromkeys(COSTS))
    tables = [pd.concat([rows[:day], unknown[day : day + 1]]) for day in range(30)]  # each with the rows before it
    chosen = [model.decide("north", table)[0] for table in tables]
    best = np.sort(costs, axis=1)[:, :2].sum(axis=1)
    assert found["regret_in_all"] == pytest.approx(((costs * chosen).sum(axis=1) - best).sum())
    mine = np.take_along_axis(costs, np.argsort(rows[[f"mine_{hour}" for hour in range(4)]].to_numpy())[:, :2], axis=1)
    assert found["rules"]["forecast"] == pytest.approx((mine.sum(axis=1) - best).sum() / best.sum())
    assert found["gain"][0] == pytest.approx(1 - found["relative_regret"] / found["rules"]["forecast"])
    assert {"mean-7", "steady", "forecast", "ridge", "ridge+forecast"} <= found["rules"].keys()
    assert (folder / "m.dffl").read_bytes() == before
    words = call("score", folder / "m.dffl", tmp_path / "realised.csv", "-c", "north")
    assert words.startswith("north: 30 rows from 2021-05-04 to 2021-06-02 (30 new), decided by ridge+forecast, lost ")
    assert "EUR in all" in words


def test_the_state_grows_day_by_day_to_the_same_score(folder: Path, tmp_path: Path) -> None:
    state, rows = tmp_path / "north.state", later(folder)
    for end in (5, 9, 40):  # a table that grows, and the last rows again
        found = scored(folder, rows[:end], tmp_path, "--state", state)
    assert found["new"] == 31
    whole = pd.concat([pd.read_csv(folder / "north.csv"), rows[:40]])
    assert scored(folder, whole, tmp_path) == {
        **found,
        "new": 40,
        "state": None,
        "words": found["words"].replace("31 new", "40 new"),
    }
    again = scored(folder, rows[:40], tmp_path, "--state", state)
    assert {**again, "new": 31, "words": ""} == {**found, "words": ""}
    new = rows[40:41].assign(**dict.fromkeys(COSTS))
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ("decide", folder / "m.dffl", tmp_path / "new.csv", "-c", "north")
    assert "known_after = 0" in call(*words, code=3)
    told = json.loads(call(*words, "--state", state, "--json"))
    pd.concat([rows[:40], new]).to_csv(tmp_path / "new.csv", index=False)
    plain = json.loads(call(*words, "--json"))
    assert told["decisions"] == plain["decisions"]
    assert told["ranges"] == plain["ranges"]
    seen = Observed.load(state)
    assert seen.regret == dffl.load(folder / "m.dffl").observe("north", rows[:40]).regret


def test_an_exported_model_takes_the_state_of_the_whole_one(folder: Path, tmp_path: Path) -> None:
    found = scored(folder, later(folder)[:30], tmp_path, "--state", tmp_path / "s")
    call("export", folder / "m.dffl", "-c", "north", "-o", tmp_path / "n.dffl")
    words = ("score", tmp_path / "n.dffl", tmp_path / "realised.csv", "-c", "north", "--state", tmp_path / "s", "--json")
    assert json.loads(call(*words))["rules"] == found["rules"]


@pytest.mark.parametrize("what", ["costs", "feature"])
def test_a_column_that_has_moved_asks_for_a_refit(folder: Path, tmp_path: Path, what: str) -> None:
    rows = later(folder)[:60]
    column = {"costs": "price_2", "feature": "temp"}[what]
    rows.loc[30:, column] += 25.0
    rows.loc[30:, "mine_2"] += 25.0 if what == "costs" else 0.0
    found = scored(folder, rows, tmp_path, code=7)
    assert column in found["drifted"]
    assert "columns have drifted" in found["reasons"]
    assert "Type: dffl update MODEL FEDERATION -o NEW" in found["words"]


def test_without_a_change_nothing_asks_for_a_refit(folder: Path, tmp_path: Path) -> None:
    found = scored(folder, later(folder), tmp_path)
    assert (found["refit"], found["drifted"], found["reasons"]) == (False, [], [])
    assert found["ranged"] == DAYS - MADE
    assert 0.7 < found["inside"] <= 0.9


def test_a_rule_that_has_become_worse_than_another_asks_for_a_refit(folder: Path, tmp_path: Path) -> None:
    rows = later(folder)
    mine = [f"mine_{hour}" for hour in range(4)]
    rows[mine] = 60 - rows[mine]  # the forecast is upside down from now on, in its usual range
    found = scored(folder, rows, tmp_path, code=7)
    assert "another rule is better" in found["reasons"]
    assert found["best"] in ("mean-7", "mean-14", "mean-28", "steady")
    assert found["better"][1] > 0


def test_a_year_is_scored_in_three_seconds(folder: Path, tmp_path: Path) -> None:
    """Measured in this process; the bound is wide, as other tests may run."""
    rows = pd.concat([later(folder)] * 3, ignore_index=True)[:365]
    rows["day"] = pd.date_range("2021-05-04", periods=365).strftime("%Y-%m-%d")
    rows.to_csv(tmp_path / "year.csv", index=False)
    words = ("score", folder / "m.dffl", tmp_path / "year.csv", "-c", "north", "--json")
    CliRunner().invoke(app, [str(word) for word in words])  # compiles
    begun = time.process_time()
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code in (0, 7)
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: pd.concat([t, t[:1]]),
            "line 12, column 'day': two rows are of 2021-05-04, this one and line 2; keep one row for each moment",
        ),
        (lambda t: t.drop(columns="temp"), "lacks the column 'temp'"),
        (lambda t: t.drop(columns="price_1"), "lacks the column 'price_1'"),
        (lambda t: t.assign(price_1=None), "has no row whose costs are known"),
        (lambda t: t.drop(index=t.index[3]), "the row of 2021-05-08 was never decided: the one before it is of 2021-05-06"),
        (lambda t: t.assign(day=[*t["day"][:-1], "2021-05-03"]), "has other costs than those that are known already"),
        (lambda t: t.assign(day=[*t["day"][:-1], "2021-05-03T12:00"]), "was never decided: rows after it are known already"),
        (lambda t: t.assign(day=range(len(t))), "must be a date, as in training"),
        (
            lambda t: t[2:].assign(**{name: 1000 * t[name][2:] for name in t if name.startswith("price_")}),
            "times as large as those that the model knows, as in another unit; bring them to the unit of the model",
        ),
    ],
)
def test_bad_rows_are_one_line_and_leave_the_state(folder: Path, tmp_path: Path, change: object, message: str) -> None:
    rows, state = later(folder)[:10], tmp_path / "s"
    scored(folder, later(folder)[:2], tmp_path, "--state", state)
    before = state.read_bytes()
    change(rows).to_csv(tmp_path / "r.csv", index=False)  # type: ignore[operator]
    said = call("score", folder / "m.dffl", tmp_path / "r.csv", "-c", "north", "--state", state, code=3)
    assert message in said
    assert state.read_bytes() == before


def test_files_that_do_not_belong_together_are_refused(folder: Path, tmp_path: Path) -> None:
    scored(folder, later(folder)[:5], tmp_path, "--state", tmp_path / "s")
    words = ("score", folder / "m.dffl", tmp_path / "realised.csv", "--state")
    later(folder, "south")[:5].to_csv(tmp_path / "south.csv", index=False)
    south = ("score", folder / "m.dffl", tmp_path / "south.csv", "-c", "south", "--state")
    assert "client 'south': what was observed is of client 'north'" in call(*south, tmp_path / "s", code=3)
    held = Observed.load(tmp_path / "s")
    Observed(held.client, held.rows, held.regret, held.inside, "0" * 32).save(tmp_path / "other")
    assert "belongs to another model" in call(*words, tmp_path / "other", "-c", "north", code=3)
    for file, message in (("m.dffl", "must not be a file that this command reads"), ("north.csv", "a state of dffl score")):
        before = (folder / file).read_bytes()
        assert message in call(*words, folder / file, "-c", "north", code=3)
        assert (folder / file).read_bytes() == before
    whole = (tmp_path / "s").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert call(*words, tmp_path / "cut", "-c", "north", code=3)


def test_a_model_that_was_fitted_once_is_scored_too(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dffl.tables.reading.TRAINED_ONCE", FEW)
    path = tmp_path / "federation.toml"
    path.write_text(_named(folder, "ridge"))
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
    call("fit", path, "-o", tmp_path / "once.dffl", "-q")
    later(folder)[:30].to_csv(tmp_path / "r.csv", index=False)
    words = ("score", tmp_path / "once.dffl", tmp_path / "r.csv", "-c", "north", "--json", "--state", tmp_path / "s")
    found = json.loads(call(*words))
    assert (found["rule"], found["reference"], found["drifted"], found["rows"]) == ("ridge", "forecast", None, 30)
    assert found["relative_regret"] == pytest.approx(_lost(tmp_path / "once.dffl", later(folder)[:30]))
    assert json.loads(call(*words))["new"] == 0
    new = ("decide", tmp_path / "once.dffl", tmp_path / "r.csv", "-c", "north", "--state", tmp_path / "s")
    assert "--state is for models of chosen" in call(*new, code=3)


def _named(folder: Path, method: str) -> str:
    return (folder / "federation.toml").read_text().replace("[training]", f'[training]\nmethod = "{method}"')


def _lost(model: Path, rows: pd.DataFrame) -> float:
    costs = rows[COSTS].to_numpy()
    best = np.sort(costs, axis=1)[:, :2].sum(axis=1)
    return float(((costs * dffl.load(model).decide("north", rows)).sum(axis=1) - best).sum() / best.sum())


def test_an_update_refits_with_the_grown_tables(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "CANDIDATES", ("ridge",))
    monkeypatch.setattr("dffl.tables.reading.TRAINED_ONCE", FEW)
    path = _grown(folder, tmp_path)
    before = (folder / "m.dffl").read_bytes()
    words = ("update", folder / "m.dffl", path, "-o", tmp_path / "new.dffl", "-q")
    found = json.loads(call(*words, "--json"))
    new = dffl.load(tmp_path / "new.dffl")
    assert found["clients"]["north"] == {"rows": [120, 160], "rule": ["ridge+forecast", new.rules["north"]]}
    call("fit", path, "-o", tmp_path / "fit.dffl", "-q")
    assert (tmp_path / "fit.dffl").read_bytes() == (tmp_path / "new.dffl").read_bytes()
    assert (folder / "m.dffl").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text, north: (text, north[:119]), "client 'north': it has 119 rows, and the model was made of 120"),
        (
            lambda text, north: (text.replace('"EUR"', '"USD"'), north),
            "the unit of its costs is 'USD', and that of the model 'EUR'",
        ),
        (lambda text, north: (_three(text), north), "costs are not those of the model ('price_3')"),
        (lambda text, north: (text.replace('name = "south"', 'name = "east"'), north), "client 'east' is new"),
        (lambda text, north: (text.replace('order = "day"', ""), north), "order is None, and that of the model 'day'"),
    ],
)
def test_an_update_that_is_no_growth_is_one_line(folder: Path, tmp_path: Path, change: object, message: str) -> None:
    path = _grown(folder, tmp_path)
    text, north = change(path.read_text(), pd.read_csv(tmp_path / "north.csv"))  # type: ignore[operator]
    path.write_text(text)
    north.to_csv(tmp_path / "north.csv", index=False)
    words = ("update", folder / "m.dffl", path, "-q", "-o")
    assert message in call(*words, tmp_path / "new.dffl", code=3)
    assert not (tmp_path / "new.dffl").exists()
    assert "must not be a file that this command reads" in call(*words, folder / "m.dffl", code=3)


def _three(text: str) -> str:
    """A file that decides on three of the four costs."""
    for name in ("price", "mine"):
        text = text.replace(f'"{name}_*"', f'["{name}_0", "{name}_1", "{name}_2"]')
    return text


def _grown(folder: Path, to: Path) -> Path:
    """The federation of the model with 40 more days."""
    for name in ("north", "south"):
        pd.concat([pd.read_csv(folder / f"{name}.csv"), later(folder, name)[:40]]).to_csv(to / f"{name}.csv", index=False)
    path = to / "federation.toml"
    path.write_text((folder / "federation.toml").read_text())
    return path


def crontab() -> list[str]:
    """The commands of the crontab in the docs."""
    page = (Path(__file__).parents[2] / "docs/time.md").read_text()
    block = page.split("```crontab\n")[1].split("```")[0]
    return [line.split(" ", 5)[5] for line in block.splitlines() if line[0].isdigit()]


def test_the_crontab_of_the_docs_decides_scores_and_updates(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines as a shell runs them, with `mail` and `dffl` in their place: `update` alone is stood in for by a copy."""
    decide, score, update = crontab()
    for file in ("federation.toml", "north.csv", "south.csv"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    (tmp_path / "model.dffl").write_bytes((folder / "m.dffl").read_bytes())
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in (("mail", "cat > mailed.txt"), ("dffl", f'exec {sys.executable} -m dffl "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(line: str) -> None:
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)

    rows = later(folder)
    rows[:40].to_csv(tmp_path / "realised.csv", index=False)
    run(score)
    assert "Nothing is to be done." in (tmp_path / "score.txt").read_text()
    assert not (tmp_path / "mailed.txt").exists()
    rows[40:41].drop(columns=COSTS).to_csv(tmp_path / "new.csv", index=False)
    run(decide)
    assert pd.read_csv(tmp_path / "decisions.csv")["day"].tolist() == [rows["day"][40]]
    rows[40:80].assign(temp=99.0).to_csv(tmp_path / "realised.csv", index=False)
    run(score)
    assert "Drifted: temp." in (tmp_path / "mailed.txt").read_text()
    (tools / "dffl").write_text('#!/bin/sh\necho "$@" > typed.txt\ncp model.dffl next.dffl\n')
    run(update)
    assert not (tmp_path / "north.state").exists()
    typed = (tmp_path / "typed.txt").read_text().split()
    monkeypatch.setattr("dffl.cli.daily.trained_into", lambda *given: given)
    monkeypatch.setattr("dffl.tables.updating.ModelUpdate.of", lambda _, given, *__: Typed(given))
    monkeypatch.chdir(tmp_path)
    said = json.loads(call(*typed, "--json"))
    assert said == ["federation.toml", "next.dffl", "1", "True", "[PosixPath('model.dffl')]"]


class Typed:
    """What `update` was asked for."""

    def __init__(self, given: tuple) -> None:
        self.given = given

    def as_json(self) -> list[str]:
        return [str(one) for one in self.given[:-1]]


def test_a_fit_and_a_backtest_resume_to_the_same_bits(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "CANDIDATES", ("ridge",))
    monkeypatch.setattr("dffl.tables.reading.TRAINED_ONCE", FEW)
    path, out = folder / "federation.toml", tmp_path / "m.dffl"
    trained, calls = Prepared.trained, []

    def stops(self: Prepared, *given: object) -> object:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return trained(self, *given)  # type: ignore[arg-type]

    typed = ("backtest", path, "--method", "ridge", "--refit", "20", "-q", "--json")
    kept = ("--checkpoint", tmp_path / "kept")
    for words, part in (
        (("fit", path, "-o", out, "-q"), tmp_path / "m.dffl.part-backtest"),
        ((*typed, *kept), tmp_path / "kept"),
    ):
        calls.clear()
        monkeypatch.setattr(Prepared, "trained", stops)
        assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 130
        assert part.exists()
        monkeypatch.setattr(Prepared, "trained", lambda self, *given: calls.append(given) or trained(self, *given))
        calls.clear()
        resumed = call(*words)
        again = len(calls)
        assert not part.exists()
        calls.clear()
        whole = call(*words[:3], tmp_path / "whole.dffl", "-q") if words[0] == "fit" else call(*typed)
        assert len(calls) == again + 1  # one training was there already
        if words[0] == "fit":
            assert out.read_bytes() == (tmp_path / "whole.dffl").read_bytes()
        else:
            assert json.loads(resumed) == json.loads(whole)
    assert "must not be a file that this command reads" in call(*typed, "--checkpoint", folder / "north.csv", code=3)


def test_every_line_of_the_crontab_is_understood() -> None:
    for line, name in zip(crontab(), ("decide", "score", "update"), strict=True):
        words = line.split(" > ")[0].split(" && ")[0].split()
        assert words[:2] == ["dffl", name]
        command = get_command(app).commands[name]  # type: ignore[attr-defined]
        assert command.make_context(name, words[2:]).params["model"] == Path("model.dffl")


def test_the_file_to_resume_from_reaches_the_backtest(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def stopped(*_: object, checkpoint: Path | None, **__: object) -> None:
        given.append(checkpoint)
        raise KeyboardInterrupt

    monkeypatch.setattr("dffl.tables.backtesting.backtest", stopped)
    monkeypatch.setattr("dffl.tables.chosen.backtested", stopped)
    path = folder / "federation.toml"
    call("backtest", path, "--checkpoint", tmp_path / "kept", "-q", code=130)
    call("fit", path, "-o", tmp_path / "m.dffl", "-q", code=130)
    assert given == [tmp_path / "kept", tmp_path / "m.dffl.part-backtest"]


def test_an_update_says_which_rule_was_used_before_and_is_now(tmp_path: Path) -> None:
    shown = {"north": {"rows": (120, 160), "rule": ("ridge", "steady")}}
    console = Console(width=200, record=True)
    ModelUpdate(shown, "", tmp_path / "new.dffl").show(console)
    said = "north: 40 more rows (160 in all); decided by ridge, now by the steady moving average (steady)."
    assert console.export_text().startswith(said)
