"""Warm HiGHS models: the host models of polytopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from dffl.sets._calls import Calls
from dffl.sets._highspy import run, set_options
from dffl.sets._nearest import FAR, Nearest
from dffl.sets._proof import WIDE, Proof, ranges, rest, without_fixed

if TYPE_CHECKING:
    import highspy
else:
    from dffl.sets._highspy import highspy


class LP(NamedTuple):
    """The constraints of a polytope."""

    A_ub: np.ndarray
    b_ub: np.ndarray
    A_eq: np.ndarray
    b_eq: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Primal simplex: the fixed basis is feasible for every cost. The rows are scaled already.
USUAL: dict[str, Any] = {"simplex_strategy": 4, "simplex_scale_strategy": 0, "presolve": "off"} | _TIGHT
CAUTIOUS: tuple[dict[str, Any], ...] = (
    {"simplex_strategy": 1},
    {"simplex_strategy": 1, "simplex_scale_strategy": 2, "presolve": "on"},
    {"simplex_strategy": 1, "primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7},
)


class WarmLP:
    """A loaded LP whose costs change from call to call.

    Every solve starts from the same feasible basis: warm, yet independent of what was solved before.
    """

    def __init__(self, lp: highspy.HighsLp, refusal: Callable[[WarmLP, highspy.HighsModelStatus], str]):
        self.highs = highspy.Highs()
        self._columns = np.arange(lp.num_col_, dtype=np.int32)
        self._refusal = refusal
        set_options(self.highs, {"output_flag": False, "solver": "simplex", "threads": 1} | USUAL)
        self.highs.passModel(lp)
        self._basis: highspy.HighsBasis | None = None
        self.run(np.zeros(lp.num_col_))
        self._basis = self.highs.getBasis()

    def run(self, cost: np.ndarray) -> np.ndarray:
        """The vertex that this cost leads to. Costs should be of size 1: HiGHS's absolute tolerances are then relative ones."""
        highs = self.highs
        highs.changeColsCost(cost.size, self._columns, cost)
        if self._basis is not None:
            highs.clearSolver()
            highs.setBasis(self._basis)
        run(highs)
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self._retry()
        return np.asarray(highs.getSolution().col_value)

    def _retry(self) -> None:
        """Solve again from nothing, more and more cautiously.

        HiGHS's primal simplex gives up on about one cost in a thousand of a covering LP. What follows depends on the
        costs alone, too, so the answer still does.
        """
        kinds = highspy.HighsModelStatus
        for options in CAUTIOUS:
            set_options(self.highs, options)
            self.highs.clearSolver()
            run(self.highs)
            status = self.highs.getModelStatus()
            set_options(self.highs, USUAL)
            if status == kinds.kOptimal:
                return
            if status in (kinds.kInfeasible, kinds.kUnbounded, kinds.kTimeLimit):
                break
        raise ValueError(self._refusal(self, status))


class Projects:
    """A polytope between two corners, with what finds its nearest points."""

    def __init__(self, lp: LP, lower: np.ndarray, upper: np.ndarray):
        self.lp, self.lower, self.upper = lp, lower, upper
        self._extent = float(np.abs([self.lower, self.upper]).max()) or 1.0
        self._nearest: Nearest | None = None
        self._middle: np.ndarray | None = None

    def project(self, points: np.ndarray) -> np.ndarray:
        """The nearest point of the polytope for each row of points."""
        if self._nearest is None:
            self._nearest, self._middle = self._measured()
        nearest, middle = self._nearest, self._middle
        projected = [nearest(v) if middle is None else nearest(v - middle) + middle for v in points]
        return np.array(projected).reshape(points.shape)

    def _measured(self) -> tuple[Nearest, np.ndarray | None]:
        """What finds nearest points, and from where: a small polytope far from zero is measured from its middle."""
        lp, middle = self.lp, (self.lower + self.upper) / 2
        half = float((self.upper - self.lower).max()) / 2
        if not 0 < FAR * half < np.abs(middle).max():
            return Nearest(*lp, self._extent), None
        ub, eq = (rest(b, sparse.csc_matrix(a.T), middle) for a, b in ((lp.A_ub, lp.b_ub), (lp.A_eq, lp.b_eq)))
        return Nearest(lp.A_ub, ub, lp.A_eq, eq, lp.lower - middle, lp.upper - middle, half), middle


