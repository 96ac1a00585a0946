"""What decisions of a backtest cost, what they were expected to cost, and the ranges that were stated beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dffl.batched import solve_each
from dffl.federation import Client
from dffl.time.outcome import Choice
from dffl.time.ranges import adaptive_ranges
from dffl.time.units import recent


class Spans(NamedTuple):
    """Of one client's judged rows: the chosen decisions, what they cost, and the range that was stated for each, (n, 2)."""

    cost: np.ndarray
    ends: np.ndarray
    level: np.ndarray
    """What the base said that they would cost."""
    spread: np.ndarray
    """The recent spread, by which errors are measured."""
    decisions: np.ndarray
    """What the chosen rules decided, (n, d)."""


def ranges_of(
    whole: Sequence[Client], judged: Sequence[Client], expected: Mapping[str, list[np.ndarray]], base: str,
    chosen: Sequence[Choice], share: float, known_after: int,
) -> list[Spans]:  # fmt: skip
    """Costs and ranges of each client's judged rows, when it decides by the chosen rules.

    The base says what a decision will cost; the range follows from how far that was off before, in recent spreads.
    """
    picked = []
    for place in range(len(judged)):
        table = expected[base][place].copy()
        for one in chosen:
            table[one.rows[place]] = expected[one.rules[place]][place][one.rows[place]]
        picked.append(table)
    decisions = solve_each(
        [client.oracle for client in judged],
        [client.sense * client.completed(table) for client, table in zip(judged, picked, strict=True)],
    )
    found = []
    for place, client in enumerate(judged):
        cost = np.sum(client.completed(client.c) * decisions[place], axis=1)
        level = np.sum(client.completed(expected[base][place]) * decisions[place], axis=1)
        spread = recent(whole[place].c, known_after).spread[whole[place].n - client.n :, 0]
        found.append(Spans(cost, adaptive_ranges(cost, level, spread, known_after, share), level, spread, decisions[place]))
    return found
