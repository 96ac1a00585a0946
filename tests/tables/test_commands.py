"""From a folder of tables to decisions, by the commands: what they write, say and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dffl
from dffl.cli import app
from dffl.tables import method_comparison
from dffl.tables.decisions import EXPECTED, decide, require_feasible
from dffl.tables.model import OwnModel
from tests.report.made import made

TOML = """
[federation]
features = ["day", "temp", "kind"]
costs = "price_*"
unit = "EUR"
order = "day"
[training]
method = "finetune"
rounds = 2
local_epochs = 1
hidden = 4
epochs = [0, 1]
[[client]]
name = "north"
table = "north.csv"
set = { type = "top-k", k = 1 }
[[client]]
name = "south"
table = "south.csv"
set = { type = "file", path = "south.mps", predicted = "x_*" }
"""
MPS = """NAME south
ROWS
 N cost
 G need
COLUMNS
    MARKER 'MARKER' 'INTORG'
    x_1 need 1
    x_2 need 1
    x_3 need 1
    MARKER 'MARKER' 'INTEND'
    short cost 90 need 1
RHS
    RHS need 2
BOUNDS
 UP BND x_1 1
 UP BND x_2 1
 UP BND x_3 1
ENDATA
"""


def table(seed: int, rows: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.date_range("2026-01-01", periods=rows)
    frame = pd.DataFrame(
        {"day": days.strftime("%Y-%m-%d"), "temp": rng.normal(size=rows).round(3), "kind": rng.choice(["a", "b"], rows)}
    )
    for hour in (1, 2, 3):
        frame[f"price_{hour}"] = (50 + 10 * hour * frame["temp"] + rng.normal(size=rows)).round(2)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation, and the model that `dffl fit` makes of it."""
    where = tmp_path_factory.mktemp("federation")
    (where / "federation.toml").write_text(TOML)
    (where / "south.mps").write_text(MPS)
    table(0).to_csv(where / "north.csv", index=False)
    table(1)[["price_3", "kind", "price_1", "temp", "day", "price_2"]].to_csv(where / "south.csv", index=False)  # another order
    table(2, 4).drop(columns=["price_1", "price_2", "price_3"]).to_csv(where / "new.csv", index=False)
    found = call("fit", where / "federation.toml", "-o", where / "model.dffl", "--json", "-q")
    (where / "fit.json").write_text(found)
    return where


