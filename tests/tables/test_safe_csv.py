"""Tables that people open in a spreadsheet: no text in them is run as a formula, and no number changes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dffl.cells import FORMULA, safe_csv
from dffl_studies.running.render import to_csv
from dffl_studies.running.tables import Cell, Table, Value


def test_texts_that_begin_like_a_formula_get_an_apostrophe() -> None:
    cells = ["=1+1", "+cmd", "-cmd", "@x", "\tx", "\rx", "\uff1dx", "-", " =1", "plain", "", "-1e5", "+.5", "-1,5", "a=b"]
    wanted = [f"'{cell}" for cell in cells[:9]] + cells[9:]
    assert safe_csv(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))["x"].tolist() == wanted
    for kind in ("string", "category"):
        assert safe_csv(pd.DataFrame({"x": pd.Series(cells, dtype=kind)}))["x"].tolist()[:10] == wanted[:10]


def test_headings_are_texts_too_and_numbers_stay() -> None:
    table = pd.DataFrame([[-1.5, -2, pd.Timestamp("2024-01-01"), True]], columns=["=a", "-1", "@b", "=a"])
    made = safe_csv(table)
    assert list(made.columns) == ["'=a", "-1", "'@b", "'=a"]
    assert made.to_csv(index=False, header=False) == table.to_csv(index=False, header=False)
    assert list(table.columns) == ["=a", "-1", "@b", "=a"]  # the table itself stays


def test_names_of_clients_in_the_tables_of_studies() -> None:
    cell = Cell(("=cmd",), "-mean", Value(-1.5, 0.5))
    read = pd.read_csv(io.StringIO(to_csv(Table("t", "title", ("=zone",), [cell], ""))))
    assert read.loc[0, ["'=zone", "statistic", "ours"]].tolist() == ["'=cmd", "'-mean", -1.5]


@given(st.lists(st.text(max_size=5) | st.floats() | st.none(), min_size=1, max_size=5))
def test_no_cell_of_any_table_begins_a_formula(cells: list[object]) -> None:
    for cell, made in zip(cells, safe_csv(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))["x"], strict=True):
        if isinstance(made, str) and made.lstrip(" ").startswith(FORMULA):
            assert np.isfinite(float(made.strip().replace(",", "."))) or "," in made
        assert made is cell or made == cell or made == f"'{cell}" or (pd.isna(cell) and pd.isna(made))
