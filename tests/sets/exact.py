"""Small programs solved exactly: all whole numbers listed, and the rest by a simplex method in fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

Row = list[Fraction]


def fractions(values: np.ndarray) -> Row:
    """The numbers as they are, without any rounding."""
    return [Fraction(float(value)) for value in values]


def cost(c: np.ndarray, v: np.ndarray) -> Fraction:
    """The exact c . v."""
    return sum((a * b for a, b in zip(fractions(c), fractions(v), strict=True)), Fraction(0))


def optimum(
    c: np.ndarray,
    a_ub: np.ndarray,
    b_ub: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    whole: np.ndarray,
) -> Fraction | None:
    """The least c . v over a_ub v <= b_ub, finite bounds and whole numbers; None if there is no such v."""
    rest = np.flatnonzero(~whole)
    costs, rows, right = fractions(c), [fractions(row) for row in a_ub], fractions(b_ub)
    listed = np.flatnonzero(whole)
    low, high = fractions(lower), fractions(upper)
    best: Fraction | None = None
    for values in itertools.product(*(range(int(lower[j]), int(upper[j]) + 1) for j in listed)):
        fixed = dict(zip(listed.tolist(), values, strict=True))
        fixed |= {j: low[j] for j in rest.tolist()}  # the others are measured from their lower ends
        left = [b - sum(row[j] * value for j, value in fixed.items()) for row, b in zip(rows, right, strict=True)]
        base = sum((costs[j] * value for j, value in fixed.items()), Fraction(0))
        part = _simplex(
            [costs[j] for j in rest],
            [[row[j] for j in rest] for row in rows] + [[Fraction(int(i == j)) for j in rest] for i in rest],
            left + [high[j] - low[j] for j in rest],
        )
        if part is not None and (best is None or base + part < best):
            best = base + part
    return best


def _simplex(c: Row, a: list[Row], b: Row) -> Fraction | None:
    """The least c . x over a x <= b and x >= 0, which is bounded; None if there is no such x. Bland's rule."""
    columns, count = len(c), len(a)
    table = [
        row + [Fraction(int(i == k)) for k in range(count)] + [right] for i, (row, right) in enumerate(zip(a, b, strict=True))
    ]
    basis = list(range(columns, columns + count))
    if any(right < 0 for right in b):
        # One artificial column of -1 in all rows: pivoting on the worst row makes every right side >= 0.
        for row in table:
            row.insert(-1, Fraction(-1))
        artificial = columns + count
        goal = [Fraction(0)] * (columns + count) + [Fraction(1), Fraction(0)]
        worst = min(range(count), key=lambda i: table[i][-1])
        _pivot(table, goal, basis, worst, artificial)
        _minimise(table, goal, basis)
        if goal[-1] != 0:
            return None
        if artificial in basis:
            place = basis.index(artificial)
            column = next((j for j in range(artificial) if table[place][j] != 0), None)
            if column is not None:
                _pivot(table, goal, basis, place, column)
        for row in table:
            del row[artificial]
    goal = [*c, *[Fraction(0)] * count, Fraction(0)]
    for place, column in enumerate(basis):
        if goal[column] != 0:
            goal = [g - goal[column] * t for g, t in zip(goal, table[place], strict=True)]
    _minimise(table, goal, basis)
    return -goal[-1]


def _minimise(table: list[Row], goal: Row, basis: list[int]) -> None:
    while True:
        column = next((j for j in range(len(goal) - 1) if goal[j] < 0), None)
        if column is None:
            return
        steps = [(row[-1] / row[column], basis[i], i) for i, row in enumerate(table) if row[column] > 0]
        _pivot(table, goal, basis, min(steps)[2], column)


def _pivot(table: list[Row], goal: Row, basis: list[int], place: int, column: int) -> None:
    factor = table[place][column]
    table[place] = [value / factor for value in table[place]]
    for row in [*(row for i, row in enumerate(table) if i != place), goal]:
        if row[column] != 0:
            times = row[column]
            row[:] = [value - times * other if other else value for value, other in zip(row, table[place], strict=True)]
    basis[place] = column
