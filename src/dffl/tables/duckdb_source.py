"""Tables that a query to a DuckDB file gives, where DuckDB is installed. The file is opened for reading only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dffl.cells import composed_name
from dffl.tables.arrow_cells import cells_of, require_plain
from dffl.tables.sources import checked_names, require_file


class DuckdbSource:
    """The rows of a query, in the order in which the database gives them; messages count them from 1."""

    def __init__(self, path: Path, query: str):
        require_file(path)
        self.path, self.query, self.name = path, query, f"{path} (query)"
        self._table = _answer(path, query)
        self.columns = checked_names(path, [composed_name(name) for name in self._table.column_names])

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        made = {}
        for name in columns:
            column = self._table.column(self.columns.index(name))
            require_plain(self.path, name, column.type)
            if pa.types.is_timestamp(column.type) and column.type.tz is not None:
                # DuckDB shows such moments by the clock of this machine: two sites would read different hours.
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            made[name] = cells_of(column, name in texts)
        return pd.DataFrame(made, copy=False)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def _answer(path: Path, query: str) -> Any:
    """The whole answer to one SELECT, as a table of Arrow."""
    try:
        import duckdb
    except ImportError:
        raise ValueError(f"{path}: reading DuckDB needs its package: pip install 'dffl[duckdb]'") from None
    try:
        # No access to other files: a description may come from someone else.
        with duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"}) as base:
            if [one.type for one in base.extract_statements(query)] != [duckdb.StatementType.SELECT]:
                raise ValueError(f"{path}: query must be one SELECT, found {query!r:.80}")
            return base.sql(query).to_arrow_table()
    except (duckdb.Error, UnicodeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"{path}: the query fails ({reason}): {query!r:.80}") from None
