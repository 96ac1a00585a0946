"""Rows of a user's table: features by the model's encoding, the order, and the costs that are known already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dffl.cells import composed, missing_in, numbers_of, shown_moment
from dffl.tables.encoding import Encoding, require_kind
from dffl.tables.rows import ONE_ROW, first_pair, order_of, two_rows
from dffl.tables.sources import FrameSource, Source, Table, load, require_columns
from dffl.time.ahead import TimedRows


@dataclass(frozen=True)
class Columns:
    """How a model reads rows."""

    encoding: Encoding
    order: str
    costs: Sequence[str]
    dates: bool

    def table(self, source: Source) -> Table:
        """The rows of a source with the columns that are needed; with the costs, if the source has them."""
        order = composed(self.order)
        require_columns(source, [*self.encoding.names, order], list(map(composed, self.costs)))
        there = [name for name in map(composed, self.costs) if name in source.columns]
        if there and len(there) < len(self.costs):
            lacking = next(name for name in map(composed, self.costs) if name not in there)
            raise ValueError(f"{source.name}: has some costs and lacks the column {lacking!r}; give all of them, or none")
        texts = [column.name for column in self.encoding.columns if column.kind == "category"]
        return load(source, [*self.encoding.names, order, *there], texts)

    def rows(self, rows: pd.DataFrame | Table, client: str) -> TimedRows:
        """Rows as a model uses them. A wrong cell is refused with its place."""
        table = rows if isinstance(rows, Table) else self.table(FrameSource(rows))
        order = composed(self.order)
        times, dates = order_of(table, order)
        if dates != self.dates:
            raise ValueError(f"{table.at(0, order)}: must be {'a date' if self.dates else 'a number'}, as in training")
        self._require_once(table, times)
        return TimedRows(times, self.encoding.features(table, client), self._costs(table))

    def _require_once(self, table: Table, times: np.ndarray) -> None:
        """Refuse two rows of one moment."""
        if (pair := first_pair(times)) is not None:
            first, second = pair
            moment = shown_moment(float(times[first]), self.dates)
            raise ValueError(f"{two_rows((table, first), (table, second), composed(self.order), moment)}; {ONE_ROW}")

    def _costs(self, table: Table) -> np.ndarray:
        """The costs (n, d), NaN where they are not known."""
        if composed(self.costs[0]) not in table.frame:
            return np.full((len(table), len(self.costs)), np.nan)
        arrays = []
        for name in map(composed, self.costs):
            cells = table.frame[name]
            empty = missing_in(cells)
            require_kind(table, name, "number", empty)
            arrays.append(np.where(empty, np.nan, numbers_of(cells)))
        return np.stack(arrays, axis=1)
