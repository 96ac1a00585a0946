"""What rows that cross mean, in words, and what to do about them."""

from __future__ import annotations

from collections.abc import Sequence

from dffl.named import listed
from dffl.splitting import COST, DRAW, TIME
from dffl.training.crossing import WAYS, Crossing

SHOWN = 3
"""Names in a message."""
TOO_GOOD = "so models are judged on rows that trained them elsewhere, and federating seems better than it is"
KEY = "give rows of one moment the same key, such as the date (`key` in a file, `keys` of clients in Python)"


def worst(found: Sequence[Crossing]) -> Crossing:
    """The client with the largest share of rows that cross."""
    return max(found, key=lambda crossed: (crossed.rows / crossed.of, crossed.rows))


def told(found: Sequence[Crossing]) -> str:
    """The client with the largest share, in a clause."""
    most = worst(found)
    what = f"{most.rows} of the {most.of} rows of {most.client!r} are held out while {WAYS[most.way]} train"
    return f"{what} {listed(map(repr, most.others), SHOWN)}{and_others(found)}"


def and_others(found: Sequence[Crossing]) -> str:
    """How many more clients there are of which the same holds."""
    return f" (and likewise {len(found) - 1} more of the clients)" if len(found) > 1 else ""


def fix(way: str, rule: str) -> str:
    """What to do about rows that are equal in a ``way``, and that cross under a rule."""
    if rule == TIME:
        return "give rows of one moment the same time at all clients, or leave the copies out"
    if way == "rows" and rule == DRAW:
        return 'write split = "row"'
    if way == "costs" and rule != COST:
        return f'write split = "cost", or {KEY}'
    return f"{KEY}, or leave the copies out"


def warning(found: Sequence[Crossing], rule: str) -> str:
    """What crosses, what it means and what to do, in one sentence."""
    return f"{told(found)}, {TOO_GOOD}; {fix(worst(found).way, rule)}"


def reason(crossed: Crossing, rule: str) -> str:
    """Why a client gets no verdict."""
    others = listed(map(repr, crossed.others), SHOWN)
    what = f"{crossed.rows} of your {crossed.of} rows are held out while {WAYS[crossed.way]} train {others}"
    return f"{what}, so what joining would gain cannot be measured; {fix(crossed.way, rule)}"
