"""The cells of a column: numbers, dates or texts. Columns come from CSV, Parquet, databases or data frames.

Texts that look the same are the same: `ü` can be stored as one character or as a `u` with a combining mark. All texts of
cells, names of columns and names in a federation's file are composed (Unicode NFC). Paths and queries are not changed,
because files are found by their exact name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

EMPTY = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"]
"""Texts that count as an empty cell. In a key column only "" does: a client may be called NA."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
MOMENT = re.compile(r"(\d{4})([-/])(\d\d?)\2(\d\d?)(?:[T ](\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s?(Z|[+-]\d\d:?\d\d)?)?")
"""A day, or a day and a time, perhaps with an offset from UTC."""
TRUTH = {"true": 1.0, "false": 0.0}
BLANK = frozenset(EMPTY)
A_MOMENT = "a date such as 2024-09-01 or a number, as the column under order has them"
"""The forms of a moment, for messages."""
ELSEWHERE = ("table", "test", "path", "file", "query")
"""Keys of a federation's file whose texts are not names of its columns."""


def missing_in(cells: pd.Series, known: Collection[str] = ()) -> np.ndarray:
    """Which cells are empty. A word such as None is not empty if it is ``known``: a category may have this name."""
    empty = np.asarray(cells.isna(), bool)
    if _plain(cells):
        return empty
    words = BLANK.difference(known)
    return empty | _each(cells, lambda value: isinstance(value, str) and value.strip() in words, bool, False)


def numbers_of(cells: pd.Series) -> np.ndarray:
    """The cells as numbers; NaN if a cell is not a number. True and false are 1 and 0."""
    if pd.api.types.is_datetime64_any_dtype(cells) or pd.api.types.is_timedelta64_dtype(cells):
        return np.full(len(cells), np.nan)
    if _plain(cells):
        return cells.to_numpy(np.float64, na_value=np.nan)
    return _each(cells, _number, np.float64, np.nan)


def dates_of(cells: pd.Series) -> np.ndarray:
    """The cells as moments in seconds, by the clock as it is written; NaT if a cell is not a date. See `offsets_of`."""
    nat = np.datetime64("NaT", "s")
    if pd.api.types.is_datetime64_any_dtype(cells):
        clock = cells.dt.tz_localize(None) if getattr(cells.dtype, "tz", None) is not None else cells
        return clock.to_numpy().astype("datetime64[s]")
    if _plain(cells):
        return np.full(len(cells), nat)
    return _each(cells, _moment, "datetime64[s]", nat)


def offsets_of(cells: pd.Series) -> np.ndarray:
    """The offset from UTC of each date, in seconds; NaN if a cell has no offset, or is not a date."""
    if pd.api.types.is_datetime64_any_dtype(cells):
        if getattr(cells.dtype, "tz", None) is None:
            return np.full(len(cells), np.nan)
        ahead = cells.dt.tz_localize(None) - cells.dt.tz_convert("UTC").dt.tz_localize(None)
        return ahead.dt.total_seconds().to_numpy(np.float64)
    return np.full(len(cells), np.nan) if _plain(cells) else _each(cells, _offset, np.float64, np.nan)


def instants_of(cells: pd.Series) -> np.ndarray:
    """Like `dates_of`, but in UTC if a date has an offset. Rows are ordered by it."""
    return dates_of(cells) - np.nan_to_num(offsets_of(cells)).astype("timedelta64[s]")


def moment_kind(cells: pd.Series) -> str | None:
    """The kind of dates if most cells are dates: "offset" if all of them are instants, else "date". None for other cells."""
    if 2 * (~np.isnat(dates_of(cells))).sum() <= len(cells):
        return None
    return "date" if np.isnan(offsets_of(cells)).any() else "offset"


def texts_of(cells: pd.Series) -> np.ndarray:
    """The cells as texts without blanks around them; "" for an empty cell."""
    return _each(cells, text_of, object, "")


