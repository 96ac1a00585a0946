"""Columns as features: categories, calendars, empty cells, and the way through JSON."""

from __future__ import annotations

import json
import math
import re
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.cells import dates_of, missing_in, numbers_of, texts_of
from dffl.tables.encoding import MOST_CATEGORIES, Column, Encoding, agreed, summary
from dffl.tables.sources import FrameSource, Table, load


def table(**columns: list[Any]) -> Table:
    frame = pd.DataFrame(columns)
    return load(FrameSource(frame), list(columns))


def encoding_of(missing: Any = "refuse", categories: dict[str, list[Any]] | None = None, **sites: Table) -> Encoding:
    names = next(iter(sites.values())).frame.columns
    columns = [
        agreed(name, (summary(one.frame[name]) for one in sites.values()), (categories or {}).get(name)) for name in names
    ]
    return Encoding(tuple(columns), missing).with_fills(sites)


def test_a_model_whose_texts_had_another_coding_knows_its_tables() -> None:
    apart = unicodedata.normalize("NFD", "Zürich")
    old = Encoding((Column(f"city {apart}", "category", (apart, "Bern")),), "mean", {"a": {apart: (1.0,)}}).composed()
    cells = pd.DataFrame({f"city {apart}": [apart, "Zürich", "Bern"]})
    assert not old.unseen(cells)
    np.testing.assert_array_equal(old.features(cells, "a"), [[1, 0], [1, 0], [0, 1]])
    both = Encoding((Column("city", "category", (apart, "Zürich")),)).composed()
    assert both.columns[0].categories == (apart, "Zürich")  # its features stay as many as they were


@pytest.mark.parametrize("form", ["{} kW", "{}kW", "{}.5 °C", "\u2212{} °C", "1.{:03},5 EUR/MWh", "{},5 m²", "{} rooms"])
def test_many_numbers_with_one_unit_are_no_categories(form: str) -> None:
    many = [form.format(number) for number in range(1, 15)]
    for texts in (many, [*many, "unknown", "off"]):
        with pytest.raises(
            ValueError, match=r"has more than 10 different numbers with a unit, such as '.*'; write the numbers"
        ):
            agreed("load", [summary(pd.Series(texts[:7])), summary(pd.Series(texts[7:]))])  # all sites together
        assert agreed("load", [summary(pd.Series(texts))], texts).categories == tuple(texts)  # on request
    few = many[:10]
    assert len(agreed("size", [summary(pd.Series(few * 9))]).categories) == 10


@pytest.mark.parametrize("form", ["{}th floor", "{}nd", "A-{}", "{}-phase", "{}-2 kg", "{} Main Street", "line {}", "{0}{1}"])
def test_other_texts_with_numbers_stay_categories(form: str) -> None:
    texts = {form.format(number, "ABC"[number % 3]) for number in range(1, 15)}
    assert len(agreed("size", [summary(pd.Series(sorted(texts)))]).categories) == 14


def test_numbers_truth_and_texts() -> None:
    site = table(size=[1, 2, 3], open=[True, False, True], weather=["wet", "dry", "wet"])
    found = encoding_of(site=site)
    assert found.feature_names == ("size", "open", "weather=dry", "weather=wet")
    np.testing.assert_array_equal(found.features(site, "site"), [[1, 1, 0, 1], [2, 0, 1, 0], [3, 1, 0, 1]])


def test_the_calendar_of_a_date() -> None:
    days = ["2024-01-01", "2024-07-01", "2024-12-29"]  # a Monday, a Monday, a Sunday
    found = encoding_of(site=table(day=days))
    assert found.feature_names == (
        "day year sin", "day year cos", "day mon", "day tue", "day wed", "day thu", "day fri", "day sat", "day sun",
    )  # fmt: skip
    x = found.features(pd.DataFrame({"day": days}), "site")
    angles = [2 * math.pi * number / 365.25 for number in (0, 182, 363)]
    np.testing.assert_allclose(x[:, :2], [[math.sin(one), math.cos(one)] for one in angles], atol=1e-12)
    np.testing.assert_array_equal(x[:, 2:], np.eye(7)[[0, 0, 6]])
    for other in (
        pd.to_datetime(days),
        pd.to_datetime(days).tz_localize("Europe/Berlin"),
        [pd.Timestamp(day).date() for day in days],
    ):
        np.testing.assert_array_equal(found.features(pd.DataFrame({"day": other}), "site"), x)


