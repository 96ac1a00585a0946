"""Proof that an answer is the best one, for costs of very different sizes.

HiGHS's tolerances are absolute, and costs are brought to size 1 for it. Beside a penalty of 1e8, prices are then as small as
the tolerances. So such answers are checked here. Any dual solution bounds all solutions from below, whatever the tolerance
with which it was found; the bound is computed here from the rows themselves, with sums that are rounded once. Branch and bound
over these bounds covers the whole numbers. One thing is taken from HiGHS without a proof: that a branch is empty. Costs have
no part in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dffl.sets._highspy import run, set_options
from dffl.sets._program import Program
from dffl.sets._wide_rows import RowCheck

if TYPE_CHECKING:
    import highspy
else:
    from dffl.sets._highspy import highspy

WIDE = 1e5
"""Costs whose largest and smallest differ by this factor are answered with a proof: at seven times it, HiGHS was wrong."""
ENOUGH = 1e-6
"""An answer is proven if no other one is cheaper by this share of what it would cost if all costs were as small as the smallest
one: so neither a penalty that must be paid nor one that is not paid hides a price."""
ROUNDING = 1e-13
"""A cost of this share of the largest one may be a rounding error."""
TOLERANCE = 1e-8
"""What HiGHS's tolerances may cost, as a share of the largest cost times the size of the set."""
MOST_NODES = 1000
"""Branches that one proof may take."""
WHOLE = 1e-9
"""How far from a whole number an entry of a relaxation may be to count as whole."""
Again = Callable[[np.ndarray], np.ndarray]


