"""Divides rows into training and test: by the content of each row, by one moment for all clients, or by a random draw.

Without an order, the part of a row depends on the seed and on its key, or on a digest of its cells. Equal rows of several
clients are therefore in the same part, and a site that has only its own table divides it in the same way. If one process has
all tables, it also notes which rows several clients share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dffl.cells import instants_of, missing_in, moment_kind, moment_of, numbers_of, shown_moment, texts_of
from dffl.checks import first_true
from dffl.federation import Federation
from dffl.randomness import Purpose, stream
from dffl.splitting import COST, DRAW, ROW, TIME, about, chained, cost_digests, held_out, keys_of, places_of, text_digests
from dffl.tables.encoding import require_kind
from dffl.tables.keys import Problems, named_at
from dffl.tables.kinds import SameKind
from dffl.tables.plan import Plan
from dffl.tables.rows import CheckedRows
from dffl.tables.sources import Table
from dffl.training import Settings
from dffl.training.crossing import TOO_GOOD, crossing_of, fix, warning, worst
from dffl.training.sharing import MEANS, seen_in_training, seen_words, sharing_of, told_of


def content_keys(table: Table, features: Sequence[str], costs: Sequence[str]) -> np.ndarray:
    """A number for each row, equal for rows with equal features and costs, also in another currency or precision."""
    words = []
    for name in features:
        cells = table.frame[name]
        numbers, moments = numbers_of(cells), instants_of(cells)
        word = np.where(np.isnan(numbers), moments.astype(np.int64).view(np.uint64), about(numbers))
        if (texts := np.isnan(numbers) & np.isnat(moments)).any():
            word[texts] = text_digests(texts_of(cells)[texts])
        words.append(word)
    words.append(cost_digests(np.stack([np.nan_to_num(numbers_of(table.frame[name])) for name in costs], axis=1)))
    return chained(np.stack(words, axis=1))


def named_keys(table: Table, same: Mapping[str, SameKind], client: str) -> np.ndarray:
    """A number for each row, equal for rows with equal cells in the columns of ``key``. A column has one kind of cells."""
    words = []
    for name, column in same.items():
        cells = table.frame[name]
        empty = missing_in(cells)
        if (row := first_true(empty)) is not None:
            raise ValueError(f"{table.at(row, name)}: is empty; every row needs its key")
        kind = _key_kind(cells)
        with named_at(f"column {name!r}, federation.key"):
            column.require(client, table, kind)
        if kind == "category":
            words.append(text_digests(texts_of(cells)))
            continue
        require_kind(table, name, "number" if kind == "number" else "date", empty)
        values = numbers_of(cells) if kind == "number" else instants_of(cells)
        if kind == "number" and (np.abs(values) >= 2**53).any():  # such as long order numbers: all their digits count
            values = texts_of(table.as_written(name).frame[name])
        words.append(keys_of(values))
    return chained(np.stack(words, axis=1))


def _key_kind(cells: pd.Series) -> str:
    """The kind of most cells of a column: number, date, offset (dates that are instants) or category."""
    if (moments := moment_kind(cells)) is not None:
        return moments
    return "number" if 2 * (~np.isnan(numbers_of(cells))).sum() > len(cells) else "category"


def shared_cut(rows: Sequence[CheckedRows], fraction: float) -> float:
    """The moment that begins the test: after it is this fraction of all clients' rows."""
    moments = np.sort(np.concatenate([_order(site_rows) for site_rows in rows]))
    return float(moments[len(moments) - max(held_out(len(moments), fraction), 1)])


def by_time(rows: CheckedRows, name: str, cut: float) -> tuple[CheckedRows, CheckedRows]:
    """The rows before a moment, and those from it on."""
    order, dates = _order(rows), rows.dates
    border = int(np.searchsorted(order, cut))
    if not 0 < border < len(rows):
        side = "before" if border == 0 else "from then on"
        first, last = (shown_moment(float(order[place]), dates) for place in (0, -1))
        what = f"the test of all clients begins at {shown_moment(cut, dates)}, and client {name!r} has no row {side}"
        fix = "give federation.test_from, a table under test, or leave it out"
        raise ValueError(f"{rows.table.source.name}: {what} (its rows go from {first} to {last}); {fix}")
    return rows.take(slice(0, border)), rows.take(slice(border, len(rows)))


