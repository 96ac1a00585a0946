"""What a user should know of rows that several tables hold, where one process holds all of them."""

from __future__ import annotations

import numpy as np

from dffl.data.plan import Plan
from dffl.federation import Federation
from dffl.splitting import COST, DRAW, ROW, TIME
from dffl.training.sharing import MEANS, seen_in_training, sharing_of

TOO_GOOD = "so models are judged on rows that trained them elsewhere, and federating seems better than it is"


def shared_notes(train: Federation, test: Federation, plan: Plan) -> list[str]:
    """One line for each thing to know: rows in several tables, test rows that train, training that reaches into a test."""
    notes = []
    found = sharing_of(train)
    if said := found.words(len(train)):
        notes.append(f"{said}; {_meaning(plan, found.by_costs)}")
    if seen := seen_in_training(test, train):
        most = max(seen, key=lambda one: one.rows / one.of)
        what = (
            f"{most.rows} of the {most.of} test rows of client {most.client!r} have costs of rows that train {most.others[0]!r}"
        )
        notes.append(f"{what}, {TOO_GOOD}; leave them out of one of the tables")
    if plan.split == TIME and (late := _late(train, test)):
        notes.append(late)
    return notes


def _meaning(plan: Plan, by_costs: bool) -> str:
    if plan.split == TIME:
        return f"they are held out by time, at all clients together, and {MEANS}"
    if plan.split == DRAW:
        return f'each client draws its own test rows, {TOO_GOOD}; remove split = "draw"'
    if plan.split == ROW and by_costs and not plan.key:
        fix = 'write split = "cost", or key = "COLUMN" with a column that tells rows apart, such as the date'
        return f"other parts of them differ, {TOO_GOOD}; {fix}"
    what = "rows of equal costs" if plan.split == COST else "rows with equal keys" if plan.key else "equal rows"
    return f"{what} are held out together, and {MEANS}"


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
