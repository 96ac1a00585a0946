"""A client's rows: costs and order checked cell by cell, incomplete rows by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dffl.cells import instants_of, missing_in, moment_kind, numbers_of, offsets_of, text_of, texts_of
from dffl.checks import first_true
from dffl.sets import FeasibleSet
from dffl.tables.encoding import require_kind
from dffl.tables.keys import Problems
from dffl.tables.plan import ClientPlan, Plan
from dffl.tables.sources import Table


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows of a client with their costs (n, d), in their order in time if there is one."""

    table: Table
    costs: np.ndarray
    keys: np.ndarray
    """A number for each row, the same for equal rows of any client."""
    order: np.ndarray | None = None
    dates: bool = False
    """Whether the order is of dates, in seconds."""

    def __len__(self) -> int:
        return len(self.table)

    def take(self, index: np.ndarray | slice) -> CheckedRows:
        """Some of the rows."""
        order = None if self.order is None else self.order[index]
        return CheckedRows(self.table.take(index), self.costs[index], self.keys[index], order, self.dates)

    def with_table(self, table: Table) -> CheckedRows:
        """The same with another table of the same rows."""
        return self if table is self.table else replace(self, table=table)


@dataclass
class ClientRows:
    """A client of the plan with its rows, while the file and its tables are read."""

    plan: ClientPlan
    rows: CheckedRows | None = None
    """All rows of its table."""
    train: CheckedRows | None = None
    test: CheckedRows | None = None
    set: FeasibleSet | None = None
    unit: str | None = None

    @property
    def training(self) -> Table:
        """The table of its training rows."""
        assert self.train is not None
        return self.train.table


def checked_rows(
    table: Table, features: Sequence[str], costs: Sequence[str], plan: Plan, problems: Problems, keys: np.ndarray,
    forecast: Sequence[str] = (), items: Sequence[str] = (),
) -> tuple[CheckedRows | None, int]:  # fmt: skip
    """The rows that can be used, with their keys, and how many were left out; nothing, and problems, where a cell is wrong.

    Cells of a forecast and of items are numbers and never filled, like those of costs.
    """
    before, missing, order = len(problems), plan.missing, plan.order
    found = []
    drop = np.zeros(len(table), bool)
    for name in (*costs, *items, *forecast):
        with problems.catching():
            cells = table.frame[name]
            empty = missing_in(cells)
            require_kind(table, name, "number", empty)
            if missing != "drop" and (row := first_true(empty)) is not None:
                fix = 'fill it, leave that row out, or write missing = "drop"'
                what = "forecast" if name in forecast else "feature of an item" if name in items else "cost"
                raise ValueError(f"{table.at(row, name)}: the {what} is missing{_more(empty)}; {fix}")
            drop |= empty
            if name in costs:
                found.append(numbers_of(cells))
    for name in features if missing != "mean" else ():
        empty = missing_in(table.frame[name], [text_of(text) for text in plan.categories.get(name, ())])
        if missing == "refuse" and (row := first_true(empty)) is not None:
            fix = 'fill it, or write missing = "mean" or missing = "drop"'
            problems.add(f"{table.at(row, name)}: is empty{_more(empty)}; {fix}")
        drop |= empty
    moments, dates = None, False
    if order is not None:
        with problems.catching():
            moments, dates = order_of(table, order)
    if len(problems) > before:
        return None, 0
    if drop.all():
        problems.add(f"{table.source.name}: every row has an empty cell among the features and costs, so that none is left")
        return None, 0
    rows = CheckedRows(table.only([*features, *items, *forecast]), np.stack(found, axis=1), keys, moments, dates)
    if drop.any():
        rows = rows.take(np.flatnonzero(~drop))
    if rows.order is not None:
        sorted_ = np.argsort(rows.order, kind="stable")
        rows = rows if (sorted_ == np.arange(len(rows))).all() else rows.take(sorted_)
    return rows, int(drop.sum())


def order_of(table: Table, column: str) -> tuple[np.ndarray, bool]:
    """What the rows are ordered by, and whether it is moments, in seconds; else it is numbers.

    Clocks with an offset from UTC are ordered by their instants.
    """
    cells = table.frame[column]
    empty = missing_in(cells)
    if (row := first_true(empty)) is not None:
        raise ValueError(f"{table.at(row, column)}: is empty{_more(empty)}; every row needs its place in the order")
    kind = order_kind(table, column)
    require_kind(table, column, "number" if kind == "number" else "date", empty)
    if kind == "number":
        return numbers_of(cells), False
    known = ~np.isnan(offsets_of(cells))
    if known.any() and not known.all():
        first, other = (table.at(int(np.argmax(one)), column) for one in (known, ~known))
        what = f"has an offset from UTC, and {other}, has none"
        raise ValueError(f"{first}: {what}; write all clocks with an offset, or none")
    return instants_of(cells).astype(np.int64).astype(float), True


def order_kind(table: Table, column: str) -> str:
    """What the rows are ordered by: number, date, or offset for dates that are instants."""
    return moment_kind(table.frame[column]) or "number"


def day_as_number(rows: CheckedRows) -> int | None:
    """The first moment of an order of numbers that are all days such as 20240131; None where they are not."""
    if rows.order is None or rows.dates or not ((rows.order >= 19000101) & (rows.order <= 21991231)).all():
        return None
    days = pd.Series(np.unique(rows.order)).map("{:.0f}".format)
    return None if pd.to_datetime(days, format="%Y%m%d", errors="coerce").isna().any() else int(rows.order[0])


def unit_of(table: Table, column: str) -> str:
    """The one unit that a column says; rows with another are refused."""
    texts = texts_of(table.frame[column])
    if (row := first_true(texts != texts[0])) is not None:
        found = f"must be {texts[0]!r} as in the rows before, found {texts[row]!r:.60}"
        raise ValueError(f"{table.at(row, column)}: {found}; convert the costs of a client to one unit")
    if not texts[0] or not texts[0].isprintable():
        raise ValueError(f"{table.at(0, column)}: must name a unit, found {texts[0]!r:.60}")
    return str(texts[0])


def _more(mask: np.ndarray) -> str:
    more = int(mask.sum()) - 1
    return f" (and {more} more such cells in this column)" if more else ""
