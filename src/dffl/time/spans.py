"""For the decisions of a backtest: their costs, their expected costs, and the ranges that were stated before."""

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
    """For one client's judged rows: the costs of the chosen decisions, and the range that was stated for each, (n, 2)."""

    cost: np.ndarray
    ends: np.ndarray
    level: np.ndarray
    """The costs that the base expected."""
    spread: np.ndarray
    """The recent spread, the unit of errors."""
    decisions: np.ndarray
    """The decisions of the chosen rules, (n, d)."""


def ranges_of(
    clients_all: Sequence[Client], judged: Sequence[Client], expected: Mapping[str, list[np.ndarray]], base: str,
    chosen: Sequence[Choice], share: float, known_after: int,
) -> list[Spans]:  # fmt: skip
    """Costs and ranges of each client's judged rows, if it decides by the chosen rules.

    The base predicts the cost of a decision. The range follows from earlier errors, in units of the recent spread.
    """
    picked = []
    for place in range(len(judged)):
        table = expected[base][place].copy()
        for choice in chosen:
            table[choice.rows[place]] = expected[choice.rules[place]][place][choice.rows[place]]
        picked.append(table)
    decisions = solve_each(
        [client.oracle for client in judged],
        [client.sense * client.completed(table) for client, table in zip(judged, picked, strict=True)],
    )
    ranges = []
    for place, client in enumerate(judged):
        cost = np.sum(client.completed(client.c) * decisions[place], axis=1)
        level = np.sum(client.completed(expected[base][place]) * decisions[place], axis=1)
        spread = recent(clients_all[place].c, known_after).spread[clients_all[place].n - client.n :, 0]
        ranges.append(Spans(cost, adaptive_ranges(cost, level, spread, known_after, share), level, spread, decisions[place]))
    return ranges
