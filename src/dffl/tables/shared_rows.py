"""What a user should know of rows that several tables hold, where one process holds all of them."""

from __future__ import annotations

import numpy as np

from dffl.federation import Federation
from dffl.splitting import COST, DRAW, ROW, TIME
from dffl.tables.plan import Plan
from dffl.training import Settings
from dffl.training.crossing import crossing_of
from dffl.training.crossing_words import TOO_GOOD, fix, warning, worst
from dffl.training.sharing import MEANS, seen_in_training, seen_words, sharing_of, told_of

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
