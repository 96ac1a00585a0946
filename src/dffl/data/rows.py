"""A client's rows: costs and order checked cell by cell, incomplete rows by rule, and divided into training and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dffl.data.cells import dates_of, missing_in, numbers_of, text_of, texts_of
from dffl.data.encoding import require_kind
from dffl.data.plan import Plan
from dffl.data.problems import Problems
from dffl.data.sources import Table
from dffl.data.tables import first_true
from dffl.randomness import Purpose, stream
from dffl.splitting import held_out


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a client with their costs (n, d), in their order in time if there is one."""

    table: Table
    costs: np.ndarray
    order: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.table)

    def take(self, index: np.ndarray | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.table.take(index), self.costs[index], None if self.order is None else self.order[index])

    def with_table(self, table: Table) -> Rows:
        """The same with another table of the same rows."""
        return self if table is self.table else Rows(table, self.costs, self.order)


def checked_rows(
    table: Table, features: Sequence[str], costs: Sequence[str], plan: Plan, problems: Problems
) -> tuple[Rows | None, int]:
    """The rows that can be used, and how many were left out; nothing, and problems, where a cell is wrong."""
    before, missing, order = len(problems), plan.missing, plan.order
    found = []
    drop = np.zeros(len(table), bool)
    for name in costs:
        with problems.catching():
            cells = table.frame[name]
            empty = missing_in(cells)
            require_kind(table, name, "number", empty)
            if missing != "drop" and (row := first_true(empty)) is not None:
                fix = 'fill it, leave that row out, or write missing = "drop"'
                raise ValueError(f"{table.at(row, name)}: the cost is missing{_more(empty)}; {fix}")
            drop |= empty
            found.append(numbers_of(cells))
    for name in features if missing != "mean" else ():
        empty = missing_in(table.frame[name], [text_of(text) for text in plan.categories.get(name, ())])
        if missing == "refuse" and (row := first_true(empty)) is not None:
            fix = 'fill it, or write missing = "mean" or missing = "drop"'
            problems.add(f"{table.at(row, name)}: is empty{_more(empty)}; {fix}")
        drop |= empty
    moments = None
    if order is not None:
        with problems.catching():
            moments = _order(table, order)
    if len(problems) > before:
        return None, 0
    if drop.all():
        problems.add(f"{table.source.name}: every row has an empty cell among the features and costs, so that none is left")
        return None, 0
    rows = Rows(table.only(features), np.stack(found, axis=1), moments)
    if drop.any():
        rows = rows.take(np.flatnonzero(~drop))
    if rows.order is not None:
        sorted_ = np.argsort(rows.order, kind="stable")
        rows = rows if (sorted_ == np.arange(len(rows))).all() else rows.take(sorted_)
    return rows, int(drop.sum())


def _order(table: Table, column: str) -> np.ndarray:
    """What the rows are ordered by: dates, or numbers."""
    cells = table.frame[column]
    empty = missing_in(cells)
    if (row := first_true(empty)) is not None:
        raise ValueError(f"{table.at(row, column)}: is empty{_more(empty)}; every row needs its place in the order")
    dates = dates_of(cells)
    kind = "date" if 2 * (~np.isnat(dates)).sum() > len(cells) else "number"
    require_kind(table, column, "date" if kind == "date" else "number", empty)
    return dates.astype(np.int64).astype(float) if kind == "date" else numbers_of(cells)


def unit_of(table: Table, column: str) -> str:
    """The one unit that a column says; rows with another are refused."""
    texts = texts_of(table.frame[column])
    if (row := first_true(texts != texts[0])) is not None:
        found = f"must be {texts[0]!r} as in the rows before, found {texts[row]!r:.60}"
        raise ValueError(f"{table.at(row, column)}: {found}; convert the costs of a client to one unit")
    if not texts[0] or not texts[0].isprintable():
        raise ValueError(f"{table.at(0, column)}: must name a unit, found {texts[0]!r:.60}")
    return str(texts[0])


def divided(rows: Rows, name: str, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows: the last ones are the test where there is an order, else some at random.

    Rows of one moment stay together: the test begins with the first row of its moment.
    """
    n, out = len(rows), held_out(len(rows), fraction)
    train: np.ndarray | slice
    test: np.ndarray | slice
    if rows.order is None:
        held = np.zeros(n, bool)
        held[stream(seed, Purpose.TEST_ROWS, name).permutation(n)[:out]] = True
        count, train, test = out, np.flatnonzero(~held), np.flatnonzero(held)
    else:
        border = int(np.searchsorted(rows.order, rows.order[n - out])) if out else n
        count, train, test = n - border, slice(0, border), slice(border, n)
    if not 0 < count < n:
        alike = " of one moment" if rows.order is not None and n > 2 else ""
        what = f"has {n} {'row' if n == 1 else 'rows'}{alike}, too few to hold out {fraction:.0%} of them for a test"
        raise ValueError(f"{rows.table.source.name}: client {name!r} {what}; give more rows, or a table under test")
    return rows.take(train), rows.take(test)


def _more(mask: np.ndarray) -> str:
    more = int(mask.sum()) - 1
    return f" (and {more} more such cells in this column)" if more else ""
