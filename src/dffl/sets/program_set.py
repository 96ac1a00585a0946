"""Sets behind which there is a linear or mixed-integer program: helpers, known costs, names; and their lifted form."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jax.typing import ArrayLike

from dffl.checks import require_number, require_whole
from dffl.interrupts import noticed
from dffl.sets._host import HostModel, HostSet
from dffl.sets._program import Program
from dffl.sets._solving import ProgramModel
from dffl.sets.base import Bracket, FeasibleSet

if TYPE_CHECKING:
    from dffl.arrays import DecisionsAt


NODES, SECONDS = 100_000, 60.0
"""The limits of one call of an integer program, unless the set says otherwise."""

MOST_NODES = 2**31 - 1
"""The largest number of nodes that HiGHS can count."""


class ProgramSet(HostSet):
    """A family whose decisions are the predicted columns of a program. See `Program` for its parts.

    Where the objective has a known part, `solve` minimises the predicted and the known costs together; losses and regrets are
    computed on the `lifted` set.
    """

    _known: bool = eqx.field(static=True)
    """The objective has a known part."""
    _whole: bool = eqx.field(static=True)
    """Some columns are whole numbers."""

    @abstractmethod
    def __init__(
        self,
        dim: int,
        spec: dict[str, Any],
        build: Callable[[], HostModel],
        content: Iterable[np.ndarray] | None = None,
        *,
        known: bool = False,
        has_integers: bool = False,
    ):
        self._known, self._whole = known, has_integers
        super().__init__(dim, spec, build, content)

    def _start(self, spec: dict[str, Any], program: Program) -> None:
        """Set up a set of a mixed-integer program. The spec has the limits of a call, and whether the program is relaxed."""
        program = program.relaxed if spec.get("relaxed") else program
        nodes, seconds = spec["nodes"], spec["seconds"]
        ProgramSet.__init__(
            self,
            program.predicted.size,
            spec,
            lambda: ProgramModel(program, nodes, seconds),
            known=program.has_known,
            has_integers=program.integer,
        )

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        return super().asked(spec) | {name: spec[name] for name in ("nodes", "seconds") if name in spec}

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether no column must be whole. Diameter and distances of a set that is not convex are of its convex hull."""
        return not self._whole

    @property
    def no_projection(self) -> str:
        return no_smoothing(type(self).__name__)

    @property
    def program(self) -> Program | None:
        """The program behind this single set; None for a polytope whose every variable has a predicted cost."""
        model = self._loaded("program").model
        return model.program if isinstance(model, ProgramModel) else None

    @property
    def lifted(self) -> FeasibleSet:
        return Lifted(self) if self._known else self

    @property
    def shadow(self) -> FeasibleSet:
        return Shadow(self) if self._known else self

    @property
    def relaxed(self) -> FeasibleSet:
        return type(self)(**(self.spec() | {"relaxed": True})) if self._whole else self

    @property
    def variables(self) -> tuple[str, ...] | None:
        program = self.program
        if program is None or program.columns is None:
            return None
        return tuple(program.columns[column] for column in program.shown)

    def require_sense(self, maximize: bool) -> None:
        program = self.program
        if program is None or not self._known:
            return
        if not self._loaded("sense").model.bounded_below(-1.0 if maximize else 1.0):
            does = "maximises" if maximize else "minimises"
            fix = "give the helpers bounds, or change the sign of their known costs"
            raise ValueError(f"{program.owner}: for a client that {does}, its known costs have no end; {fix}")

    def decide(self, c: ArrayLike, maximize: bool = False) -> DecisionsAt:
        """All variables of a best solution at predicted costs (..., dim): the decisions, then the helpers (see `variables`)."""
        program = self.program
        if program is None:
            return super().decide(c, maximize)
        costs = np.asarray(c, np.float64)
        if costs.shape[-1:] != (self.dim,) or not np.isfinite(costs).all():
            raise ValueError(f"{program.owner}: costs must be finite and of shape (..., {self.dim}), found {costs.shape}")
        sense = -1.0 if maximize else 1.0
        rows = sense * costs.reshape(-1, self.dim)
        model = self._loaded("decide").model
        model.calls.asked += len(rows)
        with noticed():
            values = model.complete(rows, sense) if len(rows) else np.zeros((0, program.shown.size))
        return values[:, program.shown].reshape(*costs.shape[:-1], program.shown.size) + 0.0


def no_smoothing(owner: str) -> str:
    """What a refusal says of sets of programs, which cannot project."""
    return f"{owner}: sets with whole numbers, helpers or known costs cannot; choose a loss that does not smooth"


