"""Any table: keys and dates as texts, numbers that are finite, and messages that name file, line and column."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl.named import listed
from dffl_studies.energy.input_table import InputTable, read_day, read_table
from studies.tests.energy.data.made import refused

CLIENT = ("client", "name")


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_keys_are_texts_and_only_an_empty_one_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "client,shop,x\nNA,NA,1\n007,007,NA\n1.0,1.0,3\n")
    table = InputTable.read(path, CLIENT)
    assert table.keys.tolist() == ["NA", "007", "1.0"]
    assert [table.line(row) for row in range(3)] == ["line 2", "line 3", "line 4"]
    assert np.isnat(table.dates).all()
    np.testing.assert_array_equal(table.numbers("x"), [1, np.nan, 3])
    np.testing.assert_array_equal(table.numbers("shop"), [np.nan, 7, 1])  # the table has another key
    assert InputTable.read(path, ("shop",)).keys.tolist() == ["NA", "007", "1.0"]
    with refused(f"{path}, line 3: client is empty; name the client, or remove the line"):
        InputTable.read(write(tmp_path, "client,x\nNA,1\n,2\n"), CLIENT)


def test_the_key_has_the_first_of_its_names_that_is_a_column(tmp_path: Path) -> None:
    path = write(tmp_path, "name,x\nA,1\nA,2\n")
    assert InputTable.read(path, CLIENT).keys.tolist() == ["A", "A"]
    with refused(f"{path}, line 3: client A: a second row for this client, after line 2; keep one"):
        InputTable.read(path, CLIENT).refuse_repeats()
    with refused(f"{path}: must have a column 'zone', found name, x"):
        InputTable.read(path, ("zone", "shop"))


def test_a_key_may_come_again_on_another_date(tmp_path: Path) -> None:
    path = write(tmp_path, "day,client\n20210101,A\n2021/1/2,A\n2021-01-01,B\n2021-01-01T00:00,A\n")
    table = InputTable.read(path, CLIENT, "day")
    assert table.dates.astype(str).tolist() == ["2021-01-01", "2021-01-02", "2021-01-01", "2021-01-01"]
    table.kept(np.array([True, True, True, False])).refuse_repeats()
    with refused(f"{path}, line 5: client A, 2021-01-01: a second row for this client and day, after line 2; keep one"):
        table.refuse_repeats()


@pytest.mark.parametrize(
    ("cell", "found"),
    [("inf", "'inf'"), ("-1e999", "'-inf'"), ("many", "'many'"), ('"1,5"', "'1,5'; write decimals with a point")],
)
def test_numbers_are_finite(tmp_path: Path, cell: str, found: str) -> None:
    path = write(tmp_path, f"client,x\nA,1\nB,{cell}\n")
    with refused(f"{path}, line 3: client B: x must be a finite number, found {found}"):
        InputTable.read(path, CLIENT).numbers("x")


def test_a_cell_that_must_not_be_empty_is_named(tmp_path: Path) -> None:
    table = InputTable.read(write(tmp_path, "client,x\nA,1\n\nB,NaN\n"), CLIENT)
    with refused(f"{table.path}, line 4: client B: x is missing; fill it, or leave that row out"):
        table.complete("x")
    with refused(f"{table.path}: must have a column 'y', found client, x"):
        table.complete("y")


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\x9b", "\u202e", "\u00a0"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_characters_that_cannot_be_printed_are_refused_in_names_of_columns_and_in_keys(
    tmp_path: Path, sign: str, suffix: str
) -> None:
    name, path = f"a{sign}[31mb", tmp_path / f"table.{suffix}"

    def read(table: pd.DataFrame) -> InputTable:
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
        return InputTable.read(path, CLIENT)

    at = "line 3" if suffix == "csv" else "row 2"
    message = f"{path}, {at}: client {name!r} has a character that cannot be printed; rename it"
    assert sign not in message
    with refused(message):
        read(pd.DataFrame({"client": ["A", name], "x": [1, 2]}))
    with refused(f"{path}: the column {name!r} has a character that cannot be printed; rename it"):
        read(pd.DataFrame({"client": ["A"], name: [1]}))
    assert read(pd.DataFrame({"client": [f"{name[0]} b"], "x": [1]})).keys.tolist() == ["a b"]


def test_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, ",client,,__index_level_0__,x\n0,A,7,7,1\n1,B,7,7,2\n"), CLIENT)
    assert table.frame.columns.tolist() == ["client", "x"]
    assert [table.at(row) for row in range(2)] == [f"{tmp_path / 'table.csv'}, line {line}" for line in (2, 3)]


DAYS: dict[str, date | None] = {
    "2021-01-31": date(2021, 1, 31),
    "20210131": date(2021, 1, 31),
    " 2021/1/3 ": date(2021, 1, 3),
} | dict.fromkeys(("2021-02-30", "31.1.2021", "2021-1/3", "2021-01-31T05:00", "January", ""))


@pytest.mark.parametrize(("text", "day"), DAYS.items())
def test_a_day_is_read_in_one_way_everywhere(text: str, day: date | None) -> None:
    if day is not None:
        assert read_day("--split", text) == day
        return
    with refused(f"--split must be a day such as 2021-01-31, found {text!r}"):
        read_day("--split", text)


def test_long_lists_of_names_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(5)), 3) == "0, 1, 2 and 2 more"


def test_a_cell_over_several_lines_is_refused_as_two_stray_quotes_swallow_rows(tmp_path: Path) -> None:
    rows = [f"c{row},{row},note" for row in range(40)]
    rows[10], rows[20] = 'c10,10,"open', 'c20,20,close"'
    path = write(tmp_path, "client,x,text\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=r"table.csv, line 12, column 'text': a cell goes over several lines; remove"):
        InputTable.read(path, CLIENT)


@pytest.mark.parametrize("values", [[[1.0], [2.0]], [{"a": 1}, {"a": 2}], [b"a", b"b"]])
def test_a_parquet_column_of_lists_or_bytes_is_refused(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "table.parquet"
    for column in ("client", "x"):
        pd.DataFrame({"client": ["a", "b"], "x": [1, 2]} | {column: values}).to_parquet(path)
        with pytest.raises(
            ValueError, match=rf"table.parquet: column '{column}' must hold one number, text or date per row, found"
        ):
            InputTable.read(path, CLIENT)


def test_large_whole_keys_of_parquet_stay_apart_beside_an_empty_row(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pd.DataFrame({"client": pd.array([2**53, 2**53 + 1, None], "Int64"), "x": [1.0, 2.0, None]}).to_parquet(path)
    assert InputTable.read(path, CLIENT).keys.tolist() == [str(2**53), str(2**53 + 1)]


@pytest.mark.parametrize("name", ["x.csv.zst", "x.tar.gz", "digits.csv"])
def test_what_pandas_cannot_read_is_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"client,x\n" + b"a," + b"9" * 400 + b"\n" if name.startswith("digits") else b"nothing of the kind")
    with pytest.raises(ValueError, match=name) as refusal:
        InputTable.read(path, CLIENT).numbers("x")
    assert "\n" not in str(refusal.value)