def call(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, (found.output, found.exception)
    assert "Traceback" not in found.output
    return found.output if code else found.stdout


def test_fit_judges_the_method_beside_simpler_choices(folder: Path) -> None:
    found = json.loads((folder / "fit.json").read_text())
    assert {row["method"] for row in found["clients"]} == {
        "mean-cost", "mean-7", "mean-14", "mean-28", "steady", "ridge", "local", "local-tuned", "finetune",
    }  # fmt: skip
    assert {row["client"] for row in found["clients"]} == {"north", "south"}
    assert all(row["n_test"] == 6 and row["n"] == 24 for row in found["clients"])
    assert all(row["relative_regret"] >= 0 for row in found["clients"])
    assert not (folder / "model.dffl.part").exists()


def test_decisions_have_names_helpers_and_a_range_that_held_out_rows_back(folder: Path) -> None:
    out = folder / "decisions.csv"
    said = json.loads(call("decide", folder / "model.dffl", folder / "new.csv", "--client", "south", "-o", out, "--json"))
    written = pd.read_csv(out)
    assert list(written.columns) == ["day", "x_1", "x_2", "x_3", "short", *EXPECTED]
    assert written["day"].tolist() == pd.read_csv(folder / "new.csv")["day"].tolist() == [row["day"] for row in said["keys"]]
    decisions = written[["x_1", "x_2", "x_3", "short"]]
    assert (decisions.sum(axis=1) >= 2 - 1e-9).all()
    np.testing.assert_array_equal(decisions, np.round(decisions))
    pd.testing.assert_frame_equal(pd.DataFrame(said["decisions"]), decisions, check_dtype=False)
    np.testing.assert_allclose(pd.DataFrame(said["ranges"]), written[list(EXPECTED)])
    assert said["expected"]["low"] <= said["expected"]["median"] <= said["expected"]["high"]
    assert (said["expected"]["rows"], said["unit"]) == (6, "EUR")
    # Six rows are too few for more than their least and largest cost: 5 of 7 new ones lie between them.
    assert not said["expected"]["follows_features"]
    assert said["expected"]["share"] == pytest.approx(5 / 7)
    assert "6 held-out rows are too few" in said["expected"]["why_not"]
    shown = call("decide", folder / "model.dffl", folder / "new.csv", "-c", "south")
    assert "one range for all rows, as 6 held-out rows are too few" in " ".join(shown.split())
    # The range is that of the decisions on the test rows.
    model = OwnModel.load(folder / "model.dffl")
    rows = pd.read_csv(folder / "south.csv").tail(6)
    x = model.encoding.features(rows[["day", "temp", "kind"]], "south")
    cost = np.sum(model.fit.decide("south", x) * rows[["price_1", "price_2", "price_3"]].assign(short=90.0), axis=1)
    assert said["expected"]["median"] == pytest.approx(float(np.median(cost)), rel=1e-6)
    assert "north" in call("decide", folder / "model.dffl", folder / "new.csv", "-c", "nobody", code=3)
    north = json.loads(call("decide", folder / "model.dffl", folder / "new.csv", "-c", "north", "--json"))
    assert list(north["decisions"][0]) == ["price_1", "price_2", "price_3"]
    taken = [[name for name, value in row.items() if value] for row in north["decisions"]]
    assert north["in_words"] == [f"buy {', '.join(names)}" for names in taken]
    said_first = call("decide", folder / "model.dffl", folder / "new.csv", "-c", "north").splitlines()[0]
    assert said_first == f"{pd.read_csv(folder / 'new.csv')['day'][0]}: {north['in_words'][0]}"


def test_the_table_of_decisions_says_which_row_is_which_and_that_no_column_is_a_price(folder: Path, tmp_path: Path) -> None:
    new = pd.read_csv(folder / "new.csv").assign(code=["007", "008", "", "010"], decision_price_2="mine")
    new.to_csv(tmp_path / "new.csv", index=False)
    decide = ("decide", folder / "model.dffl", tmp_path / "new.csv", "-c", "north", "-o", tmp_path / "out.csv")
    call(*decide, "--keep", "code", "--keep", "decision_price_2", "--keep", "day")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    names = ["day", "code", "_decision_price_2", "decision_price_1", "decision_price_2", "decision_price_3", *EXPECTED]
    assert list(written.columns) == names
    assert written["code"].tolist() == ["007", "008", "", "010"]
    assert set(written["_decision_price_2"]) == {"mine"}
    assert "lacks the column 'cod'; did you mean 'code'?" in " ".join(call(*decide, "--keep", "cod", code=3).split())


def test_cells_that_a_spreadsheet_would_run_are_written_as_texts(folder: Path, tmp_path: Path) -> None:
    cells = ["=cmd|' /C calc'!A0", "-5.5", "@SUM(1)", "+1,5"]
    new = pd.read_csv(folder / "new.csv").assign(**{"=note": cells})
    new.to_csv(tmp_path / "new.csv", index=False)
    words = (
        "decide",
        folder / "model.dffl",
        tmp_path / "new.csv",
        "-c",
        "north",
        "-o",
        tmp_path / "out.csv",
        "--keep",
        "=note",
    )
    said = json.loads(call(*words, "--json"))
    written = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert written["'=note"].tolist() == [f"'{cells[0]}", "-5.5", f"'{cells[2]}", "+1,5"]
    assert [row["=note"] for row in said["keys"]] == cells  # JSON is for programs
    np.testing.assert_array_equal(written["decision_price_1"].astype(float), pd.DataFrame(said["decisions"])["price_1"])


def test_outputs_that_are_inputs_leave_them_as_they_are(folder: Path, tmp_path: Path) -> None:
    model, toml = folder / "model.dffl", folder / "federation.toml"
    (tmp_path / "link.csv").symlink_to(folder / "new.csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for words in (
        ["decide", model, folder / "new.csv", "-c", "north", "-o", folder / "new.csv"],
        ["decide", model, tmp_path / "link.csv", "-c", "north", "-o", folder / "new.csv"],
        ["decide", model, folder / "new.csv", "-c", "north", "-o", tmp_path / "link.csv"],
        ["export", model, "-c", "north", "-o", folder / ".." / folder.name / "model.dffl"],
        *(["fit", toml, "-o", folder / name] for name in ("federation.toml", "north.csv", "south.mps")),
    ):
        assert "must not be a file that this command reads" in call(*words, code=3)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_decide_and_export_replace_only_what_they_write(folder: Path, tmp_path: Path) -> None:
    """They do not read the federation's file, so they know its tables by what these are not."""
    model = folder / "model.dffl"
    before = {name: (folder / name).read_bytes() for name in ("north.csv", "federation.toml")}
    for name in before:
        said = call("decide", model, folder / "new.csv", "-c", "north", "-o", folder / name, code=3)
        assert f"--out must be a new file or a table of such decisions, found '{folder / name}', which is not" in said
        said = call("export", model, "-c", "north", "-o", folder / name, code=3)
        assert f"--out must be a new file or a model, found '{folder / name}', which is not" in said
    assert {name: (folder / name).read_bytes() for name in before} == before
    (tmp_path / "empty.csv").touch()
    for out in ("empty.csv", "empty.csv", "new.csv"):  # a table of decisions is replaced
        call("decide", model, folder / "new.csv", "-c", "north", "-o", tmp_path / out)
    call("decide", model, folder / "new.csv", "-c", "south", "-o", tmp_path / "new.csv", "--keep", "temp")
    call("decide", model, folder / "new.csv", "-c", "north", "-o", tmp_path / "new.csv")  # of another client, with a column
    log = pd.read_csv(tmp_path / "new.csv")
    log.insert(0, "comment", "paid by hand")
    log.to_csv(tmp_path / "log.csv", index=False)
    log.insert(0, "comment, again", log.pop("comment"))
    log.to_csv(tmp_path / "again.csv", index=False)
    for name in ("log.csv", "again.csv"):  # a user's own remarks make it the user's table
        said = call("decide", model, folder / "new.csv", "-c", "north", "-o", tmp_path / name, code=3)
        assert f"found '{tmp_path / name}', which is not; name another file, or remove it" in said
        assert "paid by hand" in (tmp_path / name).read_text()
    for _ in range(2):
        call("export", model, "-c", "north", "-o", tmp_path / "north.dffl")


def test_the_options_of_the_file_hold_where_its_method_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[object]] = []

    def spy(_: object, methods: list[object], **__: object) -> None:
        asked.append(methods)
        raise ValueError("far enough")

    monkeypatch.setattr(method_comparison, "judge_starts", spy)
    for words in ([], ["--method", "finetune"], ["--method", "fedavg", "--method", "finetune"]):
        assert "far enough" in call("compare", folder / "federation.toml", *words, code=3)
    own = ("finetune", {"epochs": [0, 1]})
    assert [methods.count(own) for methods in asked] == [1, 1, 1]
    assert asked[0] == asked[1]
    assert asked[2][:2] == ["fedavg", own]