def by_row(rows: CheckedRows, name: str, fraction: float, seed: int, rule: str) -> tuple[CheckedRows, CheckedRows]:
    """Training and test rows, by the content of each row: about this fraction is the test.

    A client with few rows may get only one part. Then one row is moved, although another client may keep an equal row
    (`forced`).
    """
    keys = cost_digests(rows.costs) if rule == COST else rows.keys
    places = places_of(keys, seed, Purpose.TEST_ROWS)
    if len(np.unique(keys)) < 2:
        what = f"client {name!r} has {_rows(len(rows))} and no two that differ, too few to hold some out for a test"
        raise ValueError(f"{rows.table.source.name}: {what}; give more rows, or a table under test")
    # With few rows, the test may get none or all of them: then the row with the smallest or largest number is moved.
    is_test = places < fraction
    is_test = places == places.min() if not is_test.any() else places < places.max() if is_test.all() else is_test
    return rows.take(np.flatnonzero(~is_test)), rows.take(np.flatnonzero(is_test))


def forced(rows: CheckedRows, plan: Plan) -> str | None:
    """The part, test or training, that would be empty at a client with few rows, so that one row was moved there."""
    if plan.split in (DRAW, TIME):
        return None
    keys = cost_digests(rows.costs) if plan.split == COST else rows.keys
    is_test = places_of(keys, plan.seed, Purpose.TEST_ROWS) < plan.test_fraction
    return "the test" if not is_test.any() else "training" if is_test.all() else None


def by_draw(rows: CheckedRows, name: str, fraction: float, seed: int) -> tuple[CheckedRows, CheckedRows]:
    """Training and test rows: the last ones of the client if there is an order, else a random draw.

    Rows of one moment stay together: the test begins with the first row of its moment.
    """
    n, out = len(rows), held_out(len(rows), fraction)
    train: np.ndarray | slice
    test: np.ndarray | slice
    if rows.order is None:
        is_test = np.zeros(n, bool)
        is_test[stream(seed, Purpose.TEST_ROWS, name).permutation(n)[:out]] = True
        count, train, test = out, np.flatnonzero(~is_test), np.flatnonzero(is_test)
    else:
        border = int(np.searchsorted(rows.order, rows.order[n - out])) if out else n
        count, train, test = n - border, slice(0, border), slice(border, n)
    if not 0 < count < n:
        alike = " of one moment" if rows.order is not None and n > 2 else ""
        what = f"has {_rows(n)}{alike}, too few to hold out {fraction:.0%} of them for a test"
        raise ValueError(f"{rows.table.source.name}: client {name!r} {what}; give more rows, or a table under test")
    return rows.take(train), rows.take(test)


def divided(
    site_rows: Mapping[str, CheckedRows], plan: Plan, problems: Problems
) -> tuple[dict[str, tuple[CheckedRows, CheckedRows]], float | None]:
    """Each client's training and test rows by the plan and, if they are divided by time, the moment that begins the test."""
    divisions: dict[str, tuple[CheckedRows, CheckedRows]] = {}
    cut = None
    with problems.catching():
        cut = test_begins(plan, list(site_rows.values())) if plan.split == TIME and site_rows else None
        for name, rows in site_rows.items():
            with problems.catching():
                if cut is not None:
                    divisions[name] = by_time(rows, name, cut)
                elif plan.split == DRAW:
                    divisions[name] = by_draw(rows, name, plan.test_fraction, plan.seed)
                else:
                    divisions[name] = by_row(rows, name, plan.test_fraction, plan.seed, plan.split)
    return divisions, cut


def test_begins(plan: Plan, rows: Sequence[CheckedRows]) -> float:
    """The moment that begins the test of all clients: from the file, or such that the test has its share of all rows."""
    return shared_cut(rows, plan.test_fraction) if plan.test_from is None else _moment(plan, "test_from", rows[0].dates)


def set_period(plan: Plan, trained: Sequence[CheckedRows], cut: float | None) -> None:
    """Set the period of the folds, if folds are stretches of time: up to the begin of the test, or to the last row."""
    ordered = [rows for rows in trained if rows.order is not None]
    if plan.split != TIME or not ordered:
        return
    first, last = min(float(_order(rows)[0]) for rows in ordered), max(float(_order(rows)[-1]) for rows in ordered)
    begin = first if plan.train_from is None else _moment(plan, "train_from", ordered[0].dates)
    end = cut if plan.test_from is None else _moment(plan, "test_from", ordered[0].dates)
    end = float(np.nextafter(last, np.inf)) if end is None else end
    plan.settings["period"] = (begin, end if end > begin else begin + 1.0)


