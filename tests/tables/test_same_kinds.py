"""Columns that mean different things at different sites: refused with both sites, or encoded alike on request."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl.cells import dates_of, moment_of, offsets_of
from dffl.tables.description import DescriptionError, read
from dffl.tables.one_site import add_lists, read_site

TOML = """\
[federation]
features = ["temp", "kind", "date"]
costs = "price_*"
split = "draw"
{more}
[[client]]
name = "north"
table = "north.csv"
set = {{ type = "top-k", k = 1 }}
[[client]]
name = "south"
table = "south.csv"
{test}
set = {{ type = "top-k", k = 1 }}
"""
KINDS, DATES = ("dry", "wet"), pd.date_range("2024-01-01", periods=10, freq="D").strftime("%Y-%m-%d").tolist()
LISTED = "write it in the same way at all sites, or list all of its texts, the numbers too, under federation.categories"


def table(kinds: tuple[object, ...] = KINDS, dates: list[str] = DATES, n: int = 10) -> str:
    lines = ["temp,kind,date,price_1,price_2"]
    lines += [f"{row}.5,{kinds[row % len(kinds)]},{dates[row]},{row + 1},{9 - row / 7:.3f}" for row in range(n)]
    return "\n".join(lines) + "\n"


def write(folder: Path, north: str = "", south: str = "", more: str = "", test: str = "") -> Path:
    (folder / "north.csv").write_text(north or table())
    (folder / "south.csv").write_text(south or table())
    (folder / "test.csv").write_text(test or table())
    path = folder / "federation.toml"
    path.write_text(TOML.format(more=more, test='test = "test.csv"' if test else ""))
    return path


def problems(path: Path, client: str | None = None) -> list[str]:
    with pytest.raises(DescriptionError) as caught:
        read(path) if client is None else read_site(path, client)
    return [line.replace(f"{path.parent}/", "") for line in caught.value.problems]


def test_numbers_here_and_texts_there_are_refused_with_both_sites(tmp_path: Path) -> None:
    for north, south, found in (
        (table((1, 2)), table(), "numbers at 'north' (north.csv, line 2: '1') and texts at 'south' (south.csv, line 3: 'wet')"),
        (table(), table((7,)), "texts at 'north' (north.csv, line 2: 'dry') and numbers at 'south' (south.csv, line 2: '7')"),
    ):
        lines = problems(write(tmp_path, north, south.replace("dry", "", 1) if "dry" in south else south, 'missing = "mean"'))
        assert lines == [f"federation.toml: federation.features: column 'kind': holds {found}; {LISTED}"]


def test_a_small_site_counts_as_much_as_a_large_one(tmp_path: Path) -> None:
    [line] = problems(write(tmp_path, table(), table((1, 2), n=4)))
    assert "column 'kind': holds texts at 'north' (north.csv, line 2: 'dry') and numbers at 'south'" in line


def test_serial_numbers_of_days_here_and_dates_there_are_refused(tmp_path: Path) -> None:
    serials = [str(45292 + day) for day in range(10)]
    for more, where in (("", ""), ('order = "date"', "order")):
        lines = problems(write(tmp_path, table(), table(dates=serials), more))
        found = "dates at 'north' (north.csv, line 2: '2024-01-01') and numbers at 'south' (south.csv, line 2: '45292')"
        fix = "write all dates as 2021-01-31; a spreadsheet numbers days so, unless the column has the format of a date"
        for key in ("features", *([where] if where else [])):
            assert f"federation.toml: federation.{key}: column 'date': holds {found}; {fix}" in lines


def test_numbers_in_another_form_are_told_how_to_be_written(tmp_path: Path) -> None:
    south = "\n".join(f'"{row},5",dry,{DATES[row]},1,2' for row in range(10))
    [line] = problems(write(tmp_path, table(("dry",)), f"temp,kind,date,price_1,price_2\n{south}\n"))
    assert "numbers at 'north' (north.csv, line 2: '0.5') and texts at 'south' (south.csv, line 2: '0,5')" in line
    assert line.endswith("; write numbers such as 1093.5, with a point and no other signs, at all sites")


def test_a_test_table_has_the_same_meaning_too(tmp_path: Path) -> None:
    [line] = problems(write(tmp_path, test=table((1, 2), n=3)))
    assert "texts at 'north' (north.csv, line 2: 'dry') and numbers at 'south' (test.csv, line 2: '1')" in line


def test_on_request_they_are_encoded_alike(tmp_path: Path) -> None:
    found = read(write(tmp_path, table((1, 2)), more='categories = { kind = [1, 2, "dry", "wet"] }'))
    names = ["kind=1", "kind=2", "kind=dry", "kind=wet"]
    place = found.encoding.feature_names.index("kind=1")
    assert list(found.encoding.feature_names[place : place + 4]) == names
    for client, wanted in (("north", names[:2]), ("south", names[2:])):
        sums = dict(zip(names, found.train[client].x[:, place : place + 4].sum(axis=0), strict=True))
        assert sum(sums[name] for name in wanted) == found.train[client].n
    assert not any("never saw" in note for note in found.notes)


def test_sites_without_a_common_text_are_noted(tmp_path: Path) -> None:
    path = write(tmp_path, south=table(("Dry", "Wet")))
    what = "'north' ('dry') and 'south' ('Dry') have no text in common; if they mean the same, write them alike"
    assert f"{path}: column 'kind': {what}" in read(path).notes
    assert not any("in common; if" in note for note in read(write(tmp_path, south=table(("Dry", "Wet", "wet")))).notes)


@pytest.mark.parametrize(
    ("mine", "theirs", "what"),
    [
        (
            ("dry", "wet"),
            ("dry", "Wet"),
            "'wet' ('north') and 'Wet' ('south') differ in case alone and become two columns; write",
        ),
        (
            ("no", "yes"),
            ("no", "y"),
            "'yes' at 'north' alone and 'y' at 'south' alone; if they mean the same, write them alike",
        ),
        (("no", "yes"), ("no", "yes", "unknown"), ""),
    ],
)
def test_texts_that_may_mean_the_same_are_noted(tmp_path: Path, mine: tuple, theirs: tuple, what: str) -> None:
    path = write(tmp_path, table(mine), table(theirs))
    notes = [note for note in read(path).notes if "column 'kind'" in note]
    assert len(notes) == bool(what)
    assert all(f"{path}: column 'kind': {what}" in note for note in notes)


@pytest.mark.parametrize("alone", [False, True])
def test_a_site_that_does_not_match_the_lists_is_refused(tmp_path: Path, alone: bool) -> None:
    lists = 'categories = { kind = ["dry", "wet"] }\ntimes = ["date"]'
    serials = [str(45292 + day) for day in range(10)]
    path = write(tmp_path, table((1, 2), serials), table((1, 2), serials), lists)
    lines = problems(path, "north" if alone else None)
    assert any(
        re.search(r"north\.csv, line \d+, column 'kind': '[12]' is not among federation.categories.kind; add", x) for x in lines
    )
    what = "holds numbers, and federation.times lists it as a date; write dates as 2021-01-31 13:00, or remove it there"
    assert f"federation.toml: federation.features: column 'date': {what}" in lines


def test_a_site_adds_no_numbers_to_a_list_of_texts(tmp_path: Path) -> None:
    path = write(tmp_path, south=table((1, 2)))
    add_lists(path, "north")
    before = path.read_text()
    assert 'categories = { kind = ["dry", "wet"] }' in before
    what = "holds numbers here, such as '1', and federation.categories.kind lists texts, such as 'wet'"
    fix = "write the column as the other sites do, or add its texts to the list by hand"
    with pytest.raises(ValueError, match=re.escape(f"column 'kind': {what}; {fix}")):
        add_lists(path, "south")
    assert path.read_text() == before
    path.write_text(before.replace('["dry", "wet"]', '["dry", "wet", "1", "2"]'))
    assert add_lists(path, "south")[0].categories == {"kind": ["dry", "wet", "1", "2"]}
    path.write_text(before.replace('["dry", "wet"]', "[1, 2]"))
    with pytest.raises(ValueError, match=r"holds texts here, such as 'dry', and federation\.categories\.kind lists numbers"):
        add_lists(path, "north")


EAST, WEST = "2024-01-01T00:00+02:00", "2024-01-01T00:00-05:00"


def test_clocks_with_offsets_are_in_the_order_of_their_instants(tmp_path: Path) -> None:
    clocks = [f"2024-01-01 {hour:02d}:00 {offset}" for hour in range(5) for offset in ("-05:00", "+02:00")]
    path = write(tmp_path, table(dates=clocks), table(dates=clocks), 'order = "date"\ntest_fraction = 0.5')
    found = read(path)
    # In UTC the clocks of the west are 5 to 9 o'clock, those of the east 22 o'clock of the day before to 2 o'clock.
    np.testing.assert_array_equal(found.train["north"].x[:, 0], [1.5, 3.5, 5.5, 7.5, 9.5])
    np.testing.assert_array_equal(found.test["north"].x[:, 0], [0.5, 2.5, 4.5, 6.5, 8.5])


@pytest.mark.parametrize("other", ["2024-01-01T03:00", "2024-01-02"])
def test_clocks_with_and_without_an_offset_are_not_mixed(tmp_path: Path, other: str) -> None:
    mixed = [EAST, other, *DATES[2:]]
    path = write(tmp_path, table(dates=mixed), more='order = "date"')
    what = "has an offset from UTC, and north.csv, line 3, column 'date', has none; write all clocks with an offset, or none"
    assert f"north.csv, line 2, column 'date': {what}" in problems(path)
    aware = [f"{day}T00:00Z" for day in DATES]
    [line] = problems(write(tmp_path, south=table(dates=aware), more='order = "date"'))
    assert line.startswith("federation.toml: federation.order: column 'date': holds dates at 'north' (north.csv, line 2: ")
    assert "and dates with an offset from UTC at 'south' (south.csv, line 2: " in line


def test_offsets_of_all_sources() -> None:
    local = pd.Series(pd.to_datetime(["2024-01-01", "2024-07-01"])).dt.tz_localize("Europe/Berlin")
    np.testing.assert_array_equal(offsets_of(local), [3600, 7200])
    np.testing.assert_array_equal(offsets_of(local.astype(object)), [3600, 7200])
    texts = pd.Series(
        [EAST, WEST, "2024-01-01 00:00Z", "2024-01-01 00:00:01.5 +0530", "2024-01-01 00:00", "2024-01-01", "x", None]
    )
    np.testing.assert_array_equal(offsets_of(texts), [7200, -18000, 0, 19800, *[np.nan] * 4])
    assert moment_of(EAST) == moment_of("2023-12-31 22:00") == moment_of(local[0].to_pydatetime()) - 3600
    for plain in (pd.Series([1, 2]), pd.Series(pd.to_datetime(["2024-01-01"]))):
        assert np.isnan(offsets_of(plain)).all()
    assert dates_of(texts)[1] == np.datetime64("2024-01-01")  # the clock as it is written
