"""Columns of Arrow, as Parquet and DuckDB give them, as columns of pandas: numbers, moments or texts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def require_plain(path: Path, name: str, kind: Any) -> None:
    """Refuse a column whose cells are lists, bytes or spans of time."""
    odd = (
        pa.types.is_nested,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_interval,
    )
    if any(is_one(kind) for is_one in odd):
        raise ValueError(f"{path}: column {name!r} must hold one number, text or date per row, found {kind}")


def cells_of(column: Any, as_text: bool = False) -> pd.Series:
    """The cells of a column; as texts, whole numbers and truth values are written out."""
    kind = column.type
    if as_text and pa.types.is_decimal(kind):  # long numbers of customers, say: all their digits count
        with suppress(pa.ArrowInvalid):  # it holds fractions, which floats are enough for
            column = column.cast(pa.decimal256(76, 0)).cast(pa.string())
    elif as_text and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        column = column.cast(pa.string())
    return prepared(column).to_pandas()


def prepared(column: Any) -> Any:
    """A column of which pandas makes numbers, moments or texts; blanks around texts are removed."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    if pa.types.is_null(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_time(kind):
        return column.cast(pa.string())
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column.cast(pa.timestamp("s")) if pa.types.is_date(kind) else column