def ranges(costs: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The largest cost over the smallest one that is not zero, for each row of costs (n, columns), of the free columns."""
    size = np.abs(costs[:, free])
    largest = size.max(axis=-1, initial=0.0)
    smallest = np.where(size > 0, size, np.inf).min(axis=-1, initial=np.inf)
    return np.where(largest > 0, largest / smallest, 1.0)


def without_fixed(costs: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The costs (n, columns) without those of fixed columns, in rows where these would make the others small for HiGHS.

    Every solution pays the costs of fixed columns, so they decide nothing. Other rows stay as they are, bit by bit.
    """
    beside = (ranges(costs, np.ones_like(free)) >= WIDE) & np.any(costs[:, ~free] != 0, axis=-1)
    return np.where(beside[:, None] & ~free, 0.0, costs) if beside.any() else costs


class _Branch(NamedTuple):
    """The bounds of the columns."""

    lower: np.ndarray
    upper: np.ndarray

    def split(self, column: int, below: float, above: float) -> tuple[_Branch, _Branch]:
        """Those with at most ``below`` in this column, and those with at least ``above``."""
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[column], lower[column] = below, above
        return _Branch(self.lower, upper), _Branch(lower, self.upper)


class Proof:
    """Checks answers of one program, and finds better ones. It is used by one thread at a time."""

    def __init__(self, program: Program, extent: float, breaks: Callable[[np.ndarray], bool] | None = None):
        """``breaks`` says whether a solution breaks a row of the program as it was before its columns got other units."""
        self.program, self._extent = program, extent
        self._breaks = RowCheck(program, extent).broken if breaks is None else breaks
        relaxed = program.relaxed
        self._root = _Branch(relaxed.lower, relaxed.upper)
        self._columns, self._row_lower, self._row_upper = program.scaled_columns
        self._rows = program.scaled_rows[0]
        self._all = np.arange(program.lower.size, dtype=np.int32)
        self._highs = highspy.Highs()
        set_options(self._highs, {"output_flag": False, "threads": 1, "solver": "simplex", "presolve": "off"})
        set_options(self._highs, {"primal_feasibility_tolerance": 1e-10})
        self._highs.passModel(relaxed.highs())

    def __call__(
        self, cost: np.ndarray, answer: np.ndarray, again: Again | None = None, *, doubtful: bool = False
    ) -> tuple[np.ndarray, bool]:
        """A best solution at these costs, and whether that is proven: the answer itself, if no other is cheaper.

        ``again`` solves the integer program anew, with costs in other units. A ``doubtful`` answer may break a row.
        """
        # In units of the smallest costs that decide, but not above 1e15: HiGHS takes 1e20 for infinite.
        cost = cost / max(self._deciding(cost), float(np.abs(cost).max()) / 1e15)
        worth = float(np.minimum(np.abs(cost), 1.0) @ np.abs(answer))
        enough = ENOUGH * max(worth, 1e-3 * self._extent)
        if not doubtful and TOLERANCE * float(np.abs(cost).max()) * self._extent <= enough:
            return answer, True  # one cost is very small, and the others are not: what HiGHS allows is small enough
        if doubtful and not self._allowed(answer):
            start = self.feasible(self._root.lower, self._root.upper, cost)
            if start is None:
                return answer, False
            answer = start
        self._start(cost)
        first = self._relaxation(self._root)
        if first is not None and self._lead(cost, answer, self._root, first[1]) <= enough:
            return answer, True
        best = answer
        for candidate in self._candidates(cost, first, again):
            if self._allowed(candidate) and _dot(cost, best - candidate) > enough:
                best = candidate
        return self._search(cost, best, enough)

    def feasible(self, lower: np.ndarray, upper: np.ndarray, cost: np.ndarray, within: float = 1e-9) -> np.ndarray | None:
        """A solution within these bounds, which is good at these costs; None where there is none, or the search is long."""
        self._start(cost)
        open_branches = [_Branch(lower, upper)]
        for _ in range(MOST_NODES):
            if not open_branches:
                return None
            branch = open_branches.pop()
            relaxed = self._relaxation(branch)
            if relaxed is not None:
                v = self._rounded(relaxed[0])
                if self._allowed(v, within):
                    return v
                open_branches.extend(self._parts(relaxed[0], branch) or ())
        return None

    def _rounded(self, v: np.ndarray) -> np.ndarray:
        """Whole numbers made whole where they nearly are."""
        near = np.round(v)
        return np.where(self.program.is_integer & (np.abs(v - near) <= 1e-6), near, v)

    def _allowed(self, v: np.ndarray, within: float = 1e-9) -> bool:
        return bool(self.program.excess(v[None], self._extent)[0] <= within) and not self._breaks(v)

    def _candidates(
        self, cost: np.ndarray, first: tuple[np.ndarray, np.ndarray] | None, again: Again | None
    ) -> list[np.ndarray]:
        solutions = [] if first is None else [self._rounded(first[0])]
        if again is not None:
            with suppress(ValueError):  # HiGHS may give up in these units; it has answered before
                solutions.append(again(cost))
        return solutions

    def _deciding(self, cost: np.ndarray) -> float:
        """The size of the smallest costs that decide: every one counts, but for those that are rounding errors of others.

        A cost below `ROUNDING` of the largest one counts where one in four of its kind, predicted or known, is as small.
        """
        program = self.program
        used = program.free & (cost != 0)
        size, predicted = np.abs(cost), np.isin(self._all, program.predicted)
        clear = size[used & (size >= ROUNDING * size[used].max(initial=0.0))]
        kinds = [size[used & kind] for kind in (predicted, program.known != 0)]
        usual = [float(np.quantile(some, 0.25, method="lower")) for some in kinds if some.size]
        return min([float(clear.min()), *usual]) if clear.size else 1.0

    def _start(self, cost: np.ndarray) -> None:
        self._highs.changeColsCost(cost.size, self._all, cost)
        # Rounding errors are in units of the largest cost: a tolerance below them is never met.
        least = float(np.clip(1e-16 * np.abs(cost).max(), 1e-10, 1e-3))
        set_options(self._highs, {"dual_feasibility_tolerance": least})
        self._highs.clearSolver()

    def _relaxation(self, branch: _Branch) -> tuple[np.ndarray, np.ndarray] | None:
        """A solution of a branch without whole numbers, and the multipliers of its rows; None if there is none."""
        highs, kinds = self._highs, highspy.HighsModelStatus
        highs.changeColsBounds(self._all.size, self._all, branch.lower, branch.upper)
        run(highs)
        if highs.getModelStatus() not in (kinds.kOptimal, kinds.kInfeasible):
            highs.clearSolver()
            run(highs)
        if highs.getModelStatus() == kinds.kInfeasible:
            return None
        solution = highs.getSolution()
        return np.asarray(solution.col_value), np.asarray(solution.row_dual)

    def _lead(self, cost: np.ndarray, v: np.ndarray, branch: _Branch, multipliers: np.ndarray) -> float:
        """By how much a solution of this branch may be cheaper than v, at most: from any multipliers of the rows."""
        multipliers = np.where(multipliers > 0, np.isfinite(self._row_lower), np.isfinite(self._row_upper)) * multipliers
        reduced = rest(cost, self._columns, multipliers)
        ends = np.where(reduced > 0, branch.lower, branch.upper)
        # A column without an end has a reduced cost of 0, up to rounding.
        rounding = 1e-13 * (np.abs(cost) + abs(self._columns).T @ np.abs(multipliers))
        reduced = np.where(np.isinf(ends) & (np.abs(reduced) <= rounding), 0.0, reduced)
        if np.isinf(ends[reduced != 0]).any():
            return math.inf
        ends = np.where(reduced != 0, ends, 0.0)
        sides = np.where(multipliers > 0, self._row_lower, np.where(multipliers < 0, self._row_upper, 0.0))
        over = -rest(sides, self._rows.T, v)
        return math.fsum(np.concatenate([reduced * (v - ends), multipliers * over]))

    def _search(self, cost: np.ndarray, best: np.ndarray, enough: float) -> tuple[np.ndarray, bool]:
        """Branch and bound: every branch is empty, or has no solution that is cheaper by enough."""
        open_branches, nodes, proven = [self._root], 0, True
        while open_branches:
            nodes += 1
            if nodes > MOST_NODES:
                return best, False
            branch = open_branches.pop()
            relaxed = self._relaxation(branch)
            if relaxed is None or self._lead(cost, best, branch, relaxed[1]) <= enough:
                continue
            v = relaxed[0]
            parts = self._parts(v, branch)
            if parts is None:  # nothing to branch on
                if self._allowed(v) and _dot(cost, best - v) > 0:
                    best = v + 0.0
                proven &= self._lead(cost, best, branch, relaxed[1]) <= enough
            else:
                open_branches.extend(parts)
        return best, proven

    def _parts(self, v: np.ndarray, branch: _Branch) -> tuple[_Branch, _Branch] | None:
        """Two branches without this solution, or with fewer values of a whole column; the more likely one is last."""
        program = self.program
        open_ = branch.lower < branch.upper
        hole = program.semi & open_ & (branch.lower < program.lower)  # zero, or at least the lower bound
        for column in np.flatnonzero(hole)[:1]:
            return branch.split(int(column), 0.0, program.lower[column])
        open_integers = program.is_integer & open_
        if not open_integers.any():
            return None
        away = np.where(open_integers, np.abs(v - np.round(v)), -1.0)
        column = int(np.argmax(away))
        value = v[column]
        if away[column] > WHOLE:
            below, above = branch.split(column, np.floor(value), np.ceil(value))
            return (below, above) if value - np.floor(value) > 0.5 else (above, below)
        near = np.clip(np.round(value), branch.lower[column], branch.upper[column])
        if near > branch.lower[column]:
            return branch.split(column, near - 1.0, near)
        return branch.split(column, near, near + 1.0)[::-1]


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """a . b, rounded once."""
    return math.fsum(np.concatenate(_product(a, b)))


def rest(right: np.ndarray, columns: Any, y: np.ndarray) -> np.ndarray:
    """right - columns.T @ y, with each entry rounded once."""
    columns = columns.tocsc()
    high, low = _product(columns.data, y[columns.indices])
    ends = columns.indptr.tolist()
    terms = list(zip((-high).tolist(), (-low).tolist(), strict=True))
    out = [
        math.fsum([start, *(part for term in terms[a:b] for part in term)])
        for start, a, b in zip(right.tolist(), ends, ends[1:], strict=False)
    ]
    return np.array(out)


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b as a sum of two numbers without any rounding (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high
