"""A client's rows: costs and order are checked cell by cell, incomplete rows follow a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dffl.cells import instants_of, missing_in, moment_kind, numbers_of, offsets_of, shown_moment, text_of, texts_of
from dffl.checks import first_true
from dffl.named import listed
from dffl.sets import FeasibleSet
from dffl.tables.encoding import require_kind
from dffl.tables.keys import Problems
from dffl.tables.plan import ClientPlan, Plan
from dffl.tables.sources import Table

FEWEST = 3
"""The least number of rows that a client keeps when incomplete rows are left out."""
SHOWN = 4
"""The most columns in a message."""


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows of a client with their costs (n, d), in their order in time if there is one."""

    table: Table
    costs: np.ndarray
    keys: np.ndarray
    """A number for each row, equal for equal rows of any client."""
    order: np.ndarray | None = None
    dates: bool = False
    """Whether the order consists of dates, as seconds."""

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
    """A client of the plan with its rows, while tables are read."""

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
    """The usable rows with their keys, and the number of rows that are left out. None, with problems, if a cell is wrong.

    Cells of a forecast and of items are numbers and never filled, like costs.
    """
    before, missing, order = len(problems), plan.missing, plan.order
    arrays = []
    drop, gaps = np.zeros(len(table), bool), dict[str, int]()
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
            gaps[name] = int(empty.sum())
            if name in costs:
                arrays.append(numbers_of(cells))
    for name in features if missing != "mean" else ():
        empty = missing_in(table.frame[name], [text_of(text) for text in plan.categories.get(name, ())])
        if missing == "refuse" and (row := first_true(empty)) is not None:
            fix = 'fill it, or write missing = "mean" or missing = "drop"'
            problems.add(f"{table.at(row, name)}: is empty{_more(empty)}; {fix}")
        drop |= empty
        gaps[name] = int(empty.sum())
    moments, dates = None, False
    if order is not None:
        with problems.catching():
            moments, dates = order_of(table, order)
    if len(problems) > before:
        return None, 0
    if drop.all():
        problems.add(f"{table.source.name}: every row has an empty cell among the features and costs, so that none is left")
        return None, 0
    if len(table) - drop.sum() < FEWEST <= drop.sum():
        what = f"{drop.sum()} of {len(table)} rows have an empty cell among the features and costs ({_worst(gaps)})"
        fix = "too few are left: fill some of them, or leave those columns out"
        problems.add(f"{table.source.name}: {what}; {fix}")
        return None, 0
    rows = CheckedRows(table.only([*features, *items, *forecast]), np.stack(arrays, axis=1), keys, moments, dates)
    if drop.any():
        rows = rows.take(np.flatnonzero(~drop))
    if rows.order is not None:
        sorted_ = np.argsort(rows.order, kind="stable")
        rows = rows if (sorted_ == np.arange(len(rows))).all() else rows.take(sorted_)
    return rows, int(drop.sum())


def order_of(table: Table, column: str) -> tuple[np.ndarray, bool]:
    """The order of the rows as numbers, and whether these are moments in seconds. Clocks with an offset from UTC become
    instants.
    """
    cells = table.frame[column]
    empty = missing_in(cells)
    if (row := first_true(empty)) is not None:
        raise ValueError(f"{table.at(row, column)}: is empty{_more(empty)}; every row needs its place in the order")
    kind = order_kind(table, column)
    require_kind(table, column, "number" if kind == "number" else "date", empty, dated=True)
    if kind == "number":
        return numbers_of(cells), False
    known = ~np.isnan(offsets_of(cells))
    if known.any() and not known.all():
        first, other = (table.at(int(np.argmax(mask)), column) for mask in (known, ~known))
        what = f"has an offset from UTC, and {other}, has none"
        raise ValueError(f"{first}: {what}; write all clocks with an offset, or none")
    return instants_of(cells).astype(np.int64).astype(float), True


def order_kind(table: Table, column: str) -> str:
    """The kind of the order: number, date, or offset for dates that are instants."""
    return moment_kind(table.frame[column]) or "number"


ONE_ROW = "keep one row for each moment"
"""What to do about two rows of one moment."""


def twice(parts: Sequence[CheckedRows], column: str) -> str | None:
    """The first moment of which a client has two rows, with their places. ``parts`` are its rows: training, and test."""
    orders = [part.order for part in parts if part.order is not None]
    if not parts or len(orders) < len(parts):
        return None
    moments = np.concatenate(orders)
    if (pair := first_pair(moments)) is None:
        return None
    first = len(parts[0])
    places = [(parts[0].table, row) if row < first else (parts[1].table, row - first) for row in pair]
    return two_rows(places[0], places[1], column, shown_moment(float(moments[pair[0]]), parts[0].dates))


def first_pair(order: np.ndarray) -> tuple[int, int] | None:
    """The places of two rows with the earliest moment that occurs twice; None if all differ."""
    sorted_ = np.argsort(order, kind="stable")
    same = np.flatnonzero(np.diff(order[sorted_]) == 0)
    return (int(sorted_[same[0]]), int(sorted_[same[0] + 1])) if len(same) else None


def two_rows(first: tuple[Table, int], second: tuple[Table, int], column: str, moment: str) -> str:
    """A message: two rows, each of a table, have the same moment."""
    (table, row), (again, other) = first, second
    here = table.source.place(int(table.rows[row])) if table.source is again.source else table.at(row)
    return f"{again.at(other, column)}: two rows are of {moment}, this one and {here}"


DATED = {6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M"}
"""How dates are written as numbers, by their digits."""


def day_as_number(rows: CheckedRows) -> int | None:
    """The first moment of an order of numbers that are all dates such as 20240131 or 202401; None where they are not."""
    if rows.order is None or rows.dates or not len(rows.order):
        return None
    texts = pd.Series(np.unique(rows.order)).map("{:.0f}".format)
    form = DATED.get(len(texts[0]))
    if form is None or (rows.order != np.round(rows.order)).any() or (texts.str.len() != len(texts[0])).any():
        return None
    known = pd.to_datetime(texts, format=form, errors="coerce")
    return int(rows.order[0]) if known.dt.year.between(1900, 2199).all() else None


def unit_of(table: Table, column: str) -> str:
    """The unit in a column. Rows with another unit are refused."""
    texts = texts_of(table.frame[column])
    if (row := first_true(texts != texts[0])) is not None:
        problem = f"must be {texts[0]!r} as in the rows before, found {texts[row]!r:.60}"
        raise ValueError(f"{table.at(row, column)}: {problem}; convert the costs of a client to one unit")
    if not texts[0] or not texts[0].isprintable():
        raise ValueError(f"{table.at(0, column)}: must name a unit, found {texts[0]!r:.60}")
    return str(texts[0])


def _worst(gaps: Mapping[str, int]) -> str:
    """The columns with the most empty cells."""
    names = sorted((name for name in gaps if gaps[name]), key=lambda name: -gaps[name])
    return listed((f"{gaps[name]} in {name!r}" for name in names), SHOWN)


def _more(mask: np.ndarray) -> str:
    more = int(mask.sum()) - 1
    return f" (and {more} more such cells in this column)" if more else ""
