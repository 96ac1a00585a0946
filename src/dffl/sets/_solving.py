"""Programs solved by HiGHS on the host: warm linear ones and branch and bound, on all cores.

Every answer depends on its own costs alone: linear programs start from one fixed basis, integer ones from nothing, with one
fixed seed and one thread each. Limits are counted in nodes, so that they cut the same search on every machine; a limit of
seconds is a safety net.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from dffl.cores import core_count
from dffl.interrupts import carrying, stop
from dffl.sets._calls import Calls
from dffl.sets._highs import WarmLP
from dffl.sets._highspy import limit, run, set_options
from dffl.sets._program import CONTINUOUS, Program
from dffl.sets._proof import WIDE, Proof, ranges, without_fixed
from dffl.sets._rounding import rounded_for_free
from dffl.sets._switches import with_small_factors
from dffl.sets._wide_rows import RowCheck, has_wide_rows, units_of

if TYPE_CHECKING:
    import highspy
else:
    from dffl.sets._highspy import highspy

EXACT: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
QUICK: dict[str, Any] = {
    "presolve": "off",
    "mip_detect_symmetry": False,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_zi_round": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""The way for easy instances: branch and bound without preparation, which takes longer than the search itself. Not for large
whole numbers, on which it has missed the best answer."""
QUICK_NODES = 200
USUAL: dict[str, Any] = {
    "presolve": "choose",
    "mip_detect_symmetry": True,
    "mip_heuristic_effort": 0.05,
    "mip_heuristic_run_feasibility_jump": True,
    "mip_heuristic_run_zi_round": False,
    "mip_heuristic_run_rins": True,
    "mip_heuristic_run_rens": True,
    "mip_heuristic_run_root_reduced_cost": True,
}
"""HiGHS's own way, for what the quick one has not solved."""

T = TypeVar("T")


class Instances(Generic[T]):
    """Solver instances that threads take and give back: as many as are used at one time."""

    def __init__(self, make: Callable[[], T]):
        self._make, self._idle = make, SimpleQueue[T]()

    def use(self, work: Callable[[T], Any]) -> Any:
        if stop():
            raise KeyboardInterrupt
        try:
            instance = self._idle.get_nowait()
        except Empty:
            instance = self._make()
        answer = work(instance)  # an instance on which something failed is not used again
        self._idle.put(instance)
        return answer


@cache
def _threads() -> ThreadPoolExecutor:
    # HiGHS lets other threads run while it solves.
    return ThreadPoolExecutor(core_count(), "dffl solver")


