"""Sites that are apart: one client from its own table alone has the columns, rows and set of the whole federation."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl.tables.description import Agreement, Description, read
from dffl.tables.one_site import add_lists, read_site, site_lists
from tests.tables.made import TOML, cell, files, write

MOMENTS = "train_from = 2024-01-01\ntest_from = 2024-01-09\n"
LISTS = 'categories = { weather = ["dry", "snow", "wet"] }\ntimes = []\n' + MOMENTS
SITES = ("north", "south", "east")


def contents(toml: str = TOML.replace("[training]", LISTS + "[training]")) -> dict[str, str]:
    return files() | {"federation.toml": toml}


def apart(folder: Path, whole: dict[str, str], client: str) -> Path:
    """A folder of one site: the file, and what belongs to this client."""
    mine = {"north": ["north.csv"], "south": ["south.csv", "south_test.csv", "items.csv"], "east": ["east.csv", "east.lp"]}
    place = folder / f"at {client}"
    place.mkdir()
    return write(place, {name: text for name, text in whole.items() if name in (*mine[client], "federation.toml")})


def same(whole: Description, alone: Description, client: str) -> None:
    assert alone.train.names == alone.test.names == [client]
    for all_clients, mine in ((whole.train, alone.train), (whole.test, alone.test)):
        one, other = all_clients[client], mine[client]
        assert one.feature_names == other.feature_names
        assert one.cost_names == other.cost_names
        assert one.x.tobytes() == other.x.tobytes()
        assert one.c.tobytes() == other.c.tobytes()
        assert one.maximize == other.maximize
        assert type(one.set) is type(other.set)
        assert one.set.variables == other.set.variables
        np.testing.assert_array_equal(one.w_star, other.w_star)
    assert whole.encoding.only(client) == alone.encoding.only(client)
    assert whole.units[client] == alone.units[client]
    assert (whole.costs, whole.method, whole.keywords) == (alone.costs, alone.method, alone.keywords)
    assert whole.agreement == alone.agreement
    assert whole.agreement.digest == alone.agreement.digest


@pytest.mark.parametrize("client", SITES)
@pytest.mark.parametrize("order", ['order = "date"', "seed = 4"])
def test_a_site_alone_has_what_it_has_among_all(tmp_path: Path, client: str, order: str) -> None:
    given = contents()
    given["federation.toml"] = given["federation.toml"].replace('order = "date"', order)
    if "order" not in order:  # rows are divided by what they hold
        given["federation.toml"] = given["federation.toml"].replace(MOMENTS, "")
    given["north.csv"] = given["north.csv"].replace("wet", "dry")  # a site that never saw a text of the others
    whole = read(write(tmp_path, given))
    alone = read_site(apart(tmp_path, given, client), client)
    same(whole, alone, client)
    assert "weather=snow" in alone.agreement.features  # nobody has it, and it is listed


@pytest.mark.parametrize("client", SITES)
def test_gaps_and_times_of_other_sites_are_those_of_the_file(tmp_path: Path, client: str) -> None:
    given = contents()
    given["south.csv"] = given["south.csv"].replace("2024-01-03", "2024-01-03 13:00")
    given["east.csv"] = cell(given["east.csv"], 3, "temp_2", "")
    given["federation.toml"] = (
        given["federation.toml"]
        .replace("times = []", 'times = ["date"]\ngaps = ["temp_2", "weather"]')
        .replace('missing = "refuse"', 'missing = "mean"')
    )
    whole = read(write(tmp_path, given))
    assert {"temp_2 missing", "weather missing", "date hour sin"} <= set(whole.agreement.features)
    same(whole, read_site(apart(tmp_path, given, client), client), client)


def test_a_site_may_keep_its_tables_elsewhere(tmp_path: Path) -> None:
    whole = read(write(tmp_path, contents()))
    toml = apart(tmp_path, contents(), "south")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("south.csv", "south_test.csv"):
        shutil.move(toml.parent / name, elsewhere / name)
    with pytest.raises(ValueError, match=r"client 'south'.table: .*south\.csv: there is no such file"):
        read_site(toml, "south")
    same(whole, read_site(toml, "south", table=elsewhere / "south.csv", test=elsewhere / "south_test.csv"), "south")


def test_one_table_for_all_needs_the_own_rows_only(tmp_path: Path) -> None:
    write(tmp_path, contents())
    parts = [pd.read_csv(tmp_path / f"{name}.csv").assign(site=name) for name in ("north", "south")]
    head = contents()["federation.toml"].split("[[client]]")[0]
    head = head.replace(
        'unit = "EUR"', 'unit = "EUR"\ntable = "all.csv"\nclient_column = "site"\nset = { type = "top-k", k = 1 }'
    )
    toml = tmp_path / "federation.toml"
    toml.write_text(head)
    pd.concat(parts).to_csv(tmp_path / "all.csv", index=False)
    whole = read(toml)
    same(whole, read_site(toml, "south"), "south")  # the rows of others are not looked at
    parts[1].to_csv(tmp_path / "all.csv", index=False)
    same(whole, read_site(toml, "south"), "south")
    with pytest.raises(ValueError, match=r"client 'north'.name: .*all\.csv has no row with 'north' in column 'site'"):
        read_site(toml, "north")


def test_what_a_site_cannot_know_is_refused_with_the_command_that_writes_it(tmp_path: Path) -> None:
    toml = write(tmp_path, contents(TOML))
    fix = f"`dffl init {toml} --client north` writes"
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_site(toml, "north")
    days = "is missing; sites cannot see each other's days, and share the moments of the file"
    assert str(caught.value).split("\n") == [
        f"{toml}: federation.{key}: {days}; {fix} it by the table of this site, if no other site has yet"
        for key in ("train_from", "test_from")
    ] + [
        f"{toml}: federation.{line}; {fix} what the table of this site holds"
        for line in (
            "categories.weather: is missing; column 'weather' holds texts, and other sites may have others",
            "times: is missing; column 'date' holds dates, and other sites may have a time of day",
        )
    ]
    toml.write_text(contents()["federation.toml"].replace('missing = "refuse"', 'missing = "mean"'))
    with pytest.raises(ValueError, match=r"federation\.gaps: is missing; with missing = \"mean\", other sites may have empty"):
        read_site(toml, "north")
    with pytest.raises(ValueError, match=r"client: no client has the name 'nort'.*north.*; it has north, south, east"):
        read_site(toml, "nort")


@pytest.mark.parametrize("alone", [False, True])
def test_cells_that_the_lists_do_not_allow_are_refused_with_their_place(tmp_path: Path, alone: bool) -> None:
    given = contents()
    given["federation.toml"] = (
        given["federation.toml"]
        .replace("times = []", "times = []\ngaps = []")
        .replace('missing = "refuse"', 'missing = "mean"')
    )
    given["north.csv"] = cell(cell(given["north.csv"], 3, "temp_1", ""), 4, "date", "2024-01-03 13:00")
    given["north.csv"] = cell(given["north.csv"], 5, "weather", "hail")
    toml = write(tmp_path, given)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_site(toml, "north") if alone else read(toml)
    table, fix = tmp_path / "north.csv", "add it there, or correct the cell"
    assert set(str(caught.value).split("\n")) == {
        f"{table}, line 3, column 'temp_1': is empty, and the column is not among federation.gaps; {fix}",
        f"{table}, line 4, column 'date': has a time of day, and the column is not among federation.times; {fix}",
        f"{table}, line 5, column 'weather': 'hail' is not among federation.categories.weather; {fix}",
    }


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ("times = 3", "federation.times: must be a list of columns: dates with a time of day"),
        ('times = ["date", "date"]', "federation.times: must be a list of columns"),
        ('times = ["dat"]', r"federation.times: 'dat' is not a feature \(features: "),
        ('gaps = ["temp_1"]', 'federation.gaps: belongs to missing = "mean", found missing = "refuse"'),
    ],
)
def test_wrong_lists_are_refused(tmp_path: Path, lists: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(write(tmp_path, contents(TOML.replace("[training]", f"{lists}\n[training]"))))


def test_sites_add_their_lists_one_after_the_other(tmp_path: Path) -> None:
    given = contents(
        TOML.replace('missing = "refuse"', 'missing = "mean"  # a rule').replace("[training]", "\n# more\n[training]")
    )
    given["south.csv"] = given["south.csv"].replace("wet", "fog").replace("2024-01-03", "2024-01-03 13:00")
    given["east.csv"] = cell(cell(given["east.csv"], 3, "temp_2", ""), 4, "weather", 'the "east"')
    folder = tmp_path / "whole"
    folder.mkdir()
    read(write(folder, given))  # all tables at hand: nothing need be listed
    toml = given["federation.toml"]
    digests = []
    for client in SITES:
        given["federation.toml"] = toml
        place = apart(tmp_path, given, client)
        lists, agreement = add_lists(place, client)
        digests.append(agreement.digest)
        toml = place.read_text()
        assert lists.times == ([] if client == "north" else ["date"])
    assert len(set(digests)) == 3  # each site added something
    lines = toml.split("\n")
    first = lines.index('categories = { weather = ["dry", "wet", "fog", "the \\"east\\""] }')
    written = ['times = ["date"]', 'gaps = ["temp_2"]', "train_from = 2024-01-01", "test_from = 2024-01-09", "# more"]
    assert [line for line in lines[first + 1 : first + 8] if line] == written
    assert 'missing = "mean"  # a rule' in toml
    (folder / "federation.toml").write_text(toml)
    whole = read(folder / "federation.toml")
    for client in SITES:
        place = tmp_path / f"at {client}" / "federation.toml"
        place.write_text(toml)
        same(whole, read_site(place, client), client)
        before = place.read_bytes()
        add_lists(place, client)  # nothing is new
        assert place.read_bytes() == before


def test_lists_hold_training_rows_only_and_listed_numbers_stay(tmp_path: Path) -> None:
    given = contents(TOML.replace("[training]", "categories = { temp_1 = [1, 2, 3, 4, 5, 6, 7, 8, 9] }\n[training]"))
    table = pd.read_csv(write(tmp_path, given).parent / "north.csv")
    table["temp_1"] = table["temp_1"].round().astype(int)
    table.loc[9, "weather"] = "storm"  # a test row
    table.loc[0, "temp_1"] = 12
    table.to_csv(tmp_path / "north.csv", index=False)
    found = site_lists(tmp_path / "federation.toml", "north")
    assert found.categories == {"temp_1": [*"123456789", "12"], "weather": ["dry", "wet"]}
    assert found.gaps is None


def test_a_file_that_cannot_be_changed_is_refused_and_stays(tmp_path: Path) -> None:
    given = contents(TOML.replace("[training]", '[federation.categories]\nweather = [\n  "dry",\n]\n[training]'))
    toml = write(tmp_path, given)
    with pytest.raises(ValueError, match=r'cannot be changed here; write categories = .* weather = \["dry", "wet"\]'):
        add_lists(toml, "north")
    assert toml.read_text() == given["federation.toml"]
    toml.write_text(TOML.replace('type = "top-k", k = 2', 'type = "top-k", k = 9'))
    with pytest.raises(ValueError, match="k"):
        add_lists(toml, "north")
    assert "categories" not in toml.read_text()


def test_the_command(tmp_path: Path) -> None:
    toml = write(tmp_path, contents(TOML))
    shutil.move(tmp_path / "north.csv", tmp_path / "mine.csv")
    words = ["init", str(toml), "--client", "north", "--table", str(tmp_path / "mine.csv")]
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert said["categories"] == {"weather": ["dry", "wet"]}
    assert said["agreement"]["dim"] == 3
    assert (said["train_from"], said["test_from"]) == ("2024-01-01", "2024-01-09")
    assert said["agreement"]["digest"] == read_site(toml, "north", table=tmp_path / "mine.csv").agreement.digest
    assert f"digest {said['agreement']['digest'][:16]}" in CliRunner().invoke(app, words).stdout
    assert CliRunner().invoke(app, ["init", str(toml), "--table", "mine.csv"]).exit_code == 3
    assert CliRunner().invoke(app, ["init", str(tmp_path / "none.toml"), "-c", "north"]).exit_code == 3


def test_agreements_tell_how_they_differ() -> None:
    mine = Agreement(("a", "b"), ("p", "q"))
    assert mine.difference(Agreement(("a", "b"), ("p", "q"))) is None
    assert mine.difference(Agreement(("a",), ("p", "q"))) == "features: it lacks 'b'"
    assert mine.difference(Agreement(("a", "b", "c", "d"), ("p", "q"))) == "features: it has 'c' too and 1 more"
    assert mine.difference(Agreement(("a", "b"), ("q", "p"))) == "costs: another order: 'q' where 'p' is expected"
    others = [Agreement(("b", "a"), ("p", "q")), Agreement(("a", "b", "p"), ("q",)), Agreement(("ab",), ("p", "q"))]
    assert len({one.digest for one in (mine, *others)}) == 4
    assert (
        mine.digest == "92d26081f0b5ab6c616f8bb750c227da5ab77b27105b211473a080336faeb3a8"
    )  # the same on every machine and in every version


def test_texts_and_names_that_look_the_same_are_the_same(tmp_path: Path) -> None:
    """One site's program writes u with dots as one sign, another's as two; so does the file."""

    def apart_signs(text: str) -> str:
        return unicodedata.normalize("NFD", text)

    signs = {"dry": "Zürich", "temp_1": "temp_ü", "north": "Nörd"}
    plain = {name: text for name, text in contents().items() if name != "north.csv"} | {"nörd.csv": contents()["north.csv"]}
    for old, new in signs.items():
        plain = {name: text.replace(old, new) for name, text in plain.items()}
    plain["federation.toml"] = plain["federation.toml"].replace("Nörd.csv", "nörd.csv")
    other = plain | {name: apart_signs(plain[name]) for name in ("south.csv", "federation.toml")}
    other[apart_signs("nörd.csv")] = other.pop("nörd.csv")  # a file keeps its name
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    whole, mixed = read(write(tmp_path / "one", plain)), read(write(tmp_path / "two", other))
    assert mixed.train.names == whole.train.names == ["Nörd", "south", "east"]
    assert mixed.notes == whole.notes
    assert "weather=Zürich" in whole.encoding.feature_names
    assert mixed.encoding == whole.encoding
    for one, two in zip(whole.train, mixed.train, strict=True):
        assert one.x.tobytes() == two.x.tobytes()
    for name in ("Nörd", apart_signs("Nörd")):
        same(mixed, read_site(tmp_path / "two" / "federation.toml", name), "Nörd")
    rows = pd.read_csv(tmp_path / "one" / "south.csv")
    coded = pd.read_csv(tmp_path / "two" / "south.csv")
    assert list(rows) != list(coded)
    np.testing.assert_array_equal(whole.encoding.features(rows, "south"), whole.encoding.features(coded, "south"))
    assert not whole.encoding.unseen(coded)


@pytest.mark.parametrize("last", [True, False], ids=["line break at the end", "none"])
@pytest.mark.parametrize("order", ["federation first", "federation last"])
def test_adding_lists_keeps_the_ends_of_lines_and_a_byte_order_mark(tmp_path: Path, order: str, last: bool) -> None:
    whole = contents(TOML)
    federation, _, rest = whole["federation.toml"].partition("[training]")
    ordered = f"{federation}[training]{rest}" if order == "federation first" else f"[training]{rest}\n{federation}"
    text = ordered.strip() + "\n" * last
    path = write(tmp_path, whole)
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    lists, _ = add_lists(path, "north")
    found = path.read_bytes()
    assert found.startswith(b"\xef\xbb\xbf")
    assert found.count(b"\n") == found.count(b"\r\n") == found.count(b"\r") == text.count("\n") + len(lists.lines)
    assert found.endswith(b"\r\n") == last
    assert read(path).train.names == list(SITES)