class Model(Projects):
    """A polytope whose every variable has a predicted cost."""

    def __init__(self, lp: LP, proof: Callable[[float], Proof]):
        """``proof`` makes what checks answers at costs of very different sizes, for a polytope of this extent."""
        self.calls = Calls()
        d, rows = lp.lower.size, np.concatenate([lp.A_ub, lp.A_eq])
        # Rows are brought to size 1 by powers of two, which is exact; HiGHS's own scaling doubles the pivots.
        size = np.abs(rows).max(axis=1, initial=0.0)
        unit = np.exp2(-np.frexp(size)[1])
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = d, len(rows)
        model.col_cost_ = np.zeros(d)
        model.col_lower_, model.col_upper_ = lp.lower, lp.upper
        right = unit * np.concatenate([lp.b_ub, lp.b_eq])
        model.row_lower_ = np.where(np.arange(len(rows)) < lp.b_ub.size, -highspy.kHighsInf, right)
        model.row_upper_ = right
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.arange(0, rows.size + 1, d)
        model.a_matrix_.index_ = np.tile(np.arange(d), len(rows))
        model.a_matrix_.value_ = (unit[:, None] * rows).ravel()
        self._warm = WarmLP(model, lambda _, status: _refusal(status))
        lower = np.array([self._warm.run(_unit(d, j))[j] for j in range(d)])
        upper = np.array([self._warm.run(-_unit(d, j))[j] for j in range(d)])
        super().__init__(lp, lower, upper)
        self._make_proof = proof
        self._proof: Proof | None = None
        self._free = lp.lower < lp.upper

    def solve(self, costs: np.ndarray) -> np.ndarray:
        """One vertex for each row of costs."""
        costs = without_fixed(costs, self._free)
        scale = np.abs(costs).max(axis=-1, keepdims=True)
        unit = costs / np.where(scale > 0, scale, 1.0)
        answers = np.array([self._warm.run(c) for c in unit]).reshape(costs.shape)
        width = ranges(costs, self._free)
        for row in np.flatnonzero(width >= WIDE):
            if self._proof is None:
                self._proof = self._make_proof(self._extent)
            answers[row], proven = self._proof(unit[row], answers[row])
            if not proven:
                self.calls.note_unproven(float(width[row]))
        return answers

    def excess(self, w: np.ndarray) -> np.ndarray:
        """The largest violation of a constraint by each row of w, relative to the constraint's size."""
        lp = self.lp
        worst = np.full(w.shape[0], -np.inf)
        # Relative to the polytope's own size, so that a point's answer depends neither on units nor on other points.
        extent = self._extent
        bounds = np.concatenate([lp.lower - w, w - lp.upper], axis=-1) / extent
        for a, slack in ((lp.A_ub, w @ lp.A_ub.T - lp.b_ub), (lp.A_eq, np.abs(w @ lp.A_eq.T - lp.b_eq))):
            size = np.abs(a).sum(axis=-1) * extent
            worst = np.maximum(worst, (slack / np.where(size > 0, size, 1.0)).max(axis=-1, initial=-np.inf))
        return np.maximum(worst, bounds.max(axis=-1))


def _unit(d: int, place: int) -> np.ndarray:
    cost = np.zeros(d)
    cost[place] = 1.0
    return cost


def _refusal(status: highspy.HighsModelStatus) -> str:
    kinds = highspy.HighsModelStatus
    if status == kinds.kInfeasible:
        return "Polytope: it is empty: no point satisfies A_ub w <= b_ub, A_eq w = b_eq and the bounds"
    if status in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
        return "Polytope: it is unbounded: add lower and upper bounds or rows that bound every coordinate"
    return f"Polytope: HiGHS stopped with status {status.name}"
