"""`dffl fit` over time: the choice is the default, its baselines are rows, and decisions follow the rows of the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.tables import chosen
from dffl.tables.backtesting import whole
from dffl.tables.chosen import ChosenModel, in_money, rules_table
from dffl.tables.description import read
from dffl.tables.keys import DescriptionError
from dffl.tables.over_time import method_of, notes_of
from dffl.time import choosing
from dffl.time.chosen import Chosen
from tests.time.test_command import write

COSTS = [f"price_{hour}" for hour in range(4)]
SHORT = "\n[training]\nrounds = 2\nlocal_epochs = 1\n"
NEXT = "2021-05-04"
"""The day after the 120 rows of the tables."""


def call(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, (found.output, found.exception)
    assert "Traceback" not in found.output
    return " ".join(found.output.split()) if code else found.stdout


def federation(folder: Path, more: str = SHORT, **keywords: object) -> Path:
    path = write(folder, rows=120, **keywords)  # type: ignore[arg-type]
    path.write_text(path.read_text() + more)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation with a forecast, a model of the default method, and what `dffl fit` has said."""
    where = tmp_path_factory.mktemp("over_time")
    path = federation(where, error=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "CANDIDATES", ("ridge",))
        patch.setattr(choosing, "final_rules", lambda found, *_: (["ridge+forecast"] * len(found.clients), "recent"))
        (where / "said.json").write_text(call("fit", path, "-o", where / "m.dffl", "-q", "--json"))
    new = pd.read_csv(where / "north.csv").tail(1).assign(day=NEXT).drop(columns=COSTS)
    new.to_csv(where / "new.csv", index=False)
    return where


def test_baselines_are_rows_and_the_first_sentence_names_what_to_use(folder: Path) -> None:
    said = json.loads((folder / "said.json").read_text())
    assert said["method"] == "chosen"
    rows = {"mean-cost", "mean-7", "mean-14", "mean-28", "steady", "forecast", "ridge", "local", "local-tuned", "chosen"}
    assert {row["method"] for row in said["clients"]} == rows
    assert all((row["n"], row["n_test"]) == (96, 24) for row in said["clients"])
    assert said["chosen"]["rules"] == {"north": "ridge+forecast", "south": "ridge+forecast"}
    assert "Use ridge+forecast:" in said["chosen"]["words"]
    assert said["forecast"]["price_2"] == "mine_2"
    assert any(
        note.startswith("the first 28 rows of each client (up to 2021-01-31) have too little past") for note in said["notes"]
    )
    assert call("report", folder / "m.dffl", "-o", folder / "page.html").startswith("wrote")


def test_decisions_follow_the_table_and_its_known_rows(folder: Path, tmp_path: Path) -> None:
    first = json.loads(call("decide", folder / "m.dffl", folder / "new.csv", "-c", "north", "--json"))
    assert (first["keys"], first["rule"]) == ([{"day": NEXT}], "ridge+forecast")
    assert (first["expected"]["rows"], first["expected"]["share"]) == (48, 0.8)
    past, new = pd.read_csv(folder / "north.csv"), pd.read_csv(folder / "new.csv")
    pd.concat([past, new]).to_csv(tmp_path / "all.csv", index=False)  # the whole table, with the row to decide behind it
    again = json.loads(call("decide", folder / "m.dffl", tmp_path / "all.csv", "-c", "north", "--json"))
    assert {**again, "file": None} == first
    known = new.assign(**dict.fromkeys(COSTS, 60.0))
    pd.concat([known, new.assign(day="2021-05-05")]).to_csv(tmp_path / "later.csv", index=False)
    out = tmp_path / "out.csv"
    said = json.loads(call("decide", folder / "m.dffl", tmp_path / "later.csv", "-c", "north", "-o", out, "--json"))
    assert said["keys"] == [{"day": "2021-05-05"}]
    assert said["ranges"] != first["ranges"]
    assert pd.read_csv(out)["day"].tolist() == ["2021-05-05"]
    assert "Decided by ridge+forecast. Expect each decision to cost between" in " ".join(
        call("decide", folder / "m.dffl", folder / "new.csv", "-c", "north").split()
    )


def test_python_takes_the_users_own_frame(folder: Path) -> None:
    new, model = pd.read_csv(folder / "new.csv"), dffl.load(folder / "m.dffl")
    assert isinstance(model, Chosen)
    said = json.loads(call("decide", folder / "m.dffl", folder / "new.csv", "-c", "north", "--json"))
    np.testing.assert_array_equal(model.decide("north", new), pd.DataFrame(said["decisions"]))
    seen = model.observe("north", new.assign(**dict.fromkeys(COSTS, 60.0)))
    assert model.decide("north", new.assign(day="2021-05-05"), seen=seen).shape == (1, 4)


