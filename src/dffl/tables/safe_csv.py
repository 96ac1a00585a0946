"""CSV for people who open it in a spreadsheet: no cell and no heading that came from elsewhere is run as a formula.

A text that begins with =, +, -, @, a tab or a line break, perhaps after blanks, and is not a number gets an apostrophe before
it, which spreadsheets take as the sign of a text. Numbers are written as they are.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from dffl.cells import DECIMAL_COMMA, NUMBER

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""How a formula may begin; the last four are the wide forms of = + - @."""


def safe_csv(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with harmless texts, in its cells and in its headings."""
    made = table.set_axis([safe_cell(name) for name in table.columns], axis=1)
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_datetime64_any_dtype(kind):
            cells = [safe_cell(cell) for cell in table.iloc[:, place]]
            made.isetitem(place, pd.Series(cells, dtype=object).to_numpy())
    return made


def safe_cell(cell: Any) -> Any:
    """A cell or a heading that no spreadsheet runs."""
    if not isinstance(cell, str) or not cell.lstrip(" ").startswith(FORMULA):
        return cell
    plain = cell.strip()
    return cell if NUMBER.fullmatch(plain) or DECIMAL_COMMA.fullmatch(plain) else f"'{cell}"