class Lifted(HostSet):
    """A set with known costs, in two more coordinates: all (w, t, rest) where t + rest is the known part of the objective.

    At the cost (c, 1, 1) its objective is the whole one. So SPO+ and regret hold on it as on any other set, with last costs
    that are known to everybody: 2 * 1 - 1 = 1. A client that maximises has the cost (-c, -1, -1), and in scaled units all are
    divided by the scale. The known part may be large and nearly the same for all decisions, as a penalty that must be paid. So
    t is a number of single precision, whose differences are exact there, and the rest has the digits that t lacks.

    For the theory, ``unit`` measures the known part in other units, in one more coordinate: all (w, unit * (t + rest)).
    """

    internal: ClassVar[bool] = True

    _predicted: int = eqx.field(static=True)
    """How many coordinates are decisions: known where a program is traced, as the set behind it is not."""

    def __init__(self, base: ProgramSet, unit: float | None = None):
        self._predicted = base.dim
        model = base._loaded("lifted").model
        content = [*_identity(base), np.asarray(math.nan if unit is None else unit)]
        more = 2 if unit is None else 1
        super().__init__(base.dim + more, {"base": base, "unit": unit}, lambda: _LiftedModel(model, unit), content)

    @property
    def no_projection(self) -> str:
        return no_smoothing(type(self.spec()["base"]).__name__)

    @property
    def predicted(self) -> int:
        return self._predicted

    @property
    def relaxed(self) -> FeasibleSet:
        spec = self.spec()
        return Lifted(spec["base"].relaxed, spec["unit"])

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return bool(self.spec()["base"].convex)

    def _diameter(self) -> Bracket:
        model = self._loaded("diameter").model
        if model.unbounded:  # the known part may be arbitrarily bad, so the set is not compact
            return Bracket(0.0, math.inf)
        return super()._diameter()


class Shadow(HostSet):
    """The decisions of a set with known costs, without these costs: what its support, diameter and distances are of."""

    internal: ClassVar[bool] = True

    def __init__(self, base: ProgramSet):
        model = base._loaded("shadow").model
        super().__init__(base.dim, {"base": base}, lambda: _ShadowModel(model), _identity(base))

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return bool(self.spec()["base"].convex)


class _ShadowModel:
    """A program asked without its known costs."""

    def __init__(self, model: ProgramModel):
        self._model = model
        self.calls, self.remembered, self.excess = model.calls, model.remembered, model.excess

    def solve(self, costs: np.ndarray) -> np.ndarray:
        return self._model.complete(costs, 0.0)[:, self._model.program.predicted]


class _LiftedModel:
    """A program asked with costs of which those behind the predicted ones are all the weight of the known part."""

    def __init__(self, model: ProgramModel, unit: float | None):
        self._model, self._unit = model, unit
        self.calls, self.remembered = model.calls, model.remembered

    @property
    def unbounded(self) -> bool:
        return not (self._model.bounded_below(1.0) and self._model.bounded_below(-1.0))

    def solve(self, costs: np.ndarray) -> np.ndarray:
        program, weight = self._model.program, costs[:, -1]
        d = program.predicted.size
        values = self._model.complete(costs[:, :d], weight if self._unit is None else self._unit * weight)
        known = program.known_part(values)
        if self._unit is not None:
            return np.column_stack([values[:, program.predicted], self._unit * known])
        single = known.astype(np.float32).astype(np.float64)
        return np.column_stack([values[:, program.predicted], single, known - single])

    def excess(self, w: np.ndarray) -> np.ndarray:
        """Of the decisions: which known parts go with them is not looked at."""
        return self._model.excess(w[:, : self._model.program.predicted.size])


def _identity(base: ProgramSet) -> list[np.ndarray]:
    return [np.asarray(type(base).__name__), np.asarray(base.digest)]


def completed(s: FeasibleSet, c: Any) -> Any:
    """Costs (..., d) as the lifted form of the set takes them: with weights 1 of its known part behind them."""
    known = s.lifted.dim - s.dim
    if not known:
        return c
    stack = np if isinstance(c, np.ndarray) else jax.numpy
    return stack.concatenate([c, stack.ones((*c.shape[:-1], known), c.dtype)], axis=-1)


def checked_limits(owner: str, nodes: int, seconds: float) -> dict[str, Any]:
    """The limits of one call, as constructor arguments."""
    require_whole(f"{owner}: nodes", nodes, least=1, most=MOST_NODES)
    require_number(f"{owner}: seconds", seconds, 0.0, math.inf, "> 0")
    return {"nodes": int(nodes), "seconds": float(seconds)}
