"""Dates in forms that are not read, and two rows of one moment: file, line, cell and what to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl.tables.description import DescriptionError, read
from dffl.tables.kinds import year_first
from dffl.tables.over_time import require_order

TOML = """[federation]
features = ["temp"]
costs = "price_*"
order = "day"

[[client]]
name = "north"
table = "north.csv"
{more}set = {{ type = "top-k", k = 1 }}
"""
DAYS = [str(day) for day in np.datetime64("2015-11-20") + np.arange(20)]


def write(folder: Path, days: list[str], test: list[str] | None = None) -> Path:
    for name, some in (("north.csv", days), ("later.csv", test or [])):
        rng = np.random.default_rng(len(name))
        pd.DataFrame({"day": some, "temp": rng.normal(size=len(some)), "price_1": 1.0, "price_2": 2.0}).to_csv(
            folder / name, index=False
        )
    path = folder / "federation.toml"
    path.write_text(TOML.format(more='test = "later.csv"\n' if test else ""))
    return path


READ = "2021-01-31, 2021/01/31 or 2021-01-31 13:00"


@pytest.mark.parametrize(
    ("form", "found", "fix"),
    [
        ("%d/%m/%Y", "20/11/2015", f"write the year first, here 2015-11-20; read are {READ}"),
        ("%m/%d/%Y", "11/20/2015", f"write the year first, here 2015-11-20; read are {READ}"),
        ("%d.%m.%Y %H:%M", "20.11.2015 00:00", f"write the year first, here 2015-11-20; read are {READ}"),
        ("%d-%b-%Y", "20-Nov-2015", f"write the year first, as in {READ}"),
    ],
)
def test_an_order_of_dates_in_another_form_is_named_with_its_cell(tmp_path: Path, form: str, found: str, fix: str) -> None:
    days = list(pd.to_datetime(DAYS).strftime(form))
    with pytest.raises(DescriptionError) as raised:
        read(write(tmp_path, days))
    wanted = f"must be a date such as 2021-01-31, or a number, found {found!r}; {fix} (and 19 more such cells in this column)"
    assert raised.value.problems == [f"{tmp_path / 'north.csv'}, line 2, column 'day': {wanted}"]


def test_one_date_in_another_form_is_named_among_others(tmp_path: Path) -> None:
    days = ["5/6/2015", *DAYS[1:]]
    with pytest.raises(DescriptionError) as raised:
        read(write(tmp_path, days))
    may = f"it may be 2015-05-06 or 2015-06-05, so write the year first, as in {READ}"
    wanted = f"must be a date such as 2021-01-31 or 2021-01-31 13:00, found '5/6/2015'; {may}"
    assert raised.value.problems == [f"{tmp_path / 'north.csv'}, line 2, column 'day': {wanted}"]


def test_texts_in_an_order_are_no_numbers(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="must be a date such as 2021-01-31, or a number, found 'week 0'"):
        read(write(tmp_path, [f"week {number}" for number in range(20)]))


def test_what_a_date_may_mean() -> None:
    assert year_first("5/5/2015") == f"write the year first, here 2015-05-05; read are {READ}"
    assert year_first("31/31/2015") == f"write the year first; read are {READ}"
    assert year_first("5.6.15") == f"write the year first, as in {READ}"


def test_two_rows_of_one_moment_have_their_places(tmp_path: Path) -> None:
    assert read(write(tmp_path, DAYS)).twice == {}
    found = read(write(tmp_path, [*DAYS[:6], DAYS[3], *DAYS[6:]]))
    said = f"{tmp_path / 'north.csv'}, line 8, column 'day': two rows are of 2015-11-23, this one and line 5"
    assert found.twice == {"north": said}
    with pytest.raises(ValueError, match=r"line 5 \(client 'north'\); decisions over time need one row for each moment: put"):
        require_order(found)


def test_two_rows_of_one_moment_in_two_tables(tmp_path: Path) -> None:
    found = read(write(tmp_path, DAYS[:12], [DAYS[4], *DAYS[12:]]))
    north, later = tmp_path / "north.csv", tmp_path / "later.csv"
    said = f"{later}, line 2, column 'day': two rows are of 2015-11-24, this one and {north}, line 6"
    assert found.twice == {"north": said}


def test_dropping_nearly_all_rows_names_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path, DAYS)
    path.write_text(path.read_text().replace("[federation]", '[federation]\nmissing = "drop"'))
    table = pd.read_csv(tmp_path / "north.csv")
    table.loc[:9, "price_1"] = np.nan
    table.loc[9:17, "temp"] = np.nan
    table.to_csv(tmp_path / "north.csv", index=False)
    with pytest.raises(DescriptionError) as raised:
        read(path)
    what = "18 of 20 rows have an empty cell among the features and costs (10 in 'price_1', 9 in 'temp')"
    fix = "too few are left: fill some of them, or leave those columns out"
    assert raised.value.problems == [f"{tmp_path / 'north.csv'}: {what}; {fix}"]