def test_an_export_holds_no_row_of_another_client(folder: Path, tmp_path: Path) -> None:
    call("export", folder / "m.dffl", "-c", "north", "-o", tmp_path / "n.dffl")
    assert b"south" in (folder / "m.dffl").read_bytes()
    assert b"south" not in (tmp_path / "n.dffl").read_bytes()
    words = ("decide", folder / "new.csv", "-c", "north", "--json")
    mine, theirs = (json.loads(call(words[0], path, *words[1:])) for path in (folder / "m.dffl", tmp_path / "n.dffl"))
    assert mine == theirs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"day": "2021-05-06"}, "client 'north': its last row with known costs is of 2021-05-03, and known_after = 0 allows"),
        ({"mine_2": None}, "column 'mine_2': the forecast is missing; fill it"),
        ({"price_1": 3.0}, "has some costs and lacks the column 'price_0'; give all of them, or none"),
        ({"day": 5}, "column 'day': must be a date, as in training"),
        ({"day": None}, "column 'day': is empty; every row needs its place in the order"),
        (dict.fromkeys(COSTS, 3.0), "has no row to decide: the costs of all its rows are known"),
        ({**dict.fromkeys(COSTS, 3.0), "price_1": None}, "has some of its costs and lacks others"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(folder: Path, tmp_path: Path, change: dict, message: str) -> None:
    pd.read_csv(folder / "new.csv").assign(**change).to_csv(tmp_path / "new.csv", index=False)
    assert message in call("decide", folder / "m.dffl", tmp_path / "new.csv", "-c", "north", code=3)


def test_all_keys_of_time_are_checked_at_once(tmp_path: Path) -> None:
    wrong = '\n[time]\nbase = "stedy"\nlags = [0]\nmeans = 7\nknown_after = -1\nrefit = 0\nranges = 2\nunits = "recent"\n'
    path = federation(tmp_path, wrong + 'choose = { by = "each", windw = 90 }\n')
    with pytest.raises(DescriptionError) as refused:
        read(path)
    said = str(refused.value)
    for part in (
        "time.base: must be 'steady' or 'forecast', found 'stedy'; did you mean 'steady'?",
        "time.lags: must be a list of whole numbers of rows from 1 on, such as [1, 2, 7], found [0]",
        "time.means: must be a list",
        "time.known_after: must be a whole number of rows",
        "time.refit: must be a whole number of rows from 1 on",
        'time.ranges: must be "adaptive", or the share',
        "time.units: no such key",
        "time.choose.by: must be 'fleet' or 'shrunk', found 'each'",
        "time.choose.windw: no such key; did you mean 'window'?",
    ):
        assert part in said
    path.write_text(write(tmp_path, order="").read_text() + '\n[time]\nbase = "forecast"\n')
    with pytest.raises(DescriptionError) as refused:
        read(path)
    assert "time: needs federation.order" in str(refused.value)
    assert "time.base: needs a forecast" in str(refused.value)


def test_a_backtest_uses_the_file_and_what_is_typed_comes_first(tmp_path: Path) -> None:
    time = '\n[time]\nrefit = 12\nlags = [1]\nmeans = [3]\nknown_after = 1\nchoose = { by = "shrunk", window = 24 }\n'
    path = federation(tmp_path, time)
    found = json.loads(call("backtest", path, "--method", "ridge", "-q", "--json"))
    assert found["refits"] == 5
    typed = json.loads(call("backtest", path, "--method", "ridge", "--refit", "30", "-q", "--json"))
    assert typed["refits"] == 2
    made = read(path)
    assert made.time == {"lags": [1], "means": [3], "known_after": 1, "refit": 12, "choice": "shrunk", "window": 24}


def test_notes_name_gaps_and_a_forecast_that_is_the_costs(tmp_path: Path) -> None:
    path = federation(tmp_path, error=0.0)
    frame = pd.read_csv(tmp_path / "south.csv").drop(index=range(40, 45))
    frame.to_csv(tmp_path / "south.csv", index=False)
    made = read(path)
    notes = notes_of(made, whole(made))
    assert any("client 'south'" in note and "equals the cost" in note for note in made.notes)
    assert any("client 'south': 1 unusual gap in 'day', the longest of 6 days after 2021-02-12; lags" in note for note in notes)


def test_tables_that_a_choice_over_time_cannot_use(tmp_path: Path) -> None:
    path = federation(tmp_path, '\n[training]\nmethod = "chosen"\n[time]\nlags = [100]\n', error=1.0)
    out = tmp_path / "m.dffl"
    assert "client 'north': a backtest needs more than 128 rows, found 120" in call("fit", path, "-o", out, code=3)
    frame = pd.read_csv(tmp_path / "south.csv")
    frame.assign(day=frame["day"].where(frame.index != 3, frame["day"][2])).to_csv(tmp_path / "south.csv", index=False)
    said = call("fit", path, "-o", out, code=3)
    assert f"{tmp_path / 'south.csv'}, line 5, column 'day': two rows are of 2021-01-06, this one and line 4" in said
    assert "(client 'south'); decisions over time need one row for each moment: put the rows of one day into one row" in said
    frame.drop(columns="mine_2").to_csv(tmp_path / "south.csv", index=False)
    said = call("fit", path, "-o", out, code=3)
    assert "south.csv: federation.forecast: 3 columns" in said
    path.write_text(
        path.read_text() + '\n[training]\nmethod = "chosen"\nprivacy = { level = "client", clip = 1.0, noise = 1.0 }\n'
    )
    assert not out.exists()


def test_the_default_method_follows_from_the_rows(tmp_path: Path) -> None:
    assert method_of(read(federation(tmp_path))) == ("chosen", [])
    method, [note] = method_of(read(write(tmp_path, rows=60)))
    assert method == "crossfit"
    assert "client 'north' has 48 rows before the test, and the choice over time needs 56; crossfit is trained" in note
    assert method_of(read(federation(tmp_path, '\n[training]\nmethod = "ridge"\n'))) == ("ridge", [])


def test_sums_have_their_own_unit(tmp_path: Path) -> None:
    path = federation(tmp_path, "", error=1.0)
    path.write_text(path.read_text().replace('order = "day"', 'order = "day"\nunit = "EUR/MWh"\nper = "a day"'))
    made = read(path)
    assert (made.units, made.per) == ({"north": "EUR/MWh", "south": "EUR/MWh"}, "day")
    [note] = [note for note in made.notes if "two parts" in note]
    why = 'what decisions cost is shown in EUR, where a decision of 1 is one MWh; else write unit = "EUR"'
    assert note == f"{path}: unit 'EUR/MWh' has two parts; {why}"
    path.write_text(path.read_text().replace('per = "a day"', 'per = "1 day"'))
    with pytest.raises(
        DescriptionError, match=r"federation\.per: must be what a row is, such as \"day\" or \"hour\", found '1 d"
    ):
        read(path)


def test_several_seeds_give_a_harm_verdict_of_the_choice(folder: Path) -> None:
    fit = dffl.load(folder / "m.dffl")
    table = pd.DataFrame(json.loads((folder / "said.json").read_text())["clients"]).assign(independent=9.0, harmed=False)
    table.loc[(table["client"] == "south") & (table["method"] == "chosen"), "harmed"] = True
    said = {}
    for starts in (1, 2, 3):
        model = ChosenModel(fit, table, starts, read(folder / "federation.toml"), [])
        with (console := Console(width=200)).capture() as shown:
            model.show(console)
        said[starts] = shown.get()
        assert model.as_json()["harm"] == (None if starts == 1 else model.harm)
    assert "harmed" not in said[1]
    assert "2 trainings are not enough to say whether a difference is real: --starts 3 judges it.\n" in said[2]
    assert "Significantly harmed, compared with local: south.\n" in said[3]
    kept = replace(fit, evidence={**fit.evidence, "why": "simple"}, rules=dict.fromkeys(fit.rules, "forecast"))
    kept_model = ChosenModel(kept, table, 3, model.description, [])
    assert kept_model.harm == "Significantly harmed, compared with local: no client."  # of the rule that is kept


def test_the_choice_is_shown_for_each_client_and_in_money(folder: Path) -> None:
    known = json.loads((folder / "said.json").read_text())["clients"]
    table = pd.DataFrame(known)
    units = dict.fromkeys(table["client"], "EUR")
    line = in_money(table, units)
    lost = table.set_index(["client", "method"])["regret"]
    first = str(table["client"].iloc[0])
    assert f"{first} {lost[first, 'chosen']:.3g} EUR (forecast {lost[first, 'forecast']:.3g})" in line
    assert in_money(table, {first: "EUR"}) == ""  # the others have no unit
    columns = [str(column.header) for column in rules_table(table).columns]
    assert columns == ["rule", "mean", *dict.fromkeys(table["client"])]
    many = pd.concat([table.assign(client=f"{place}") for place in range(6)])
    assert [str(column.header) for column in rules_table(many).columns][2:] == ["worst client", "clients it is best for"]


@pytest.mark.parametrize(("asked", "relaxed"), [("", True), ("relax = false\n", False)])
def test_baselines_with_a_solver_are_trained_as_the_candidates_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, relaxed: bool
) -> None:
    path = federation(tmp_path, SHORT + asked)
    text = path.read_text()
    battery = text.replace('set = { type = "top-k", k = 1 }', 'set = { type = "battery", capacity = 2.0, charge = 1.0 }')
    assert battery != text
    path.write_text(battery)
    found: dict[str, object] = {}

    def fit_all(*_: object, **settings: object) -> None:
        found.update(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(chosen, "backtested", lambda *_, **__: None)
    monkeypatch.setattr(chosen, "rules_of", lambda *_: {})
    monkeypatch.setattr(chosen, "fit_all", fit_all)
    with pytest.raises(KeyboardInterrupt):
        chosen.compared(read(path), [], 1, False)
    assert found.get("relax") is relaxed
