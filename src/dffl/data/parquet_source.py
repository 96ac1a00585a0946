"""Tables in Parquet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dffl.data.tables import _checked_names, _is_unnamed, _tried


class ParquetSource:
    """A Parquet file. Messages count its rows from 1."""

    def __init__(self, path: Path):
        self.path, self.name = path, str(path)
        schema = _tried(path, "Parquet", lambda: pq.read_schema(path))
        raw = [name for name in schema.names if not _is_unnamed(name)]
        self.columns = _checked_names(path, [name.strip() for name in raw])
        self._raw = dict(zip(self.columns, raw, strict=True))
        self._types = {name: schema.field(own).type for name, own in self._raw.items()}

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        for name in columns:
            kind = self._types[name]
            if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
                raise ValueError(f"{self.path}: column {name!r} must hold one number, text or date per row, found {kind}")
        return _tried(self.path, "Parquet", lambda: self._load(columns, texts))

    def _load(self, columns: Sequence[str], texts: Collection[str]) -> pd.DataFrame:
        made = {}
        with pq.ParquetFile(self.path) as file:
            for name in columns:  # one by one: else a large table is in memory twice, as it is read and as it is used
                column = file.read(columns=[self._raw[name]]).column(0)
                as_text = name in texts and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
                made[name] = as_pandas(column.cast(pa.string()) if as_text else column)
        return pd.DataFrame(made, copy=False)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def as_pandas(column: Any) -> pd.Series:
    """A column of Arrow as pandas has it: numbers, moments or texts; blanks around texts are removed."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = pc.utf8_trim_whitespace(column)
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8()).cast(pa.float64())
    elif pa.types.is_null(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64() if pa.types.is_duration(kind) else pa.string())
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
    return column.to_pandas()
