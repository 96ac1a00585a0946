"""Tables of CSV and Parquet: what is read, and what is refused with file, line and column."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dffl.cells import numbers_of, texts_of
from dffl.tables.columns import matching, natural
from dffl.tables.sources import Table, checked_names, load, open_source, require_columns


def read(folder: Path, content: bytes | str, name: str = "table.csv") -> Table:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = open_source(path)
    return load(source, source.columns)


READ: dict[str, tuple[bytes, dict[str, list[Any]]]] = {
    "plain": (b"a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "no line break at the end": (b"a,b\n1,x\n2,y", {"a": [1, 2], "b": ["x", "y"]}),
    "a byte-order mark": (b"\xef\xbb\xbfa,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "Windows": (b"a,b\r\n1,x\r\n2,y\r\n", {"a": [1, 2], "b": ["x", "y"]}),
    "old Mac": (b"a,b\r1,x\r2,y\r", {"a": [1, 2], "b": ["x", "y"]}),
    "quotes": (b'"a","b"\n1,"x, ""z"""\n2,"y"\n', {"a": [1, 2], "b": ['x, "z"', "y"]}),
    "blanks": (b" a , b\n 1, x \n2 ,y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "blank lines": (b"a,b\n\n1,x\n\n\n2,y\n\n", {"a": [1, 2], "b": ["x", "y"]}),
    "empty rows": (b"a,b\n1,x\n,\n2,y\nNA,\n", {"a": [1, 2], "b": ["x", "y"]}),
    "columns without a name": (b",a,b,\n0,1,x,7\n1,2,y,7\n", {"a": [1, 2], "b": ["x", "y"]}),
    "semicolons": (b"a;b\n1,5;x\n-2,25;y\n", {"a": [1.5, -2.25], "b": ["x", "y"]}),
    "semicolons and points": (b"a;b\n1.5;x\n2;y, z\n", {"a": [1.5, 2], "b": ["x", "y, z"]}),
    "semicolons and a text with commas": (b"a;b\n1,5;1,5\n2;x\n3;y\n4;z\n", {"a": [1.5, 2, 3, 4], "b": ["1,5", "x", "y", "z"]}),
    "semicolons, commas and exponents": (b"a;b\n1,5e-3;1\n-2,0E2;2\n", {"a": [0.0015, -200], "b": [1, 2]}),
    "three decimals with points that are no thousands": (b"a;b\n0.125;1.0\n1.250;2.0\n", {"a": [0.125, 1.25], "b": [1, 2]}),
    "three decimals and two": (b"a;b\n21.305;1\n20.55;2\n", {"a": [21.305, 20.55], "b": [1, 2]}),
    "points with commas between": (b"a,b\n1.061,1\n1.250,2\n", {"a": [1.061, 1.25], "b": [1, 2]}),
    "three decimals that are no thousands": (b"a;b\n0,125;1\n1,250;2\n", {"a": [0.125, 1.25], "b": [1, 2]}),
    "tabs": (b"a\tb\n1\tx\n2\ty\n", {"a": [1, 2], "b": ["x", "y"]}),
    "tabs and decimal commas": (b"a\tb\n1,5\tx\n2,5\ty\n", {"a": [1.5, 2.5], "b": ["x", "y"]}),
    "one column": (b"a\n1\n2\n", {"a": [1, 2]}),
    "other letters": ("höhe,b\n1,é\n2,日\n".encode(), {"höhe": [1, 2], "b": ["é", "日"]}),
    "truth": (b"a,b\ntrue,x\nFalse,y\n", {"a": [1, 0], "b": ["x", "y"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_clear_is_read(tmp_path: Path, name: str) -> None:
    content, expected = READ[name]
    table = read(tmp_path, content)
    assert table.frame.to_dict("list") == expected
    pd.testing.assert_frame_equal(read(tmp_path, gzip.compress(content), "table.csv.gz").frame, table.frame)


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "table.csv: its first line must name the columns, found nothing there"),
    "a blank first line": (b"\na,b\n1,2\n", "table.csv: its first line must name the columns, found nothing there"),
    "a header": (b"a,b\n", "table.csv: must have at least one row below its header, found none"),
    "a header without a line break": (b"a,b", "table.csv: must have at least one row below its header, found none"),
    "a header and blank lines": (b"a,b\n\n\n", "table.csv: must have at least one row below its header, found none"),
    "a column twice": (b"a,b,a\n1,2,3\n", "table.csv: two columns are named 'a'; rename one"),
    "a column twice, but for blanks": (b"a,b,a \n1,2,3\n", "table.csv: two columns are named 'a'; rename one"),
    "too many cells": (b"a,b\n1,2\n\n3,4,5\n", "table.csv, line 4: has 3 cells, where 2 were expected; write decimals"),
    "too few cells": (b"a,b\n1,2\n3\n", "table.csv, line 3: has 1 cells, where 2 were expected"),
    "blanks in a line": (b"a,b\n1,2\n  \n", "table.csv, line 3: has 1 cells, where 2 were expected"),
    "a comma at each end": (b"a,b\n1,2,\n3,4,\n", "table.csv, line 2: has 3 cells, where 2 were expected"),
    "decimal commas": (b"a,b\n1,5,2\n", "table.csv, line 2: has 3 cells, where 2 were expected; write decimals with a point"),
    "a cell of two lines": (b'a,b\n1,x\n2,"y\nz"\n', "table.csv, line 3, column 'b': a cell goes over several lines"),
    "a stray quote": (b'a,b\n1,"x\n2,y\n', "table.csv, line 2, column 'b': a cell goes over several lines"),
    "a name of two lines": (b'"a\nz",b\n1,2\n', "table.csv, line 1: a name goes over several lines"),
    "Latin 1": ("a,b\n1,x\n2,é\n".encode("latin-1"), "table.csv, line 3: cannot be read as CSV, as it is not text in UTF-8"),
    "Latin 1 in the header": ("é,b\n1,x\n".encode("latin-1"), "table.csv, line 1: cannot be read as CSV, as it is not text"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "table.csv: cannot be read as CSV, as it is not text in UTF-8"),
    "Excel": (b"PK\x03\x04rest", "table.csv: is a zip or Excel file, not CSV"),
    "gzip without its ending": (gzip.compress(b"a,b\n1,2\n"), "table.csv: is compressed by gzip, not CSV"),
    "Parquet without its ending": (b"PAR1rest", "table.csv: is Parquet, not CSV"),
    "a note for Excel": (b"sep=;\na;b\n1;2\n", "table.csv, line 1: is a note for Excel, 'sep=;'; delete this line"),
    "a note for Excel, quoted": (b'\xef\xbb\xbf"sep=,"\r\na,b\r\n1,2\r\n', "table.csv, line 1: is a note for Excel, 'sep=,'"),
    "two signs": (b"a;b,c\n1;2,3\n", "table.csv, line 1: has commas and semicolons between the names"),
    "thousands or decimals": (b"a;b\n1,234;x\n2,500;y\n", "table.csv, column 'a': '1,234' may be a decimal or thousands"),
    "thousands or decimals with points": (
        b"a;b\n904;x\n1.061;y\n", "table.csv, line 3, column 'a': '1.061' may be a decimal or thousands; write thousands",
    ),
    "whole thousands with points": (b"a\tb\n1.000\tx\n2.000\ty\n", "table.csv, line 2, column 'a': '1.000' may be a decimal"),
    "points and commas": (b"a;b\n1,25;1.5\n2,5;2.5\n", "table.csv: has decimal commas in column 'a' and decimal points"),
    "a steering character": (b"a\x1b,b\n1,2\n", "table.csv: the column 'a\\x1b' has a character that cannot be printed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_clear_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    content, expected = REFUSED[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path}/{expected}")


def test_damaged_compressed_files_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    damaged = {"cut.csv.gz": whole[:-20], "no.csv.gz": b"a,b\n1,2\n"}
    for name, content in (damaged | dict.fromkeys(("no.zip", "no.csv.xz", "no.csv.bz2", "no.csv.zst"), b"a")).items():
        with pytest.raises(ValueError, match=f"{name}: cannot be read as CSV"):
            read(tmp_path, content, name)
    for name in ("no.parquet", "no.pq"):
        with pytest.raises(ValueError, match=f"{name}: cannot be read as Parquet"):
            read(tmp_path, b"PAR1 or not", name)


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b\n1,"x"\n\n2,y\n,\n3,z\n')
    path = tmp_path / "table.csv"
    assert [table.at(row) for row in range(3)] == [f"{path}, line {line}" for line in (2, 4, 6)]
    assert table.take(np.array([2])).at(0, "b") == f"{path}, line 6, column 'b'"
    pd.DataFrame({"a": [1, None, 2]}).to_parquet(tmp_path / "table.parquet")
    source = open_source(tmp_path / "table.parquet")
    assert load(source, ["a"]).at(1, "a") == f"{tmp_path}/table.parquet, row 3, column 'a'"


def test_a_row_with_a_name_is_no_empty_row(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("name,x\na,1\nb,\n,\n")
    assert len(load(open_source(tmp_path / "table.csv"), ["x"])) == 2


def test_texts_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("key,x\n007,1\nNA,2\n,3\ntrue,4\n")
    source = open_source(tmp_path / "table.csv")
    assert load(source, ["x", "key"], ["key"]).frame["key"].fillna("-").tolist() == ["007", "NA", "-", "true"]
    (tmp_path / "table.csv").write_text("x,at\n1,13:00\n2,07:30\n3,\n")  # as categories, in training and when deciding
    for texts in ([], ["at"]):
        found = load(open_source(tmp_path / "table.csv"), ["at", "x"], texts).frame
        assert found["at"].tolist()[:2] == ["13:00", "07:30"]
        assert found["x"].tolist() == [1, 2, 3]
    pd.DataFrame({"key": [7, 8], "open": [True, False]}).to_parquet(tmp_path / "table.parquet")
    found = load(open_source(tmp_path / "table.parquet"), ["key", "open"], ["key", "open"]).frame
    assert found.to_dict("list") == {"key": ["7", "8"], "open": ["true", "false"]}


def test_hexadecimal_cells_are_texts_as_they_are_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b,c,d\n0x1F,1,0X10,0x text\n2,30,,3\n")
    frame = load(open_source(path), ["a", "b", "c", "d"]).frame
    assert frame["a"].tolist() == ["0x1F", "2"]
    assert frame["b"].tolist() == [1, 30]
    assert frame["c"].iloc[0] == "0X10"
    np.testing.assert_array_equal(numbers_of(frame["a"]), [np.nan, 2])


def test_types_of_parquet(tmp_path: Path) -> None:
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({
            "money": pa.array([Decimal("1.50"), None]),
            "day": pa.array([19000, None], pa.date32()),
            "word": pa.array([" a ", None]).dictionary_encode(),
            "flag": pa.array([True, None]),
            "clock": pa.array([3600, None], pa.time32("s")),
            "none": pa.nulls(2),
            "small": pa.array([1, None], pa.uint8()),
            "list": pa.array([[1], [2]]),
        }),
        tmp_path / "table.parquet",
    )  # fmt: skip
    source = open_source(tmp_path / "table.parquet")
    found = load(source, ["money", "day", "word", "flag", "clock", "none", "small"]).frame.iloc[0]
    assert found[["money", "word", "flag", "small"]].tolist() == [1.5, "a", 1.0, 1]
    assert found["clock"].startswith("01:00:00")
    assert str(found["day"].date()) == "2022-01-08"
    with pytest.raises(ValueError, match="column 'list' must hold one number, text or date per row, found list"):
        load(source, ["list"])


@pytest.mark.parametrize("scale", [0, 9])
def test_long_numbers_keep_their_digits_as_texts(scale: int, tmp_path: Path) -> None:
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = ["12345678901234567890", "12345678901234567891", "0"]
    long = pa.array([Decimal(number) for number in numbers], pa.decimal128(38, scale))
    money = pa.array([Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(20, 2))
    pq.write_table(pa.table({"customer": long, "money": money}), tmp_path / "table.parquet")
    found = load(open_source(tmp_path / "table.parquet"), ["customer", "money"], ["customer", "money"]).frame
    assert found["customer"].tolist() == numbers
    assert texts_of(found["money"]).tolist() == ["1.5", "0", ""]


def test_thousands_of_columns_are_read(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(20_000)]
    table = read(tmp_path, ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert table.frame.shape == (1, 20_000)
    assert matching("c*", table.source.columns) == names


def test_columns_by_patterns() -> None:
    columns = ["price_10", "price_2", "temp", "price_1", "a*"]
    assert matching("price_*", columns) == ["price_1", "price_2", "price_10"]
    assert matching(["temp", "price_?", "temp"], columns) == ["temp", "price_1", "price_2"]
    assert matching(["a*", "gone"], columns) == ["a*", "gone"]
    assert matching("*", columns) == ["a*", "price_1", "price_2", "price_10", "temp"]
    assert matching("t*", columns) == ["temp"]
    assert sorted(["x9" + "0" * 5000, "x2", "x02", "x"], key=natural)[:3] == ["x", "x02", "x2"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=80), st.text('ab",;\n\r\t 0123456789.-eNA\ufeff', max_size=80).map(str.encode)))
def test_any_bytes_are_read_or_a_value_error(tmp_path: Path, content: bytes) -> None:
    try:
        table = read(tmp_path, content)
    except ValueError:
        return
    assert len(table) > 0
    for row in range(len(table)):
        assert table.at(row).startswith(f"{tmp_path}/table.csv, line ")
        assert table.cell(row, table.source.columns[0]) is not None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1, max_size=6))
def test_numbers_come_back_bit_for_bit(tmp_path: Path, values: list[list[float]]) -> None:
    frame = pd.DataFrame(values, columns=["a", "b"])
    np.testing.assert_array_equal(read(tmp_path, frame.to_csv(index=False)).frame.to_numpy(float), frame.to_numpy())


@pytest.mark.parametrize("cell", ["calm", "1.093,01", "k.A."])
def test_a_cell_that_spoils_decimal_commas_is_named_and_not_the_others(cell: str, tmp_path: Path) -> None:
    rows = "".join(f"{1 + row},5;{2 + row},25\n" for row in range(9))
    (tmp_path / "north.csv").write_text(f"temp;price_1\n{rows}{cell};3,5\n7,5;\n")
    with pytest.raises(ValueError, match=rf"north.csv, line 11, column 'temp': must be a number .* found '{cell}'"):
        open_source(tmp_path / "north.csv").load(["temp", "price_1"])


def test_names_of_columns_are_each_looked_at_once() -> None:
    class Counted(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, str(other))

        __hash__ = str.__hash__

    names: list[Any] = [Counted(f"column {number}") for number in range(3_000)]
    assert checked_names(Path("wide.csv"), names) == names
    assert Counted.compared <= 10 * len(names)
    with pytest.raises(ValueError, match=r"^wide\.csv: two columns are named 'column 5'; rename one$"):
        checked_names(Path("wide.csv"), [*names, names[5]])


@pytest.mark.parametrize(
    ("needed", "others", "hint"),
    [
        (["dnn_9", "dnn_19"], [], ""),  # the other one is needed itself
        (["dnn_9"], [], ""),  # another number is no slip of the pen
        (["mine_1"], ["price_1"], ""),  # it has another use
        (["mine_1"], [], "; did you mean 'price_1'?"),
        (["temq"], [], "; did you mean 'temp'?"),
        (["dnm_19"], ["price_1"], "; did you mean 'dnn_19'?"),
    ],
)
def test_the_hint_for_a_missing_column(tmp_path: Path, needed: list[str], others: list[str], hint: str) -> None:
    (tmp_path / "t.csv").write_text("temp,dnn_19,price_1\n1,2,3\n")
    source = open_source(tmp_path / "t.csv")
    with pytest.raises(
        ValueError, match=re.escape(f"lacks the column {needed[0]!r}{hint}; it has temp, dnn_19, price_1") + "$"
    ):
        require_columns(source, needed, others)
