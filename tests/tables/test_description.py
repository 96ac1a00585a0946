"""A federation from its file: what is read, how rows are divided, and that the order of columns does not matter."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dffl
from dffl.federation import Federation
from dffl.tables.columns import odd_costs
from dffl.tables.description import Description, read
from dffl.tables.example import write_example
from dffl.tables.example_days import days_of
from dffl.tables.sets_by_name import make_set
from tests.tables.made import TOML, files, rows, write


def made(folder: Path, **changes: str) -> Description:
    contents = files()
    for old, new in changes.items():
        assert old in contents["federation.toml"]
        contents["federation.toml"] = contents["federation.toml"].replace(old, new)
    return read(write(folder, contents))


def changed(folder: Path, old: str, new: str) -> Description:
    return made(folder, **{old: new})


def same(first: Federation, second: Federation) -> None:
    assert first.names == second.names
    assert first.feature_names == second.feature_names
    assert first.cost_names == second.cost_names
    for one, other in zip(first, second, strict=True):
        assert one.x.tobytes() == other.x.tobytes()
        assert one.c.tobytes() == other.c.tobytes()
        assert one.maximize == other.maximize
        np.testing.assert_array_equal(one.w_star, other.w_star)


def test_everything_that_the_file_says_is_read(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert found.train.names == found.test.names == ["north", "south", "east"]
    assert found.train.counts == [8, 10, 8]
    assert found.test.counts == [2, 4, 2]
    assert found.costs == found.train.cost_names == ("price_1", "price_2", "price_3")
    assert found.method == "finetune"
    days = tuple(float(np.datetime64(day, "s").astype(int)) for day in ("2024-01-01", "2024-01-09"))
    assert found.settings == {"rounds": 3, "seed": 0, "validation_blocks": True, "split": "time", "period": days}
    assert found.keywords == found.settings
    assert found.units == {"north": "EUR", "south": "EUR", "east": "EUR"}
    assert found.order == "date"
    assert found.encoding.feature_names == found.train.feature_names
    assert found.train.feature_names[:4] == ("temp_1", "temp_2", "weather=dry", "weather=wet")
    assert [type(client.set).__name__ for client in found.train] == ["TopK", "ZeroOneKnapsack", "ModelFile"]
    np.testing.assert_array_equal(found.train["south"].set.weights, [1, 2, 3])  # the file has another order
    assert found.notes == [
        "2 training rows, of client 'south' for example, are not before the first test row of client 'north'; "
        "let all tests begin after all training, or the test may be too easy"
    ]
    table = pd.read_csv(tmp_path / "north.csv")
    np.testing.assert_array_equal(found.train["north"].c, table[list(found.costs)][:8])
    np.testing.assert_array_equal(found.test["north"].x[:, 0], table["temp_1"][8:])


def test_its_keywords_are_taken_by_fit(tmp_path: Path) -> None:
    found = changed(
        tmp_path, "rounds = 3", 'rounds = 1\nlocal_epochs = 1\nloss = "mse"\nepochs = [0, 1]\noptions = { judge = "mse" }'
    )
    assert found.options == {"judge": "mse", "epochs": [0, 1]}
    fit = dffl.fit(found.train, found.method, progress=False, **found.keywords)
    assert fit.settings.validation_blocks
    assert len(fit.evaluate(found.test)) == 3


def test_the_order_of_columns_and_rows_does_not_matter(tmp_path: Path) -> None:
    before = made(tmp_path)
    for name in ("north.csv", "east.csv", "south_test.csv"):
        table = pd.read_csv(tmp_path / name, dtype=str)
        table.iloc[::-1, ::-1].to_csv(tmp_path / name, index=False)
    after = read(tmp_path / "federation.toml")
    same(before.train, after.train)
    same(before.test, after.test)
    assert before.encoding == after.encoding


def test_reversed_cost_columns_under_the_same_names_are_put_right(tmp_path: Path) -> None:
    before = made(tmp_path)
    table = pd.read_csv(tmp_path / "south.csv", dtype=str)
    other = [*table.columns[:4], "price_3", "price_2", "price_1"]
    table[other].to_csv(tmp_path / "south.csv", index=False)
    same(before.train, read(tmp_path / "federation.toml").train)


def test_costs_are_in_their_natural_order_or_in_that_of_a_list(tmp_path: Path) -> None:
    contents = {name: text.replace("price_3", "price_10") for name, text in files().items()}
    contents["east.lp"] = contents["east.lp"].replace("x_3", "x_10")
    assert read(write(tmp_path, contents)).costs == ("price_1", "price_2", "price_10")
    contents["federation.toml"] = contents["federation.toml"].replace('"price_*"', '["price_2", "price_1*"]')
    assert read(write(tmp_path, contents)).costs == ("price_2", "price_1", "price_10")


@pytest.mark.parametrize("seed", range(6))
def test_a_few_rows_are_divided_too(tmp_path: Path, seed: int) -> None:
    contents = files() | {"north.csv": rows(1, n=3)}
    contents["federation.toml"] = contents["federation.toml"].replace('order = "date"', f"seed = {seed}")
    found = read(write(tmp_path, contents))
    assert min(found.train["north"].n, found.test["north"].n) >= 1


def test_a_plain_draw_of_each_client_is_a_choice(tmp_path: Path) -> None:
    """As 0.2.0 divided: the last rows of each client, and stretches by position."""
    found = changed(tmp_path, 'order = "date"', 'order = "date"\nsplit = "draw"')
    assert found.settings["split"] == "draw"
    assert "period" not in found.settings
    assert [note.split(": ", 1)[1][:40] for note in found.notes] == ["federation.order: the training rows of t"]
    assert found.test.counts == [2, 4, 2]


def test_without_an_order_the_test_rows_follow_from_the_seed_and_the_row(tmp_path: Path) -> None:
    first = changed(tmp_path, 'order = "date"', "seed = 3")
    assert first.settings["split"] == "row"
    assert first.settings["seed"] == 3
    assert "validation_blocks" not in first.settings
    assert first.notes == []
    assert first.test.counts == [3, 4, 2]
    same(first.test, changed(tmp_path, 'order = "date"', "seed = 3").test)
    others = [changed(tmp_path, 'order = "date"', f"seed = {seed}").test["north"].c.tobytes() for seed in (6, 7)]
    assert any(other != first.test["north"].c.tobytes() for other in others)
    whole = np.concatenate([first.train["north"].c, first.test["north"].c])
    table = pd.read_csv(tmp_path / "north.csv")[list(first.costs)].to_numpy()
    assert sorted(map(tuple, whole.tolist())) == sorted(map(tuple, table.tolist()))


def test_equal_rows_of_two_tables_stand_on_the_same_side_and_are_named(tmp_path: Path) -> None:
    contents = files()
    shared = contents["north.csv"].split("\n")
    mine = contents["east.csv"].split("\n")
    contents["east.csv"] = "\n".join([mine[0], *shared[1:8], *mine[8:]])
    contents["federation.toml"] = contents["federation.toml"].replace('order = "date"', "seed = 6")
    found = read(write(tmp_path, contents))
    sides = [{tuple(row) for client in part for row in client.c.tolist()} for part in (found.train, found.test)]
    assert not sides[0] & sides[1]
    said = (
        r"2 of 3 clients share rows: '(north|east)' has \d of its \d+ rows in common with '(east|north)'; equal rows are held"
    )
    assert re.match(said, found.notes[0])
    contents["federation.toml"] = contents["federation.toml"].replace("seed = 6", 'seed = 6\nsplit = "draw"')
    drawn = read(write(tmp_path, contents))
    assert drawn.notes[0].endswith('federating seems better than it is; remove split = "draw"')


def test_costs_that_sites_share_are_named_with_the_keys_that_help(tmp_path: Path) -> None:
    """Sites of one price zone: the same prices on the same days, each with weather of its own."""
    contents = files()
    for name in ("south.csv", "east.csv"):
        table, prices = pd.read_csv(StringIO(contents[name])), pd.read_csv(StringIO(contents["north.csv"]))
        columns = ["price_1", "price_2", "price_3"]
        table[columns] = prices[columns]
        contents[name] = table.to_csv(index=False)
    base = contents["federation.toml"].replace('order = "date"', "seed = 4")
    contents["federation.toml"] = base
    found = read(write(tmp_path, contents))
    assert found.notes[0].startswith("3 of 3 clients share the costs of rows: ")
    assert 'write split = "cost", or key = "COLUMN"' in found.notes[0]
    for key in ('split = "cost"', 'key = "date"'):
        contents["federation.toml"] = base.replace("seed = 4", f"seed = 4\n{key}")
        one = read(write(tmp_path, contents))
        assert not {tuple(row) for row in one.train["east"].c.tolist()} & {tuple(row) for row in one.test["north"].c.tolist()}
        assert "are held out together" in one.notes[0]


def test_all_clients_have_one_cut_in_time(tmp_path: Path) -> None:
    contents = files()
    contents["east.csv"] = rows(7, n=20, start="2023-12-25")
    found = read(write(tmp_path, contents))
    assert found.train["east"].times[-1] < found.test["north"].times[0]
    assert found.train["north"].times[-1] < found.test["east"].times[0]
    cut = 'order = "date"\ntest_from = 2024-01-06'
    for text in (cut, cut.replace("2024-01-06", '"2024-01-06"')):
        contents["federation.toml"] = files()["federation.toml"].replace('order = "date"', text)
        assert read(write(tmp_path, contents)).test["north"].n == 5


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('split = "row"', r"federation\.split: must be 'time' or 'draw', found 'row'"),
        ("test_from = true", r"federation\.test_from: must be a date such as 2024-09-01 or a number"),
        ("test_from = 5", r"federation\.test_from: must be as 'date' is, dates, found 5"),
        (
            "test_from = 2024-02-01",
            r"the test of all clients begins at 2024-02-01, and client 'north' has no row from then on \(",
        ),
        ("test_from = 2023-02-01", r"the test of all clients begins at 2023-02-01, and client 'north' has no row before \("),
        ("test_from = 2024-01-08\ntest_fraction = 0.3", r"federation\.test_fraction: cannot be combined with test_from"),
        ("train_from = 2024-02-01\ntest_from = 2024-01-08", r"federation\.train_from: must be before test_from"),
        ('key = "date"', r"federation\.key: with an order, rows are held out by time; leave it out"),
        ('split = "draw"\ntest_from = 2024-01-08', r"federation\.test_from: belongs to split = \"time\", found \"draw\""),
    ],
)
def test_wrong_ways_to_hold_out_are_refused(tmp_path: Path, keys: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        changed(tmp_path, 'order = "date"', f'order = "date"\n{keys}')


def test_the_split_belongs_to_the_federation(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"training\.split: belongs under \[federation\], as split"):
        changed(tmp_path, "rounds = 3", 'rounds = 3\nsplit = "row"')
    with pytest.raises(ValueError, match=r"federation\.test_from: needs an order"):
        changed(tmp_path, 'order = "date"', "test_from = 3")


def test_another_share_is_held_out(tmp_path: Path) -> None:
    assert changed(tmp_path, 'order = "date"', 'order = "date"\ntest_fraction = 0.5').test.counts == [5, 4, 5]


def test_rows_of_one_day_stay_together(tmp_path: Path) -> None:
    contents = files()
    contents["north.csv"] = contents["north.csv"].replace("2024-01-08", "2024-01-09")
    assert read(write(tmp_path, contents)).test.counts == [3, 4, 2]


def test_a_client_may_have_a_sense_and_a_unit_of_its_own(tmp_path: Path) -> None:
    found = changed(tmp_path, 'table = "north.csv"', 'table = "north.csv"\nsense = "max"\nunit = "USD"')
    assert [client.maximize for client in found.train] == [True, False, False]
    assert found.units == {"north": "USD", "south": "EUR", "east": "EUR"}


def test_units_of_a_column(tmp_path: Path) -> None:
    contents = files()
    for name in ("north.csv", "south.csv", "east.csv", "south_test.csv"):
        lines = contents[name].split("\n")[:-1]
        contents[name] = "\n".join([f"{lines[0]},unit", *(f"{line},{name[0]}" for line in lines[1:])])
    contents["federation.toml"] = TOML.replace('unit = "EUR"', 'unit_column = "unit"')
    assert read(write(tmp_path, contents)).units == {"north": "n", "south": "s", "east": "e"}


def one_table(folder: Path) -> pd.DataFrame:
    parts = [pd.read_csv(folder / f"{name}.csv").assign(site=site) for name, site in (("north", "007"), ("south", "NA"))]
    return pd.concat(parts).sort_values(["date", "site"])


def test_one_table_for_all_clients(tmp_path: Path) -> None:
    write(tmp_path, files())
    one_table(tmp_path).to_csv(tmp_path / "all.csv", index=False)
    head = TOML.split("[[client]]")[0].replace(
        'unit = "EUR"', 'table = "all.csv"\nclient_column = "site"\nset = { type = "top-k", k = 1 }'
    )
    (tmp_path / "federation.toml").write_text(head)
    found = read(tmp_path / "federation.toml")
    assert found.train.names == ["007", "NA"]
    np.testing.assert_array_equal(found.train["NA"].c, pd.read_csv(tmp_path / "south.csv")[list(found.costs)][:8])
    (tmp_path / "federation.toml").write_text(head + '[[client]]\nname = "NA"\nset = { type = "simplex" }\n')
    found = read(tmp_path / "federation.toml")
    assert [(client.name, type(client.set).__name__) for client in found.train] == [("NA", "Simplex"), ("007", "TopK")]
    (tmp_path / "federation.toml").write_text(
        head.replace("set = ", "# ") + '[[client]]\nname = "NA"\nset = { type = "simplex" }\n'
    )
    with pytest.raises(
        ValueError, match=r"all.csv, line 2, column 'site': there is no \[\[client\]\] with the name '007'; write one"
    ):
        read(tmp_path / "federation.toml")
    (tmp_path / "federation.toml").write_text(head + '[[client]]\nname = "8"\n')
    with pytest.raises(ValueError, match=r"client '8'.name: .*all.csv has no row with '8' in column 'site'"):
        read(tmp_path / "federation.toml")


def test_tables_of_all_kinds_give_the_same(tmp_path: Path) -> None:
    before = made(tmp_path)
    table = pd.read_csv(tmp_path / "north.csv", parse_dates=["date"])
    table.to_parquet(tmp_path / "north.parquet")
    table.assign(weather=table["weather"].astype("category")).to_parquet(tmp_path / "category.parquet")
    for ending in ("gz", "bz2", "xz", "zip"):
        pd.read_csv(tmp_path / "north.csv", dtype=str).to_csv(tmp_path / f"north.csv.{ending}", index=False)
    pd.read_csv(tmp_path / "north.csv", dtype=str).to_csv(
        tmp_path / "north.tsv", index=False, sep="\t", encoding="utf-8-sig", lineterminator="\r\n"
    )
    with pa.output_stream(str(tmp_path / "north.csv.zst"), compression="zstd") as packed:
        packed.write((tmp_path / "north.csv").read_bytes())
    semicolons = (tmp_path / "north.csv").read_text().replace(",", ";").replace(".", ",")
    (tmp_path / "semicolons.csv").write_text(semicolons)
    with closing(sqlite3.connect(tmp_path / "north.db")) as base:
        pd.read_csv(tmp_path / "north.csv").to_sql("days", base, index=False)
    paths = [
        "north.parquet",
        "category.parquet",
        "north.tsv",
        "semicolons.csv",
        *(f"north.csv.{end}" for end in ("gz", "bz2", "xz", "zip", "zst")),
    ]
    for given_ in [*(f'"{path}"' for path in paths), '{ sqlite = "north.db", query = "SELECT * FROM days" }']:
        (tmp_path / "federation.toml").write_text(TOML.replace('"north.csv"', given_))
        found = read(tmp_path / "federation.toml")
        same(before.train, found.train)
        same(before.test, found.test)


def test_rows_with_gaps_are_dropped_and_counted(tmp_path: Path) -> None:
    contents = files()
    contents["north.csv"] = (
        contents["north.csv"].replace("2024-01-03,dry", "2024-01-03,").replace("2024-01-05,dry", "2024-01-05,NA")
    )
    contents["federation.toml"] = TOML.replace('missing = "refuse"', 'missing = "drop"')
    found = read(write(tmp_path, contents))
    assert found.train.counts == [6, 10, 8]
    assert any("client 'north': 2 of 10 rows have empty cells and are left out" in note for note in found.notes)


def test_a_text_that_only_test_rows_have_is_noted(tmp_path: Path) -> None:
    contents = files()
    contents["south_test.csv"] = contents["south_test.csv"].replace("wet", "snow")
    found = read(write(tmp_path, contents))
    assert any(
        "column 'weather': 2 test rows hold texts that training never saw, such as 'snow'" in note for note in found.notes
    )
    np.testing.assert_array_equal(found.test["south"].x[:, 2:4], [[1, 0], [0, 0]] * 2)


SETS = {name: kind for name, kind in dffl.FeasibleSet.by_toml_name.items() if kind.__module__.startswith("dffl.")}
NINE = [f"price_{number}" for number in range(1, 10)]
RIGHT: dict[str, str] = {
    "top-k": "k = 2.5",
    "fractional-knapsack": "weights = 1, budget = 4.5",
    "zero-one-knapsack": "weights = [1, 2, 3, 4, 5, 6, 7, 8, 9], budget = 10",
    "simplex": "scale = 2",
    "entropy-simplex": "min_entropy = 1.0",
    "box": "lower = -1, upper = [1, 2, 3, 4, 5, 6, 7, 8, 9]",
    "ball": "center = 0, radius = 2",
    "ellipsoid": f"center = 1, shape = {np.eye(9).tolist()}",
    "polytope": 'A_ub = { file = "rows.csv", columns = "price_*" }, b_ub = { file = "rows.csv", column = "right" }, '
    "lower = 0, upper = 1",
    "mixed-integer": f"A_ub = [{[1] * 9}], b_ub = [3], lower = {[0] * 9}, upper = {[1] * 9}, integer = [0, 1], nodes = 100",
    "shortest-path": "rows = 2, columns = 4, closed = [false, false, false, true, false, false, false, false, false, false]",
    "assignment": "",
    "battery": "capacity = 4, charge = 2, load = 1, exclusive = false, seconds = 5.0",
    "consecutive-hours": "run = 2, runs = 2",
    "file": 'path = "nine.lp", predicted = "w*", relaxed = true',
}


@pytest.mark.parametrize("kind", SETS)
def test_every_family_is_made_by_its_name(tmp_path: Path, kind: str) -> None:
    import tomllib

    table = pd.DataFrame({name: [1.0, number] for number, name in enumerate(NINE)}).assign(right=[3, 9])
    table.iloc[:, ::-1].to_csv(tmp_path / "rows.csv", index=False)
    terms, bounds = " + ".join(f"w{n}" for n in range(1, 10)), "\n".join(f" 0 <= w{n} <= 1" for n in range(1, 10))
    (tmp_path / "nine.lp").write_text(
        f"Minimize\n obj: 0 w1\nSubject To\n c: {terms} >= 2\nBounds\n{bounds}\nGeneral\n w1\nEnd\n"
    )
    text = ", ".join(part for part in (f'type = "{kind}"', RIGHT[kind]) if part)
    costs = [*NINE, "price_10"] if kind == "shortest-path" else NINE
    found = make_set(tomllib.loads(f"set = {{ {text} }}")["set"], costs, tmp_path, "here")
    assert found.dim == len(costs)
    if kind == "polytope":
        np.testing.assert_array_equal(found.spec()["A_ub"], [[1] * 9, range(9)])


def test_the_example_is_complete_and_nothing_is_overwritten(tmp_path: Path) -> None:
    paths = write_example(tmp_path / "new" / "folder")
    assert sorted(paths) == sorted((tmp_path / "new" / "folder").iterdir())
    found = read(tmp_path / "new" / "folder" / "federation.toml")
    assert [type(client.set).__name__ for client in found.train] == ["TopK", "ZeroOneKnapsack", "ConsecutiveHours"]
    assert found.train.has_forecast
    assert [note for note in found.notes if "forecasts" not in note] == []
    new = found.encoding.table(tmp_path / "new" / "folder" / "new.csv")
    assert found.encoding.features(new, "plant").shape == (1, found.train.features)  # a model decides for one row
    before = [path.read_bytes() for path in paths]
    with pytest.raises(ValueError, match="already exists and is not overwritten"):
        write_example(tmp_path / "new" / "folder")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plant.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"plant\.csv: already exists"):
        write_example(tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["plant.csv"]
    assert before == [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_example(tmp_path / "again")] == before
    with pytest.raises(ValueError, match="is a file; choose an empty folder"):
        write_example(paths[0])


def test_in_the_example_the_forecast_lacks_what_is_near_two_of_three_sites(tmp_path: Path) -> None:
    write_example(tmp_path)
    assert {client.name: client.n for client in read(tmp_path / "federation.toml").train} == TRAINED
    for site in TRAINED:
        table = days_of(site)[0].dropna()
        wrong = {slot: (table[f"price_{slot}"] - table[f"supplier_{slot}"]) for slot in (1, 7)}
        found = {name: float(np.corrcoef(wrong[slot], table[name])[0, 1]) for name, slot in (("sun", 7), ("wind", 1))}
        assert {name for name, value in found.items() if value < -0.35} == NEAR[site], found


TRAINED = {"harbour": 218, "bakery": 128, "plant": 218}
NEAR: dict[str, set[str]] = {"harbour": {"wind"}, "bakery": {"sun"}, "plant": set()}


def test_every_line_of_the_example_is_explained(tmp_path: Path) -> None:
    write_example(tmp_path)
    lines = (tmp_path / "federation.toml").read_text().splitlines()
    for line, below in pairwise([*lines, ""]):
        if line and not line.startswith("["):
            assert "#" in line or below.startswith("#"), line  # a long line is explained below it


# Fuzzing: whatever the file says, the answer is a description or a ValueError.
WORDS = ["north.csv", "price_*", "temp_*", "weather", "date", "max", "mean", "drop", ".", "", "*", "[a"]
SCALARS = st.one_of(
    st.booleans().map(lambda flag: str(flag).lower()),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["2021-01-31", "2021-01-31T10:00:00Z", "10:00:00", "[]", "{}", "[[1], [2, 3]]"]),
    st.sampled_from(WORDS).map(lambda word: f'"{word}"'),
    st.text(st.characters(codec="utf-8", exclude_characters="'"), max_size=8).map(
        lambda text: f"'{text}'" if text.isprintable() else '"\\u0000"'
    ),
    st.text("ab/.\\0*", max_size=6).map(lambda text: f"'{text}'"),
)


def description_or_refusal(path: Path) -> Description | str:
    """Anything else than a ValueError passes through, and fails the test."""
    try:
        return read(path)
    except ValueError as error:
        return str(error)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_values_of_any_kind_end_in_a_description_or_a_value_error(tmp_path: Path, data: st.DataObject) -> None:
    lines = TOML.split("\n")
    places = [number for number, line in enumerate(lines) if " = " in line]
    for place in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True)):
        key, value = lines[place].split(" = ", 1)
        kind = data.draw(st.sampled_from(["value", "key", "list", "gone", "set"]))
        scalar = data.draw(SCALARS)
        if kind == "set":
            name = data.draw(st.sampled_from(list(SETS)))
            more = "".join(f", {one} = {data.draw(SCALARS)}" for one in SETS[name].toml_parameters if data.draw(st.booleans()))
            lines[place] = f'set = {{ type = "{name}"{more} }}'
        else:
            other = {"value": f"{key} = {scalar}", "key": f"{key}{data.draw(st.sampled_from('abc'))} = {value}", "gone": ""}
            lines[place] = other.get(kind, f"{key} = [{scalar}, {data.draw(SCALARS)}]")
    contents = files()
    contents["federation.toml"] = "\n".join(lines)
    found = description_or_refusal(write(tmp_path, contents))
    assert found
    assert isinstance(found, str) or len(found.train) == len(found.test)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)), st.integers(0, len(TOML)))
def test_any_bytes_in_the_file_end_in_a_value_error(tmp_path: Path, noise: bytes, place: int) -> None:
    text = TOML.encode()
    for content in (noise, text[:place] + noise + text[place:], text[:place]):
        path = write(tmp_path, files())
        path.write_bytes(content)
        assert description_or_refusal(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.binary(max_size=60), st.text('",;\n\r\t 0123456789.-eNA', max_size=60).map(str.encode)), st.integers(0, 300)
)
def test_any_bytes_in_a_table_end_in_a_description_or_a_value_error(tmp_path: Path, noise: bytes, place: int) -> None:
    text = rows(0).encode()
    for content in (noise, text[:place] + noise + text[place:]):
        path = write(tmp_path, files())
        (tmp_path / "north.csv").write_bytes(content)
        found = description_or_refusal(path)
        if isinstance(found, str):
            assert "north.csv" in found or "federation.toml" in found
        else:
            assert np.isfinite(found.train["north"].x).all()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(b"\x00H", 450, False)  # a feature beyond single precision
@given(st.binary(max_size=20), st.integers(0, 4000), st.booleans())
def test_a_damaged_parquet_file_is_a_value_error_or_read(tmp_path: Path, noise: bytes, place: int, cut: bool) -> None:
    contents = files()
    contents["federation.toml"] = TOML.replace('"north.csv"', '"north.parquet"')
    path = write(tmp_path, contents)
    pd.read_csv(tmp_path / "north.csv").to_parquet(tmp_path / "north.parquet", index=False)
    whole = (tmp_path / "north.parquet").read_bytes()
    place %= len(whole)
    (tmp_path / "north.parquet").write_bytes(whole[:place] + noise + (b"" if cut else whole[place + len(noise) :]))
    assert description_or_refusal(path)


KEYED = "day,temp,price_1,price_2,price_3\n" + "".join(
    f"2024-01-{day:02},{day % 7}.5,{day},{day * day % 17},3\n" for day in range(1, 29)
)
KEYS = """\
[federation]
features = "temp"
costs = "price_*"
key = "day"
[[client]]
name = "a"
table = "a.csv"
set = { type = "top-k", k = 1 }
[[client]]
name = "b"
table = "b.csv"
set = { type = "top-k", k = 1 }
"""


def keyed(folder: Path, other: str) -> Description:
    for name, text in (("a.csv", KEYED), ("b.csv", other), ("federation.toml", KEYS)):
        (folder / name).write_text(text)
    return read(folder / "federation.toml")


def test_keys_are_compared_by_what_they_mean(tmp_path: Path) -> None:
    other = KEYED.replace("2024-01-", "2024/01/").replace(".5,", ".25,")  # other features, the days in another form
    found = keyed(tmp_path, other)
    np.testing.assert_array_equal(found.test["a"].keys, found.test["b"].keys)
    assert len(found.test["a"].keys) > 1


@pytest.mark.parametrize("digits", [17, 19, 24])
def test_long_keys_differ_in_their_last_digits(digits: int, tmp_path: Path) -> None:
    text = {}
    for last in "12":
        rows = (line.partition(",") for line in KEYED.strip().split("\n")[1:])
        lines = [f"{day.replace('-', ''):0<{digits - 1}}{last},{rest}" for day, _, rest in rows]
        text[last] = "\n".join([KEYED.partition("\n")[0], *lines])
    for name, content in (("a.csv", text["1"]), ("b.csv", text["2"]), ("federation.toml", KEYS)):
        (tmp_path / name).write_text(content + "\n")
    made = read(tmp_path / "federation.toml")
    of = [np.concatenate([made.train[name].keys, made.test[name].keys]) for name in "ab"]
    assert len(np.unique(of)) == 56
    (tmp_path / "b.csv").write_text(text["1"] + "\n")
    made = read(tmp_path / "federation.toml")
    np.testing.assert_array_equal(made.train["a"].keys, made.train["b"].keys)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2024-01-05,", "05.01.2024,", r"b\.csv, line 6, column 'day': must be a date"),
        ("2024-01-05,", ",", r"b\.csv, line 6, column 'day': is empty; every row needs its key"),
        ("2024-01-", "202401", r"column 'day', federation\.key: holds dates at 'a' \(.*and numbers at 'b' \("),
    ],
)
def test_keys_that_cannot_be_compared_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        keyed(tmp_path, KEYED.replace(old, new))


def test_features_with_and_without_an_offset_are_not_mixed(tmp_path: Path) -> None:
    toml = KEYS.replace('"temp"', '["hour", "temp"]')
    rows = [line.split(",", 1) for line in KEYED.strip().split("\n")]
    text = {}
    for zone in ("", "+02:00"):
        lines = (f"{day},2024-01-01T05:00{zone},{rest}" for day, rest in rows[1:])
        text[zone] = "\n".join([f"day,hour,{rows[0][1]}", *lines])
    for name, content in (("a.csv", text[""]), ("b.csv", text["+02:00"]), ("federation.toml", toml)):
        (tmp_path / name).write_text(content + "\n")
    what = r"column 'hour': holds dates at 'a' .* and dates with an offset from UTC at 'b' .*; write all clocks"
    with pytest.raises(ValueError, match=what):
        read(tmp_path / "federation.toml")


def test_a_cost_column_of_another_kind_is_noted(tmp_path: Path) -> None:
    """`price_mean` would be a fourth decision."""
    frame = pd.DataFrame(np.random.default_rng(0).uniform(1, 9, (20, 4)), columns=["temp", "price_1", "price_2", "price_3"])
    frame.assign(price_mean=frame.filter(like="price").mean(axis=1)).to_csv(tmp_path / "a.csv", index=False)
    text = '[federation]\nfeatures = "temp"\ncosts = "price_*"\n[[client]]\nname = "a"\ntable = "a.csv"\n'
    (tmp_path / "federation.toml").write_text(text + 'set = { type = "top-k", k = 1 }\n')
    what = "'price_*' also takes 'price_mean', beside 'price_1' and others like it"
    assert any(what in note for note in read(tmp_path / "federation.toml").notes)


def test_columns_that_are_no_decisions_are_told_from_those_that_are() -> None:
    hours = [f"price_{hour}" for hour in range(1, 5)]
    for odd in (
        ["price_mean"],
        [f"price_forecast_{hour}" for hour in range(1, 5)],
        ["price_1_lag"],
        ["price_2_da", "price_total"],
    ):
        assert odd_costs(["price_*"], [*hours, *odd]) == odd
    clock = [f"price_{hour:02}:00" for hour in range(24)]
    for names in (hours, clock, ["price_oslo", "price_bergen"], [f"price_{zone}_{hour}" for zone in "ab" for hour in range(9)]):
        assert odd_costs(["price_*"], names) == []


def test_days_that_are_written_as_numbers_are_noted(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).uniform(1, 9, (40, 3)), columns=["temp", "price_1", "price_2"])
    text = '[federation]\nfeatures = "temp"\ncosts = "price_*"\norder = "day"\n[[client]]\nname = "a"\ntable = "a.csv"\n'
    (tmp_path / "federation.toml").write_text(text + 'set = { type = "top-k", k = 1 }\n')
    days = pd.date_range("2024-01-15", periods=40).strftime("%Y%m%d").astype(int)
    months = pd.date_range("2021-01-15", periods=40, freq="MS").strftime("%Y%m").astype(int)
    for values, noted in ((days, "20240115"), (20240101 + np.arange(40), ""), (months, "202102"), (202401 + np.arange(40), "")):
        frame.assign(day=values).to_csv(tmp_path / "a.csv", index=False)
        notes = read(tmp_path / "federation.toml").notes
        assert [note for note in notes if "is read as a number" in note] == [note for note in notes if noted and noted in note]
        assert any("is read as a number" in note for note in notes) == bool(noted)