def side_by_side(work: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """``work`` for each row, on all cores; one row is not worth a thread."""
    if len(rows) > 1 and core_count() > 1:
        return np.array(list(_threads().map(carrying(work), rows)))
    return np.array([work(row) for row in rows])


def _run_for_long(highs: highspy.Highs) -> None:
    """Run HiGHS, and end it when Ctrl-C is pressed."""
    told = stop()

    def look(event: Any) -> None:
        if told:
            event.interrupt()

    highs.cbMipInterrupt.subscribe(look)
    try:
        if threading.current_thread() is not threading.main_thread():
            highs.run()
        else:  # where Python would raise KeyboardInterrupt, it must not be inside HiGHS
            running = _threads().submit(highs.run)
            try:
                running.result()
            except KeyboardInterrupt:
                if told is not None:
                    told.press()
                wait([running])
                raise
    finally:
        highs.cbMipInterrupt.unsubscribe(look)
    if told:
        raise KeyboardInterrupt


class ProgramModel:
    """The host model of a program: costs (n, d) to decisions (n, d)."""

    def __init__(self, program: Program, nodes: int, seconds: float):
        asked = program
        self.program, self._nodes, self._seconds = with_small_factors(program), nodes, seconds
        self._unit = units_of(self.program)
        program = self._solved = self.program if self._unit is None else self.program.in_units(self._unit)
        """What HiGHS solves: the program in units that HiGHS can see. Without wide rows, the program itself."""
        self.calls = Calls()
        self._bounded: dict[float, bool] = {}
        self.remembered = program.integer
        """Answers of integer programs are slow enough to be kept."""
        self._relaxed = Instances(lambda: WarmLP(program.relaxed.highs(), self._refused))
        self._exact, self._fixed = Instances(self._load), Instances(lambda: _Fixed(program))
        self.lower, self.upper = self._reach()
        self.extent = float(np.abs([self.lower, self.upper]).max()) or 1.0
        self._rows = RowCheck(asked, float(np.abs(self.ends).max()) or 1.0) if has_wide_rows(asked) else None
        self._rest = np.flatnonzero(program.kind == CONTINUOUS)
        self._free = program.free
        self._proofs = Instances(lambda: Proof(program, self.extent, None if self._rows is None else self._breaks))
        if program.integer:
            self._integer(np.zeros(program.lower.size))  # one without a feasible point is refused here
        senses = (1.0, -1.0) if program.maximize is None else (-1.0,) if program.maximize else (1.0,)
        if not any(map(self.bounded_below, senses)):
            raise ValueError(self._endless)

    # What a set asks.

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each predicted column, in the user's units."""
        unit = 1.0 if self._unit is None else self._unit[self.program.predicted]
        return self.lower * unit, self.upper * unit

    @property
    def minimised(self) -> bool:
        """Whether the known costs can be minimised: those of a helper without a bound may be meant for maximising alone."""
        return self.bounded_below(1.0)

    def solve(self, costs: np.ndarray) -> np.ndarray:
        return self.complete(costs, 1.0)[:, self.program.predicted]

    def excess(self, w: np.ndarray) -> np.ndarray:
        """Of decisions: 0 where helpers exist that make them feasible, else infinite, as there is no size to compare with."""
        if not self.program.helpers.size:
            v = w[:, np.argsort(self.program.predicted)]
            return self.program.excess(v, self.extent) if self._rows is None else self._rows.excess(v)
        return side_by_side(self._unreachable, w)

    def complete(self, costs: np.ndarray, weight: np.ndarray | float) -> np.ndarray:
        """All columns of a best solution for each row of predicted costs, with known costs of this weight."""
        full = self.program.costs(costs, weight)
        if self._unit is not None:
            full *= self._unit
        full = without_fixed(full, self._free)
        wide = ranges(full, self._free)
        scale = np.abs(full).max(axis=-1, keepdims=True)
        full /= np.where(scale > 0, scale, 1.0)
        if self._rows is not None:
            answers = side_by_side(self._checked, full)
            return (answers if self._unit is None else answers * self._unit) + 0.0
        answers = side_by_side(self._integer if self.program.integer else self._linear, full)
        if (wide >= WIDE).any():
            rows = np.flatnonzero(wide >= WIDE)
            answers[rows] = side_by_side(self._proven, np.stack([full[rows], answers[rows]], axis=1))
        return answers

    def bounded_below(self, weight: float) -> bool:
        """Whether the known part, with this weight, has a least value: a helper without a bound may have none."""
        if weight not in self._bounded:
            try:
                self._linear(weight * self._solved.known / (np.abs(self._solved.known).max() or 1.0))
                self._bounded[weight] = True
            except ValueError:
                self._bounded[weight] = False
        return self._bounded[weight]

    # How it is done.

    def _linear(self, cost: np.ndarray) -> np.ndarray:
        return self._relaxed.use(lambda warm: warm.run(cost))

    def _integer(self, cost: np.ndarray) -> np.ndarray:
        return self._with_bound(cost)[0]

    def _with_bound(self, cost: np.ndarray) -> tuple[np.ndarray, float]:
        """A best solution, and what HiGHS says that none is below."""
        linear = self._linear(cost)
        rounded = rounded_for_free(self._solved, linear, cost)
        if rounded is not None and self._solved.excess(rounded[None], self.extent)[0] <= 1e-9:
            return rounded + 0.0, float(cost @ linear)
        return self._exact.use(lambda highs: self._branch(highs, cost))

    def _proven(self, both: np.ndarray) -> np.ndarray:
        """The best answer at costs of very different sizes, from the answer of HiGHS; counted where there is no proof."""
        cost, answer = both
        best, proven = self._proof(cost, answer)
        if not proven:
            self.calls.note_unproven(float(ranges(cost[None], self._free)[0]))
        return best

    def _proof(self, cost: np.ndarray, answer: np.ndarray, *, doubtful: bool = False) -> tuple[np.ndarray, bool]:
        def again(other: np.ndarray) -> np.ndarray:
            return self._exact.use(lambda highs: self._branch(highs, other, count=False)[0])

        integer = again if self.program.integer else None
        return self._proofs.use(lambda proof: proof(cost, answer, integer, doubtful=doubtful))

    def _checked(self, cost: np.ndarray) -> np.ndarray:
        """The best answer of a program with wide rows; counted where it breaks a row, or where there is no proof."""
        if self.program.integer:
            answer, bound = self._with_bound(cost)
            # Whole numbers made whole may cost more than HiGHS has thought, or leave a row.
            doubtful = float(cost @ answer) - bound > 1e-7 * max(float(np.abs(cost) @ np.abs(answer)), 1e-3 * self.extent)
        else:
            answer, doubtful = self._linear(cost), False
        doubtful = doubtful or self._breaks(answer)
        width = float(ranges(cost[None], self._free)[0])
        if doubtful or width >= WIDE:
            answer, proven = self._proof(cost, answer, doubtful=doubtful)
            if not proven or self._breaks(answer):
                self.calls.note_unproven(width)
        return answer

    def _breaks(self, answer: np.ndarray) -> bool:
        """Whether an answer breaks a row as the user gave it."""
        return self._rows is not None and self._rows.broken(answer if self._unit is None else answer * self._unit)

    def _load(self) -> highspy.Highs:
        highs = highspy.Highs()
        set_options(highs, EXACT | {"mip_feasibility_tolerance": _whole_within(self.program)})
        highs.passModel(self._solved.highs())
        return highs

    def _branch(self, highs: highspy.Highs, cost: np.ndarray, count: bool = True) -> tuple[np.ndarray, float]:
        """A solution, and what HiGHS says that none is below; infinite where the search ended at a limit."""
        kinds = highspy.HighsModelStatus
        highs.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), cost)
        status = kinds.kNotset
        quick = (
            [(QUICK, min(QUICK_NODES, self._nodes))]
            if _whole_within(self.program) == EXACT["mip_feasibility_tolerance"]
            else []
        )
        for options, nodes in (*quick, (USUAL, self._nodes)):
            set_options(highs, options | {"mip_max_nodes": nodes})
            highs.clearSolver()
            limit(highs, self._seconds)
            if options is USUAL:
                _run_for_long(highs)
            else:
                highs.run()
            status = highs.getModelStatus()
            if status == kinds.kOptimal:
                break
        info = highs.getInfo()
        if status != kinds.kOptimal:
            if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
                raise ValueError(self._without_point(status))
            if count:
                self.calls.note_gap(float(info.mip_gap))
        # A search that ended at a limit is counted already, and says nothing about its rows.
        bound = float(info.mip_dual_bound) if status == kinds.kOptimal else np.inf
        return self._tidied(np.asarray(highs.getSolution().col_value), cost), bound

    def _tidied(self, v: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Whole numbers made whole, and the other columns solved for again with these."""
        program = self._solved
        fixed = np.where(program.is_integer, np.round(v), v)
        fixed = np.where(program.semi & (np.abs(v) <= 1e-9), 0.0, fixed)
        if not self._rest.size:
            return fixed + 0.0
        return self._fixed.use(lambda fixer: fixer(fixed, cost))

    def _reach(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each predicted column, in the relaxation; an unbounded one is refused."""
        program, ends = self._solved, []
        self._linear(np.zeros(program.lower.size))  # an empty program is refused here
        for sign in (1.0, -1.0):
            reached = np.empty(program.predicted.size)
            for place, column in enumerate(program.predicted):
                cost = np.zeros(program.lower.size)
                cost[column] = sign
                try:
                    reached[place] = self._linear(cost)[column]
                except ValueError:
                    side = "lower" if sign > 0 else "upper"
                    fix = f"give it {'a lower' if sign > 0 else 'an upper'} bound: a predicted cost may have either sign"
                    raise ValueError(f"{program.owner}: {program.name(column)} has no {side} end; {fix}") from None
            ends.append(reached)
        return ends[0], ends[1]

    def _unreachable(self, w: np.ndarray) -> np.ndarray:
        program = self._solved
        bounds = program if self._rows is None else program.relaxed
        low, high = bounds.lower.copy(), bounds.upper.copy()
        slack = np.asarray(1e-7 * self.extent)
        is_integer = program.is_integer[program.predicted]
        near = np.round(w)
        if self._rows is not None:  # each entry may be off by rounding of its own size
            w = w if self._unit is None else w / self._unit[program.predicted]
            slack = 1e-7 * np.abs(w) + 1e-12 * np.maximum(np.abs(self.lower), np.abs(self.upper))
        if (np.abs(w - near)[is_integer] > 1e-6).any() or (w < self.lower - slack).any() or (w > self.upper + slack).any():
            return np.asarray(np.inf)
        # A continuous decision is allowed to be off by rounding; a whole one is not.
        low[program.predicted] = np.where(is_integer, near, np.clip(w - slack, self.lower, self.upper))
        high[program.predicted] = np.where(is_integer, near, np.clip(w + slack, self.lower, self.upper))
        if self._rows is not None:
            point = self._proofs.use(lambda proof: proof.feasible(low, high, np.zeros(low.size), within=1e-6))
            return np.asarray(np.inf if point is None else 0.0)
        highs = highspy.Highs()
        set_options(highs, EXACT | {"mip_max_nodes": self._nodes})
        lp = program.highs()
        lp.col_lower_, lp.col_upper_ = low, high
        highs.passModel(lp)
        run(highs, self._seconds)
        return np.asarray(0.0 if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal else np.inf)

    # What is said when there is no answer.

    def _refused(self, warm: WarmLP, status: highspy.HighsModelStatus) -> str:
        kinds, owner = highspy.HighsModelStatus, self.program.owner
        if status == kinds.kInfeasible:
            return f"{owner}: it has no feasible point{self._clash()}"
        if status in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
            return self._endless
        return f"{owner}: HiGHS stopped with status {status.name}"

    @property
    def _endless(self) -> str:
        return f"{self.program.owner}: its objective has no end: add bounds, or a known cost that keeps the helpers in bounds"

    def _clash(self) -> str:
        """The rows and columns that cannot hold together, where HiGHS can tell."""
        highs = highspy.Highs()
        set_options(highs, {"output_flag": False, "time_limit": 10.0})
        highs.passModel(self._solved.relaxed.highs())
        clash = _smallest_clash(highs)
        if clash is None:
            return ""
        rows, columns = clash
        names = [self.program.row_name(row) for row in rows[:6]] + [
            f"the bounds of {self.program.name(c)}" for c in columns[:6]
        ]
        more = len(rows) + len(columns) - len(names)
        listed = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        return f": {listed} cannot hold together; change one of them" if names else ""

    def _without_point(self, status: highspy.HighsModelStatus) -> str:
        owner, kinds = self.program.owner, highspy.HighsModelStatus
        if status == kinds.kInfeasible:
            return f"{owner}: it has no feasible point with whole numbers, though it has one without that condition"
        if status == kinds.kTimeLimit:
            return f"{owner}: no feasible point within {self._seconds:g} s; raise seconds, or simplify the model"
        if status in (kinds.kSolutionLimit, kinds.kIterationLimit):
            return f"{owner}: no feasible point within {self._nodes} nodes; raise nodes, or simplify the model"
        return f"{owner}: HiGHS stopped with status {status.name}"


def _whole_within(program: Program) -> float:
    """How far from a whole number HiGHS takes an entry for whole.

    Switches of constraints with large factors need it small. Large whole numbers need HiGHS's own value: with less than their
    rounding errors, it loses solutions.
    """
    largest = np.abs(np.concatenate([program.lower[program.is_integer], program.upper[program.is_integer]])).max(initial=0.0)
    return float(np.clip(1e-12 * largest, 1e-9, 1e-6))


class _Fixed:
    """The linear program that is left when the whole numbers are fixed."""

    def __init__(self, program: Program):
        self._program = program
        self._highs = highspy.Highs()
        set_options(self._highs, {"output_flag": False, "threads": 1, "primal_feasibility_tolerance": 1e-10})
        self._highs.passModel(program.relaxed.highs())
        self._columns = np.flatnonzero(program.kind != CONTINUOUS).astype(np.int32)
        self._all = np.arange(program.lower.size, dtype=np.int32)

    def __call__(self, fixed: np.ndarray, cost: np.ndarray) -> np.ndarray:
        highs, columns = self._highs, self._columns
        highs.changeColsBounds(columns.size, columns, fixed[columns], fixed[columns])
        highs.changeColsCost(cost.size, self._all, cost)
        highs.clearSolver()
        run(highs)
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # rounding left no room: keep what was found
            return fixed + 0.0
        solution = np.asarray(highs.getSolution().col_value)
        solution[columns] = fixed[columns]
        return solution + 0.0


def _smallest_clash(highs: highspy.Highs) -> tuple[list[int], list[int]] | None:
    """Rows and columns of an infeasible subsystem that has no smaller one inside."""
    if not hasattr(highs, "getIis"):
        return None
    set_options(highs, {"iis_strategy": 6})
    try:
        status, iis = highs.getIis()
    except (TypeError, RuntimeError):
        return None
    if status == highspy.HighsStatus.kError:
        return None
    return list(iis.row_index_), list(iis.col_index_)
