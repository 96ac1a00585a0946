"""Which rows of the tables train, and which test: by what the rows hold, by one moment for all clients, or by a draw of each.

Where there is no order, a row's part follows from the seed and from its key, or from a digest of its own cells: equal rows of
several clients are on the same side, and a site that is alone with its table divides it as all together do. Where one process
holds all tables, it also says what a user should know of rows that several of them hold.
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
    """A number for each row, the same for rows of equal features and costs, also in another currency or precision."""
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
    """A number for each row, the same for rows whose cells in the columns of ``key`` are equal. Each has one kind of cells."""
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
        if kind == "number" and (np.abs(values) >= 2**53).any():  # long numbers of orders, say: all their digits count
            values = texts_of(table.as_written(name).frame[name])
        words.append(keys_of(values))
    return chained(np.stack(words, axis=1))


def _key_kind(cells: pd.Series) -> str:
    """What most cells of a column are: number, date, offset (dates that are instants) or category."""
    if (moments := moment_kind(cells)) is not None:
        return moments
    return "number" if 2 * (~np.isnan(numbers_of(cells))).sum() > len(cells) else "category"


def shared_cut(rows: Sequence[CheckedRows], fraction: float) -> float:
    """The moment from which on this fraction of all clients' rows is the test."""
    moments = np.sort(np.concatenate([_order(one) for one in rows]))
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
    """Training and test rows, by what each row holds: about this fraction is the test.

    Of a few rows all may fall on one side; then one is taken for the other, and another client may keep its equal (`forced`).
    """
    keys = cost_digests(rows.costs) if rule == COST else rows.keys
    places = places_of(keys, seed, Purpose.TEST_ROWS)
    if len(np.unique(keys)) < 2:
        what = f"client {name!r} has {_rows(len(rows))} and no two that differ, too few to hold some out for a test"
        raise ValueError(f"{rows.table.source.name}: {what}; give more rows, or a table under test")
    # Of a few rows none, or all, may fall into the test: then the first, or the last, of their places decides.
    held = places < fraction
    held = places == places.min() if not held.any() else places < places.max() if held.all() else held
    return rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))


def forced(rows: CheckedRows, plan: Plan) -> str | None:
    """The side, test or training, that a client with few rows got against the rule, so that some are on each side."""
    if plan.split in (DRAW, TIME):
        return None
    keys = cost_digests(rows.costs) if plan.split == COST else rows.keys
    held = places_of(keys, plan.seed, Purpose.TEST_ROWS) < plan.test_fraction
    return "the test" if not held.any() else "training" if held.all() else None


def by_draw(rows: CheckedRows, name: str, fraction: float, seed: int) -> tuple[CheckedRows, CheckedRows]:
    """Training and test rows: the client's last ones are the test where there is an order, else some at random.

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
        what = f"has {_rows(n)}{alike}, too few to hold out {fraction:.0%} of them for a test"
        raise ValueError(f"{rows.table.source.name}: client {name!r} {what}; give more rows, or a table under test")
    return rows.take(train), rows.take(test)


def divided(
    whole: Mapping[str, CheckedRows], plan: Plan, problems: Problems
) -> tuple[dict[str, tuple[CheckedRows, CheckedRows]], float | None]:
    """Each client's training and test rows, as the plan says; and by time, the moment at which the test of all begins."""
    made: dict[str, tuple[CheckedRows, CheckedRows]] = {}
    cut = None
    with problems.catching():
        cut = test_begins(plan, list(whole.values())) if plan.split == TIME and whole else None
        for name, rows in whole.items():
            with problems.catching():
                if cut is not None:
                    made[name] = by_time(rows, name, cut)
                elif plan.split == DRAW:
                    made[name] = by_draw(rows, name, plan.test_fraction, plan.seed)
                else:
                    made[name] = by_row(rows, name, plan.test_fraction, plan.seed, plan.split)
    return made, cut


def test_begins(plan: Plan, rows: Sequence[CheckedRows]) -> float:
    """When the test begins at all clients: as the file says, or so that the right share of all their rows is the test."""
    return shared_cut(rows, plan.test_fraction) if plan.test_from is None else _moment(plan, "test_from", rows[0].dates)


def set_period(plan: Plan, trained: Sequence[CheckedRows], cut: float | None) -> None:
    """Set from when until when folds go, where they are stretches of time: until the test begins, or the last row."""
    ordered = [rows for rows in trained if rows.order is not None]
    if plan.split != TIME or not ordered:
        return
    first, last = min(float(_order(rows)[0]) for rows in ordered), max(float(_order(rows)[-1]) for rows in ordered)
    begin = first if plan.train_from is None else _moment(plan, "train_from", ordered[0].dates)
    end = cut if plan.test_from is None else _moment(plan, "test_from", ordered[0].dates)
    end = float(np.nextafter(last, np.inf)) if end is None else end
    plan.settings["period"] = (begin, end if end > begin else begin + 1.0)


def require_moments(plan: Plan, client: str, problems: Problems) -> None:
    """Refuse what a site that is alone cannot know of the others' days, unless the file says it."""
    fix = f"`dffl init {plan.path} --client {client}` writes it by the table of this site, if no other site has yet"
    for key in ("train_from", "test_from") if plan.split == TIME else ():
        if getattr(plan, key) is None:
            what = "is missing; sites cannot see each other's days, and share the moments of the file"
            problems.add(f"{plan.path}: federation.{key}: {what}; {fix}")


def _moment(plan: Plan, key: str, dates: bool) -> float:
    """A moment that the file gives, of the kind that the order has."""
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
"""The settings that folds follow from."""


def shared_notes(train: Federation, test: Federation, plan: Plan) -> list[str]:
    """One line for each thing to know: rows in several tables, test rows that train, training that reaches into a test."""
    notes = []
    found = sharing_of(train)
    how = Settings.of(**{name: plan.settings[name] for name in DIVIDING if name in plan.settings}).splitting
    folded, seen = crossing_of(train, how), seen_in_training(test, train)
    told_of(train)
    if said := found.words(len(train)):
        notes.append(f"{said}; {_meaning(plan, found.by_costs, bool(folded or seen))}")
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
    """What follows from rows that are shared. That they are held out together is said only where no row crosses."""
    if plan.split == DRAW:
        return f'each client draws its own test rows, {TOO_GOOD}; remove split = "draw"'
    if plan.split == ROW and by_costs and not plan.key:
        remedy = 'write split = "cost", or key = "COLUMN" with a column that tells rows apart, such as the date'
        return f"other parts of them differ, {TOO_GOOD}; {remedy}"
    if crossed:
        return f"not all of them are held out together, see below, and {MEANS}"
    if plan.split == TIME:
        return f"they are held out by time, at all clients together, and {MEANS}"
    what = "rows of equal costs" if plan.split == COST else "rows with equal keys" if plan.key else "equal rows"
    return f"{what} are held out together, and {MEANS}"


def _idle_key(train: Federation, plan: Plan) -> str | None:
    """That no two rows have a key in common, at one client or at several: then the key holds no rows together."""
    keys = np.concatenate([client.row_keys for client in train])
    if len(train) < 2 or len(np.unique(keys)) < len(keys):
        return None
    names = ", ".join(map(repr, plan.key))
    what = f"federation.key: no two training rows of any clients have the same {names}, so the key holds no rows together"
    return f"{plan.path}: {what}; write it in the same way at all sites (a date and the same date with a time differ)"


def _late(train: Federation, test: Federation) -> str | None:
    """A client that trains on moments of another one's test."""
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