def require_moments(plan: Plan, client: str, problems: Problems) -> None:
    """Refuse what a single site cannot know of the others' days, unless the file gives it."""
    fix = f"`dffl init {plan.path} --client {client}` writes it by the table of this site, if no other site has yet"
    for key in ("train_from", "test_from") if plan.split == TIME else ():
        if getattr(plan, key) is None:
            what = "is missing; sites cannot see each other's days, and share the moments of the file"
            problems.add(f"{plan.path}: federation.{key}: {what}; {fix}")


def _moment(plan: Plan, key: str, dates: bool) -> float:
    """A moment in the file, which must be of the kind of the order."""
    value = getattr(plan, key)
    if isinstance(value, int | float) == dates:
        kind = "dates" if dates else "numbers"
        raise ValueError(f"{plan.path}: federation.{key}: must be as {plan.order!r} is, {kind}, found {value}")
    moment = moment_of(value)
    assert moment is not None, "keys were checked when they were read"
    return moment


def _order(rows: CheckedRows) -> np.ndarray:
    assert rows.order is not None, "rows that are divided by time have an order"
    return rows.order


def _rows(count: int) -> str:
    return f"{count} {'row' if count == 1 else 'rows'}"


DIVIDING = ("seed", "split", "period", "validation_blocks")
"""The settings on which the folds depend."""


def shared_notes(train: Federation, test: Federation, plan: Plan) -> list[str]:
    """Notes: rows that are in several tables, test rows that are also training rows, training after the begin of a test."""
    notes = []
    sharing = sharing_of(train)
    how = Settings.of(**{name: plan.settings[name] for name in DIVIDING if name in plan.settings}).splitting
    folded, seen = crossing_of(train, how), seen_in_training(test, train)
    told_of(train)
    if note := sharing.words(len(train)):
        notes.append(f"{note}; {_meaning(plan, sharing.by_costs, bool(folded or seen))}")
    if many := [crossed for crossed in folded if crossed.many]:
        notes.append(f"in the folds of training, {warning(many, plan.split)}")
    if seen:
        remedy = fix(worst(seen).way, plan.split)
        notes.append(f"{seen_words(seen)}, {TOO_GOOD}; {remedy}")
    if plan.key and (idle := _idle_key(train, plan)):
        notes.append(idle)
    if plan.split == TIME and (late := _late(train, test)):
        notes.append(late)
    return notes


def _meaning(plan: Plan, by_costs: bool, crossed: bool) -> str:
    """What shared rows mean for the split. That they are held out together is said only if it is true for all of them."""
    if plan.split == DRAW:
        return f'each client draws its own test rows, {TOO_GOOD}; remove split = "draw"'
    if plan.split == ROW and by_costs and not plan.key:
        remedy = 'write split = "cost", or key = "COLUMN" with a column that distinguishes rows, such as the date'
        return f"other parts of them differ, {TOO_GOOD}; {remedy}"
    if crossed:
        return f"not all of them are held out together, see below, and {MEANS}"
    if plan.split == TIME:
        return f"they are held out by time, at all clients together, and {MEANS}"
    what = "rows of equal costs" if plan.split == COST else "rows with equal keys" if plan.key else "equal rows"
    return f"{what} are held out together, and {MEANS}"


def _idle_key(train: Federation, plan: Plan) -> str | None:
    """Note that no two rows have the same key, at one client or at several: then the key keeps no rows together."""
    keys = np.concatenate([client.row_keys for client in train])
    if len(train) < 2 or len(np.unique(keys)) < len(keys):
        return None
    names = ", ".join(map(repr, plan.key))
    what = f"federation.key: no two training rows of any clients have the same {names}, so the key holds no rows together"
    return f"{plan.path}: {what}; write it in the same way at all sites (a date and the same date with a time differ)"


def _late(train: Federation, test: Federation) -> str | None:
    """Note a client that trains on moments of another client's test."""
    ends = {client.name: float(client.times[-1]) for client in train if client.times is not None}
    begins = {client.name: float(client.times[0]) for client in test if client.times is not None}
    last, first = max(ends, key=lambda name: ends[name]), min(begins, key=lambda name: begins[name])
    if ends[last] < begins[first]:
        return None
    days = np.count_nonzero(np.concatenate([c.times for c in train if c.times is not None]) >= begins[first])
    return (
        f"{days} training rows, of client {last!r} for example, are not before the first test row of client {first!r}; "
        "let all tests begin after all training, or the test may be too easy"
    )