def test_the_hour_counts_where_there_is_a_time_of_day() -> None:
    found = encoding_of(site=table(at=["2024-01-01 06:00", "2024-01-01T18:30:00Z"]))
    assert found.feature_names[-2:] == ("at hour sin", "at hour cos")
    x = found.features(pd.DataFrame({"at": ["2024-03-03 06:00"]}), "site")
    np.testing.assert_allclose(x[:, -2:], [[1, 0]], atol=1e-12)


def test_a_text_that_was_never_seen_has_no_flag_and_is_warned_of() -> None:
    found = encoding_of(site=table(weather=["wet", "dry"]))
    new = pd.DataFrame({"weather": ["snow", "wet", "snow", "hail"]})
    assert found.unseen(new) == {"weather": {"hail": 1, "snow": 2}}
    with pytest.warns(UserWarning, match="column 'weather': 3 cells hold texts that training never saw, such as 'hail'; all"):
        x = found.features(new, "site")
    np.testing.assert_array_equal(x, [[0, 0], [0, 1], [0, 0], [0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.features(new[1:2], "site")


def test_empty_cells_get_each_sites_own_mean_and_a_flag() -> None:
    one = table(x=[1.0, None, 3.0], weather=["wet", "dry", "wet"], y=[1, 2, 3])
    two = table(x=[10.0, 20.0, 30.0], weather=["wet", None, "dry"], y=[4, 5, 6])
    found = encoding_of("mean", one=one, two=two)
    assert found.feature_names == ("x", "x missing", "weather=dry", "weather=wet", "weather missing", "y")
    np.testing.assert_array_equal(found.features(one, "one")[:, :2], [[1, 0], [2, 1], [3, 0]])
    np.testing.assert_array_equal(found.features(two, "two")[:, 2:5], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    new = pd.DataFrame({"x": [np.nan], "weather": ["dry"], "y": [np.nan]})
    np.testing.assert_array_equal(found.features(new, "two"), [[20, 1, 1, 0, 0, 5]])
    np.testing.assert_array_equal(found.features(new, "one"), [[2, 1, 1, 0, 0, 2]])
    with pytest.raises(ValueError, match="no fill value for column 'x' of client 'three'; it took no part"):
        found.features(new, "three")
    assert found.only("one").fills == {"one": {"x": (2.0,), "y": (2.0,)}}
    assert one.frame["x"].isna().sum() == 1  # the table stays as it is


def test_an_empty_date_gets_the_mean_of_the_calendar() -> None:
    site = table(number=[1, 2, 3], day=["2024-01-01", None, "2024-01-02"])
    x = encoding_of("mean", site=site).features(site, "site")
    np.testing.assert_allclose(x[1, 1:-1], x[[0, 2], 1:-1].mean(axis=0))
    np.testing.assert_array_equal(x[:, -1], [0, 1, 0])


@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_an_empty_cell_is_refused_when_decisions_are_asked_for(missing: Any, tmp_path: Path) -> None:
    found = encoding_of(missing, site=table(x=[1.0, 2.0]))
    (tmp_path / "new.csv").write_text("y,x\n1,1\n\n2,NA\n")
    with pytest.raises(ValueError, match=r"new\.csv, line 4, column 'x': is empty; fill it"):
        found.features(found.table(tmp_path / "new.csv"), "site")


def test_what_differs_from_training_is_refused_with_its_place(tmp_path: Path) -> None:
    found = encoding_of(site=table(x=[1.0, 2.0], day=["2024-01-01", "2024-01-02"]))
    path = tmp_path / "new.csv"
    for text, words in (
        ("x\n1\n", r"new\.csv: lacks the column 'day'; it has x"),
        ("y,z\n1,1\n", r"new\.csv: lacks the columns 'x', 'day'; it has y, z"),
        ("x,day\n1,2024-01-01\nmuch,2024-01-01\n", r"new\.csv, line 3, column 'x': must be a finite number, found 'much'"),
        ("x,day\n1,2024-01-01\n2,31.1.2024\n", r"new\.csv, line 3, column 'day': must be a date such as 2021-01-31"),
        ("x,day\n1,17\n", r"new\.csv, line 2, column 'day': must be a date"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            found.features(found.table(path), "site")
    with pytest.raises(ValueError, match="the data frame lacks the columns 'day'; it has x"):
        found.features(pd.DataFrame({"x": [1]}), "site")
    with pytest.raises(ValueError, match="the data frame, row 1, column 'x': must be a finite number, found 'a'"):
        found.features(pd.DataFrame({"x": [1, "a"], "day": ["2024-01-01"] * 2}), "site")
    with pytest.raises(ValueError, match="found ndarray"):
        found.features(np.zeros((1, 2)), "site")  # type: ignore[arg-type]


def test_sites_agree_on_what_a_column_is() -> None:
    numbers, texts = pd.Series([1, 2, 3]), pd.Series(["a", "b"])
    for told in ([summary(numbers), summary(texts)], [summary(texts), summary(numbers[:1])]):
        with pytest.raises(ValueError, match="must hold one kind of cells at all sites, found category and number"):
            agreed("x", told)
    assert agreed("x", [summary(pd.Series([1, "a", "b"])), summary(texts)]) == Column("x", "category", ("1", "a", "b"))
    assert agreed("x", [summary(pd.Series([None])), summary(texts)]).categories == ("a", "b")  # it tells nothing
    several = pd.Series(["1", "2", "2024-01-01", "2024-01-02", "a"])  # no kind has more than half
    assert agreed("x", [summary(several)]).categories == ("1", "2", "2024-01-01", "2024-01-02", "a")
    assert agreed("x", [summary(numbers)], [1, 2, 3]) == Column("x", "category", ("1", "2", "3"))
    with pytest.raises(ValueError, match="has no filled cell"):
        agreed("x", [summary(pd.Series([None, np.nan], dtype=object))])
    for cells, words in (
        (["1,5", "2,5"], "must be numbers or texts, found '1,5'; write numbers such as 1093.5"),
        (["1,234.5", "999"], "found '1,234.5'; write numbers"),
        (["1.234,5", "2 000,0", "7"], "found '1.234,5'; write numbers"),
        (["\u22125", "\u22124.5"], "found '\u22124.5'; write numbers"),
        (["5 %", "12%"], "found '12%'; write numbers"),
        (["1'200", "\u20ac 3"], 'found "1\'200"; write numbers'),
        (["12\u00a0500", "13\u202f500"], "write numbers"),
        (["31.12.2024", "1.1.2025"], "must be dates or texts, found '1.1.2025'; write dates as 2021-01-31, or list the texts"),
        (["12/31/2024", "12/30/2024 13:00"], "found '12/30/2024 13:00'; write dates as 2021-01-31"),
        ([f"{number}-" for number in range(10, 22)], "with a unit, such as '10-'; write the numbers alone"),
        (["(12.5)", "7"], "found '(12.5)'; write numbers"),
        (["5-Jan-2024", "6-Jan-2024"], "found '5-Jan-2024'; write dates"),
        (["05JAN24", "Fri, Jan 5, 2024", "5. Januar 2024 13:00", "2024-Jan-05"], "must be dates or texts"),
        (["2024-01-05 1:00 PM", "2024-01-05 2 a.m."], "found '2024-01-05 1:00 PM'; write dates"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            agreed("x", [summary(pd.Series(cells))])
        assert agreed("x", [summary(pd.Series(cells))], cells).categories == tuple(cells)  # on request
    for cells in (
        ["A-1", "7"],
        ["1.2.3", "1.2.4"],
        ["10-20", "20-30"],
        ["12:30", "13:00"],
        ["1,5", "a", "b", "c"],
        ["3-phase", "1-2 kg"],
        ["3-", "10-"],
        [f"{number}. Bezirk" for number in range(1, 24)],
        [f"{number}A" for number in range(1, 20)],
        [f"{number}e" for number in range(1, 20)],
        ["Mark 1 20", "Nova 12 24", "Octavia 4 20"],
        ["Jan", "Feb"],
        ["May 12", "Jan 2024"],
        ["12 march road"],
        ["1:00 PM", "2:00 PM"],
        ["-", "(a)"],
    ):
        assert agreed("x", [summary(pd.Series(cells))]).categories == tuple(sorted(cells))
    many = pd.Series([f"text {number}" for number in range(MOST_CATEGORIES + 1)])
    assert len(agreed("x", [summary(many[1:])]).categories) == MOST_CATEGORIES
    with pytest.raises(ValueError, match="more than 100 different texts"):
        agreed("x", [summary(many)])
    with pytest.raises(ValueError, match="cannot be printed"):
        agreed("x", [summary(pd.Series(["a\x1b", "b"]))])
    assert json.loads(json.dumps(summary(many)))["texts"] == MOST_CATEGORIES + 1  # what a site sends is plain


def test_listed_categories_may_be_words_for_nothing(tmp_path: Path) -> None:
    found = Encoding((Column("weather", "category", ("None", "007")),))
    (tmp_path / "new.csv").write_text("weather\n007\nNone\n")
    np.testing.assert_array_equal(found.features(found.table(tmp_path / "new.csv"), "site"), [[0, 1], [1, 0]])


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates(), st.datetimes(),
    st.binary(max_size=3),
    st.sampled_from(["2024-01-31", "2024-02-30", "1,5", "NA", "1e5", "٣", "inf", " 7 ", "2024-01-01 25:00", "true"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=8))
def test_cells_of_any_kind_are_read_or_refused(cells: list[Any]) -> None:
    series = pd.Series(cells, dtype=object)
    for read in (missing_in, numbers_of, dates_of, texts_of):
        assert len(read(series)) == len(cells)
    site = Table(FrameSource(pd.DataFrame({"x": series})), pd.DataFrame({"x": series}), np.arange(len(cells)))
    try:
        found = encoding_of("mean", site=site)
        x = found.encode(site, "site")
    except ValueError as error:
        x = np.zeros(0)
        message = str(error)
        assert message
    assert np.isfinite(x).all()


NAMES = st.text(min_size=1, max_size=5)
COLUMNS = st.one_of(
    st.builds(Column, NAMES, st.just("number"), flagged=st.booleans()),
    st.builds(Column, NAMES, st.just("date"), time=st.booleans(), flagged=st.booleans()),
    st.builds(Column, NAMES, st.just("category"), st.lists(NAMES, unique=True).map(tuple), flagged=st.booleans()),
)


@given(
    st.lists(COLUMNS, unique_by=lambda column: column.name).map(tuple),
    st.sampled_from(["refuse", "mean", "drop"]),
    st.dictionaries(NAMES, st.dictionaries(NAMES, st.lists(st.floats(allow_nan=False)).map(tuple))),
)
def test_an_encoding_comes_back_from_json(columns: tuple[Column, ...], missing: Any, fills: Any) -> None:
    encoding = Encoding(columns, missing, fills)
    assert Encoding.from_json(json.loads(json.dumps(encoding.as_json()))) == encoding


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_encoding_is_a_value_error(data: st.DataObject) -> None:
    value = encoding_of("mean", site=table(x=[1.0, None], weather=["a", "b"], day=["2024-01-01", None])).as_json()
    place: Any = value
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(JSON)
    try:
        Encoding.from_json(value)
    except ValueError:
        return


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="encoding: version must be 1, found 2; train again"):
        Encoding.from_json({**encoding_of(site=table(x=[1.0])).as_json(), "version": 2})
