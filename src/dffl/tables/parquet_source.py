"""Tables in Parquet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from dffl.cells import composed_name
from dffl.tables.arrow_cells import cells_of, require_plain
from dffl.tables.sources import checked_names, is_unnamed, tried


class ParquetSource:
    """A Parquet file. Messages count its rows from 1."""

    def __init__(self, path: Path):
        self.path, self.name = path, str(path)
        schema = tried(path, "Parquet", lambda: pq.read_schema(path))
        raw = [name for name in schema.names if not is_unnamed(name)]
        self.columns = checked_names(path, [composed_name(name) for name in raw])
        self._raw = dict(zip(self.columns, raw, strict=True))
        self._types = {name: schema.field(own).type for name, own in self._raw.items()}

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        for name in columns:
            require_plain(self.path, name, self._types[name])
        return tried(self.path, "Parquet", lambda: self._load(columns, texts))

    def _load(self, columns: Sequence[str], texts: Collection[str]) -> pd.DataFrame:
        made = {}
        with pq.ParquetFile(self.path) as file:
            for name in columns:  # one by one: else a large table is in memory twice, as it is read and as it is used
                made[name] = cells_of(file.read(columns=[self._raw[name]]).column(0), name in texts)
        return pd.DataFrame(made, copy=False)

    def place(self, row: int) -> str:
        return f"row {row + 1}"