@pytest.mark.parametrize("starts", ["0", "-3", "1001", "1.5"])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_number_of_seeds_that_makes_no_sense_is_not_understood(command: str, starts: str, tmp_path: Path) -> None:
    words = [command, "federation.toml", "--starts", starts, *(["-o", str(tmp_path / "m")] if command == "fit" else [])]
    assert "Invalid value for '--starts'" in call(*words, code=2)


def test_keys_are_texts_or_nothing_and_a_table_without_them_is_decided_for(folder: Path, tmp_path: Path) -> None:
    model, new = OwnModel.load(folder / "model.dffl"), pd.read_csv(folder / "new.csv")
    moments = new.assign(day=pd.to_datetime(new["day"]), code=["a", None, "b", "c"])
    moments.to_parquet(tmp_path / "new.parquet")
    found = decide(model, "north", tmp_path / "new.parquet", keep=["code"]).as_json()
    assert [row["code"] for row in found["keys"]] == ["a", None, "b", "c"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    model.about["order"] = None  # a federation without a time series
    for path in (folder / "new.csv", tmp_path / "new.parquet"):
        assert next(iter(decide(model, "north", path, tmp_path / "out.csv").table)) == "decision_price_1"
    assert len(pd.read_csv(tmp_path / "out.csv")) == 4


def test_an_exported_model_decides_and_holds_nothing_of_the_others(folder: Path) -> None:
    out = folder / "south.dffl"
    call("export", folder / "model.dffl", "--client", "south", "-o", out)
    alone, whole = OwnModel.load(out), OwnModel.load(folder / "model.dffl")
    assert list(alone.fit.members) == ["south"]
    assert "north" not in json.dumps(alone.fit.about)
    assert set(alone.fit.history["client"]) <= {"south"}
    assert alone.fit.shared is None
    decided = [call("decide", path, folder / "new.csv", "-c", "south", "--json") for path in (out, folder / "model.dffl")]
    assert json.loads(decided[0])["decisions"] == json.loads(decided[1])["decisions"]
    assert whole.fit.members.keys() == {"north", "south"}
    assert "exported model of one client" in call("report", out, "-o", folder / "r.html", code=3)


def test_the_report_of_a_model(folder: Path) -> None:
    pytest.importorskip("plotly")
    out = folder / "report.html"
    call("report", folder / "model.dffl", "-o", out)
    page = out.read_text()
    assert all(name in page for name in ("north", "south", "finetune", "local-tuned"))
    assert len(page) < 6_000_000


def test_the_report_of_a_folder_shows_all_models_of_one_federation(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    out = tmp_path / "report.html"
    models = tmp_path / "models"
    models.mkdir()
    line = call("report", models, "-o", out, code=3)
    assert "models: holds no model of `dffl fit` (*.dffl) and no page of a study (report.json)" in line
    (models / "federation.toml").write_text(TOML)
    line = call("report", models, "-o", out, code=3)
    assert f"train one: dffl fit {models / 'federation.toml'} -o {models / 'model.dffl'}" in line
    (models / "federation.toml").unlink()
    (models / "study.json").write_text("{}")
    assert "is a study without a page (report.json)" in call("report", models, "-o", out, code=3)
    call("export", folder / "model.dffl", "--client", "south", "-o", models / "south.dffl")
    assert "exported model of one client" in call("report", models, "-o", out, code=3)
    assert not out.exists()

    (models / "first.dffl").write_bytes((folder / "model.dffl").read_bytes())
    assert "left out: " in call("report", models, "-o", out)
    assert "finetune" in out.read_text()
    toml = folder / "longer.toml"
    toml.write_text(TOML.replace("rounds = 2", "rounds = 3"))
    call("fit", toml, "-o", models / "longer.dffl", "-q")
    said = json.loads(call("report", models, "-o", out, "--json"))
    assert said["report"] == str(out)
    assert len(said["left_out"]) == 1
    page = out.read_text()
    assert "2 models: first (finetune, 1 start), longer (finetune, 1 start)" in page
    assert "mean-cost (first)" not in page  # it is the same under both
    toml.write_text(TOML.replace('order = "day"', 'order = "day"\ntest_fraction = 0.3'))
    call("fit", toml, "-o", models / "other.dffl", "-q")
    out.unlink()
    line = call("report", models, "-o", out, code=3)
    assert "models: first and other have different test rows: 6 and 9 of client 'north'; one page shows" in line
    assert not out.exists()


def test_the_report_of_a_study_that_kept_its_page(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    kept, out = tmp_path / "report.json", tmp_path / "page.html"
    kept.write_text(json.dumps(made().as_json()))
    call("report", tmp_path, "-o", out)
    assert "A federation &lt;of&gt; sites" in out.read_text()
    out.unlink()
    for text in ("{", "[]", '{"format": 99}', '{"format": 1, "titel": ""}'):
        kept.write_text(text)
        assert f"{kept}: " in call("report", tmp_path, "-o", out, code=3)
    assert not out.exists()


def test_a_comparison_writes_its_page(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    out = tmp_path / "page.html"
    words = ("compare", folder / "federation.toml", "--method", "fedavg", "--starts", "1", "--report", out, "--json", "-q")
    assert json.loads(call(*words))["report"] == str(out)
    page = out.read_text()
    assert "dffl compare federation.toml --method fedavg --starts 1" in page
    assert "fedavg" in page
    assert "must end in" in call(*words[:-3], tmp_path / "page.txt", code=3)


def test_advise_bounds_and_compare_take_the_same_file(folder: Path) -> None:
    toml = folder / "federation.toml"
    advised = json.loads(call("advise", toml, "--quick", "--folds", "3", "--json"))
    assert {row["client"] for row in advised["clients"]} == {"north", "south"}
    assert advised["blocks"]
    bounded = json.loads(call("bounds", toml, "--no-search", "--json"))
    assert bounded["convex_hulls"] == ["south"]
    compared = json.loads(call("compare", toml, "--method", "fedavg", "--starts", "1", "--json", "-q"))
    assert {"fedavg", "finetune", "local-tuned"} <= {row["method"] for row in compared["clients"]}


def test_what_is_refused_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    lines = call("fit", folder / "none.toml", "-o", tmp_path / "m.dffl", code=3)
    assert "no such file" in lines
    (tmp_path / "bad.toml").write_text(TOML.replace("top-k", "top-q").replace('"north.csv"', '"gone.csv"'))
    lines = call("fit", tmp_path / "bad.toml", "-o", tmp_path / "m.dffl", code=3)
    assert "gone.csv" in lines
    assert "top-q" in lines
    table(3, 3).drop(columns=["temp"]).to_csv(tmp_path / "less.csv", index=False)
    assert "temp" in call(
        "decide", folder / "model.dffl", tmp_path / "less.csv", "-c", "north", "-o", tmp_path / "d.csv", code=3
    )
    assert "folder that exists" in call("fit", folder / "federation.toml", "-o", tmp_path / "no" / "m.dffl", code=3)
    plain = dffl.fit(dffl.synthetic.knapsack(clients=2, dim=4, samples=10), "mean-cost", progress=False)
    plain.save(tmp_path / "plain.dffl")
    assert "is not a model of `dffl fit`" in call("decide", tmp_path / "plain.dffl", folder / "new.csv", "-c", "north", code=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "less.csv", "plain.dffl"]


def test_a_decision_outside_its_constraints_is_never_passed_on(folder: Path) -> None:
    members = OwnModel.load(folder / "model.dffl").fit.members
    require_feasible("south", members["south"].set, np.array([[1.0, 1, 0, 0]]))
    require_feasible("north", members["north"].set, np.array([[0.0, 1, 0]]))
    for name, wrong in (("south", [[1.0, 0, 0, 0]]), ("south", [[0.5, 1, 1, 0]]), ("north", [[1.0, 1, 0]])):
        with pytest.raises(RuntimeError, match="row 0 violates its constraints"):
            require_feasible(name, members[name].set, np.array(wrong))


def test_init_writes_an_example_that_is_read_and_overwrites_nothing(tmp_path: Path) -> None:
    said = call("init", tmp_path / "mine")
    assert "fit" in said
    assert (tmp_path / "mine" / "federation.toml").exists()
    call("init", tmp_path / "mine", code=3)


def test_a_forecast_is_found_by_name_told_and_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a naive method and few baselines: what trains is tested elsewhere."""
    monkeypatch.setattr("dffl.tables.reading.TRAINED_ONCE", ("mean-cost", "forecast", "local"))
    for seed, name in enumerate(("north", "south")):
        frame = table(seed)
        for hour in (3, 1, 2):
            frame.insert(1, f"dnn_{hour}", frame[f"price_{hour}"] + (seed - 0.5) * hour)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    toml = TOML.replace('costs = "price_*"', 'costs = "price_*"\nforecast = "dnn_*"').replace("finetune", "forecast")
    toml = toml.replace("epochs = [0, 1]\n", "").replace("hidden = 4", "hidden = 2").replace("rounds = 2", "rounds = 1")
    (tmp_path / "federation.toml").write_text(
        toml.replace('type = "file", path = "south.mps", predicted = "x_*"', 'type = "top-k", k = 1')
    )
    told = call("fit", tmp_path / "federation.toml", "-o", tmp_path / "model.dffl", "--json", "-q")
    found = json.loads(told)
    assert found["forecast"] == {f"price_{hour}": f"dnn_{hour}" for hour in (1, 2, 3)}
    assert any("dnn_1 forecasts price_1, dnn_2 forecasts price_2, dnn_3" in note for note in found["notes"])
    call("report", tmp_path / "model.dffl", "-o", tmp_path / "report.html")
    assert "dnn_1 forecasts price_1" in (tmp_path / "report.html").read_text()
    call("export", tmp_path / "model.dffl", "-c", "north", "-o", tmp_path / "north.dffl")
    fresh = table(7, 4)[["temp", "kind", "day"]]
    for hour in (2, 3, 1):
        fresh[f"dnn_{hour}"] = [float(hour != place % 3 + 1) for place in range(4)]  # hours 1, 2, 3, 1 are cheapest
    fresh.to_csv(tmp_path / "new.csv", index=False)
    decided = json.loads(call("decide", tmp_path / "north.dffl", "-c", "north", tmp_path / "new.csv", "--json"))
    assert [max(row, key=row.get) for row in decided["decisions"]] == ["price_1", "price_2", "price_3", "price_1"]
    fresh.drop(columns="dnn_2").to_csv(tmp_path / "new.csv", index=False)
    refused = call("decide", tmp_path / "north.dffl", "-c", "north", tmp_path / "new.csv", code=3)
    assert "lacks the column 'dnn_2'" in refused