def text_of(value: Any) -> str:
    """A cell as a text. Whole numbers have no point, although pandas stores them as fractions in columns with empty cells."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    return composed(str(value)).strip()


def _plain(cells: pd.Series) -> bool:
    """Whether pandas has made the cells numbers, truth values or moments already."""
    kind = cells.dtype
    return not (
        isinstance(kind, pd.CategoricalDtype) or pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind)
    )


def _each(cells: pd.Series, change: Callable[[Any], Any], kind: Any, empty: Any) -> np.ndarray:
    """The result of a function for each cell. Cells repeat, so the function is called once for each different cell."""
    values: Sequence[Any] | pd.Index
    if cells.dtype == object:  # 1, 1.0 and True are equal, but different texts
        seen: dict[Any, int] = {}
        filled = (None if _is_empty(value) else value for value in cells)
        codes = np.array([-1 if value is None else seen.setdefault(_key(value), len(seen)) for value in filled], int)
        values = [value for _, value in seen]
    else:
        codes, values = pd.factorize(cells)
    results = np.empty(len(values) + 1, dtype=kind)
    for place, value in enumerate(values):
        results[place] = change(value)
    results[-1] = empty  # a cell without a value has the code -1
    return results[codes]


def _key(value: Any) -> tuple[type, Any]:
    try:
        hash(value)
    except TypeError:  # a list in a data frame
        return str, str(value)
    return type(value), value


def _is_empty(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value)


def _number(value: Any) -> float:
    if isinstance(value, str):
        text = value.strip()
        return float(text) if NUMBER.fullmatch(text) else TRUTH.get(text.lower(), np.nan)
    if isinstance(value, datetime | date | bytes):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf  # a whole number with hundreds of digits: refused because it is not finite
    except (TypeError, ValueError):
        return np.nan


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return np.datetime64(value.replace(tzinfo=None), "s")
    if isinstance(value, date):
        return np.datetime64(value, "s")
    match = MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return np.datetime64("NaT", "s")
    year, month, day, hour, minute, second = (int(match[group] or 0) for group in (1, 3, 4, 5, 6, 7))
    try:
        return np.datetime64(datetime(year, month, day, hour, minute, second), "s")
    except ValueError:  # the 30th of February
        return np.datetime64("NaT", "s")


def _offset(value: Any) -> float:
    if isinstance(value, datetime):
        ahead = value.utcoffset()
        return np.nan if ahead is None else ahead.total_seconds()
    match = MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[8] is None:
        return np.nan
    if match[8] == "Z":
        return 0.0
    hours, minutes = int(match[8][1:3]), int(match[8][-2:])
    return (-1 if match[8][0] == "-" else 1) * 60.0 * (60 * hours + minutes)


def composed(text: str) -> str:
    """A text in composed form (NFC)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def composed_name(text: Any) -> str:
    """A column's name in composed form, without blanks around it."""
    return composed(str(text)).strip()


def composed_content(content: Any) -> Any:
    """The content of a federation's file, with names and texts in composed form."""
    if isinstance(content, str):
        return composed(content)
    if isinstance(content, list):
        return [composed_content(inner) for inner in content]
    if not isinstance(content, Mapping) or content.get("type") == "file":  # a model file has its own names
        return content
    return {
        composed(key): value if key in ELSEWHERE and not isinstance(value, list) else composed_content(value)
        for key, value in content.items()
    }


def moment_of(value: Any) -> float | None:
    """A moment as a number, or as seconds since 1970 for a date; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if np.isfinite(value) else None
    if not isinstance(value, str | date | datetime):
        return None
    moment = instants_of(pd.Series([value], dtype=object))[0]
    return None if np.isnat(moment) else float(moment.astype(np.int64))


def shown_moment(moment: float, dates: bool) -> str:
    """A moment, for a message."""
    if not dates:
        return f"{moment:g}"
    return str(moment_value(moment, dates))


def moment_value(moment: float, dates: bool) -> int | float | date:
    """A moment in the form of a federation's file."""
    if not dates:
        return int(moment) if moment.is_integer() else moment
    clock = datetime.fromisoformat(str(np.datetime64(int(moment), "s")))
    return clock.date() if clock.time() == datetime.min.time() else clock


FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The first characters of formulas; the last four are the wide forms of = + - @."""


def safe_csv(table: pd.DataFrame) -> pd.DataFrame:
    """A copy of the table whose texts and headings no spreadsheet runs as formulas."""
    renamed = table.set_axis([safe_cell(name) for name in table.columns], axis=1)
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_datetime64_any_dtype(kind):
            cells = [safe_cell(cell) for cell in table.iloc[:, place]]
            renamed.isetitem(place, pd.Series(cells, dtype=object).to_numpy())
    return renamed


def safe_cell(cell: Any) -> Any:
    """A cell or a heading that no spreadsheet runs as a formula."""
    if not isinstance(cell, str) or not cell.lstrip(" ").startswith(FORMULA):
        return cell
    plain = cell.strip()
    return cell if NUMBER.fullmatch(plain) or DECIMAL_COMMA.fullmatch(plain) else f"'{cell}"
