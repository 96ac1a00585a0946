"""Any Python function that minimises linear costs, as a feasible set."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from dffl.sets import _pool
from dffl.sets._errors import HostFailure, RowFailure
from dffl.sets._host import HostSet, Loaded, _from_host
from dffl.sets.base import FeasibleSet, dimension
from dffl.solving.rows import RowError, answers, in_one_line

SECONDS = 600.0
Ask = Callable[[np.ndarray], Iterator[np.ndarray]]
Inside = Callable[[np.ndarray], Any]


class Solver(HostSet):
    """The points that a function answers: ``function(c)`` returns a w (d,) that minimises ``c . w``, for costs c (d,).

    The answer must depend on the costs alone. ``batched=True``: the function takes all rows at once, (n, d) to (n, d).

    ``contains`` says which answers are allowed, and every answer is checked by it: a function of w that returns True or False
    ((n, d) to n of them if batched), or a feasible set, such as a `Polytope`. None: any ``dim`` finite numbers are allowed, and
    `contains` of this set says True of every point.

    ``name`` (default: the function's) stands in messages, and in saved fits, which hold no code: they are loaded with
    ``dffl.load(path, solvers={name: function})``.

    The function is asked by one thread at a time, in this process; ``processes`` > 0 asks it in this many separate processes
    (no more than there are cores), which needs a function at the top of a module. There it may crash, and it may take
    ``seconds`` for a call: a process that takes longer is ended, and one that ends is replaced and tried once more, before the
    solver is refused by name. Processes are shared by all solvers, and end with this one.

    Whether the set is convex is not known: support, diameter and distances are those of its convex hull.
    """

    convex: ClassVar[bool] = False

    _within: FeasibleSet | None

    def __init__(
        self,
        function: Callable[[np.ndarray], Any] | _pool.Job,
        dim: int,
        contains: Inside | FeasibleSet | None = None,
        *,
        batched: bool = False,
        name: str | None = None,
        processes: int = 0,
        seconds: float = SECONDS,
    ):
        if isinstance(function, _pool.Job):  # one that solver processes alone can build
            identity: Any = function.key
            name = function.name
            ask: Ask | _pool.Job = function
            _processes(name, processes, least=1)
        else:
            if not callable(function):
                fix = "give a function of costs that returns a minimiser"
                raise ValueError(f"Solver: function must be callable, found {type(function).__name__}; {fix}")
            name = _name(getattr(function, "__name__", type(function).__name__) if name is None else name)
            _processes(name, processes, least=0)
            # Functions have no content that could be compared; one that is loaded lives, so its id is its own.
            identity, ask = id(function), partial(answers, function, batched)
            if processes:
                ask = _pool.job(name, partial(partial, answers, function, batched))
        if not isinstance(batched, bool):
            raise ValueError(f"solver {name!r}: batched must be True or False, found {batched!r:.80}")
        dim = dimension(f"solver {name!r}", dim)
        self._within = _set_of(name, dim, contains)
        inside: Inside | None = None if isinstance(contains, FeasibleSet) else contains
        arguments: dict[str, Any] = {"function": function, "dim": dim, "contains": contains, "batched": batched, "name": name}
        arguments |= {"processes": processes, "seconds": _seconds(name, seconds)}
        content = [name, dim, identity, id(inside), batched, processes, arguments["seconds"]]

        def build() -> _Model:
            return _Model(arguments, ask, inside)

        super().__init__(dim, {"name": name, "dim": dim}, build, content=[np.asarray(repr(content))])
        if self._within is not None:
            self.solve(np.zeros(dim))

    @property
    def name(self) -> str:
        """The name by which it is saved."""
        return str(self.spec()["name"])

    def spec(self) -> dict[str, Any]:
        """What is saved: the name and the number of decisions. Code is never saved."""
        return super().spec()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.batch_shape:
            return super().__reduce__()
        arguments = self._loaded("its arguments").model.arguments
        try:
            pickle.dumps(arguments)
        except Exception as error:  # anything can refuse to be pickled, in any way
            raise ValueError(_pool.unpicklable(self.name, error)) from None
        return (_unpickled, (arguments,))

    def __repr__(self) -> str:
        return super().__repr__() if self.batch_shape else f"Solver({self.name!r}, dim={self.dim})"

    @property
    def no_projection(self) -> str:
        return "Solver: it cannot project onto itself, since its function only minimises; choose a loss that does not smooth"

    def _minimise(self, c: Array) -> Array:
        w = super()._minimise(c)
        if self._within is None:
            return w
        # The set is asked inside the program: a callback must not start a program itself, which can wait for ever.
        beyond = self._within._over_batch(type(self._within)._excess, w)
        both = jnp.concatenate([w, beyond[..., None]], axis=-1)
        return _from_host(_refuse_outside, self._held, both, both.shape)[..., :-1]

    def _excess(self, w: Array) -> Array:
        if self._within is None:
            return super()._excess(w)
        return self._within._over_batch(type(self._within)._excess, w)


class _Model:
    """A solver's `HostModel`."""

    remembered = True

    def __init__(self, arguments: dict[str, Any], ask: Ask | _pool.Job, inside: Inside | None):
        self.arguments, self._ask, self._inside = arguments, ask, inside
        self.name: str = arguments["name"]
        self._one_at_a_time = threading.Lock()  # a user's function need not be ready for threads

    def solve(self, costs: np.ndarray) -> np.ndarray:
        try:
            if isinstance(self._ask, _pool.Job):
                wanted = self.arguments["processes"], self.arguments["seconds"]
                w = _pool.shared().solve(self._ask, costs, *wanted)
            else:
                with self._one_at_a_time:
                    w = np.array(list(self._ask(costs))).reshape(costs.shape)
            if self._inside is not None:
                self.refuse(w, ~self._asked_inside(w))
        except RowError as error:
            raise RowFailure(f"solver {self.name!r}", error) from None
        return w

    def excess(self, w: np.ndarray) -> np.ndarray:
        if self._inside is None:
            return np.zeros(len(w))
        try:
            return np.where(self._asked_inside(w), 0.0, np.inf)
        except RowError as error:
            raise RowFailure(f"solver {self.name!r}", error) from None

    def refuse(self, w: np.ndarray, outside: np.ndarray) -> None:
        """Name the first row that is outside."""
        for row in np.flatnonzero(outside)[:1]:
            shown = np.array2string(w[row], threshold=6, edgeitems=2, precision=4, separator=", ")
            raise RowError(int(row), f"its answer must be feasible, found that contains is False for {' '.join(shown.split())}")

    def _asked_inside(self, w: np.ndarray) -> np.ndarray:
        asked, batched = self._inside, self.arguments["batched"]
        assert asked is not None
        points = [w] if batched else list(w)
        with self._one_at_a_time:
            parts = [_verdict(asked, rows.copy(), number, len(w) if batched else None) for number, rows in enumerate(points)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _verdict(asked: Inside, rows: np.ndarray, number: int, count: int | None) -> np.ndarray:
    last = None if count is None else count - 1
    try:
        verdict = np.asarray(asked(rows))
    except (Exception, SystemExit) as error:
        raise RowError(number, f"contains: {in_one_line(error)}", last) from None
    wanted = () if count is None else (count,)
    if verdict.dtype != np.bool_ or verdict.shape != wanted:
        what = "True or False" if count is None else f"{count} times True or False"
        raise RowError(number, f"contains must answer {what}, found {' '.join(repr(verdict).split()):.80}", last)
    return verdict.reshape(-1)


TOLERANCE = {4: 1e-4, 8: 1e-6}
"""How far an answer may be outside of a set, relative to the set's size, for numbers of 4 and 8 bytes."""


def _refuse_outside(loaded: Loaded, rows: np.ndarray) -> np.ndarray:
    model: _Model = loaded.model
    try:
        # Costs that are not finite have no answer, and NaN is not above anything.
        model.refuse(rows[:, :-1], rows[:, -1] > TOLERANCE[rows.dtype.itemsize])
    except RowError as error:
        raise HostFailure(f"solver {model.name!r}: {error}") from None
    return rows


def _unpickled(arguments: dict[str, Any]) -> Solver:
    return Solver(**arguments)


def _set_of(name: str, dim: int, contains: Any) -> FeasibleSet | None:
    if not isinstance(contains, FeasibleSet):
        if contains is None or callable(contains):
            return None
        fix = "give a function of w, a feasible set or None"
        raise ValueError(f"solver {name!r}: contains must be callable, found {type(contains).__name__}; {fix}")
    if contains.batch_shape or contains.dim != dim:
        raise ValueError(f"solver {name!r}: contains must be a single set of {dim} decisions, found {contains!r:.80}")
    return contains


def handed_in(name: str, dim: int, decide: Any) -> Solver:
    """The solver of a saved fit, from what the user passed for its name: a `Solver`, a function or a model of PyEPO."""
    dimension(f"solver {name!r:.80}", dim)
    if isinstance(decide, Solver):
        solver = decide
    elif callable(decide) and not isinstance(decide, type):
        solver = Solver(decide, dim, name=name)
    elif hasattr(decide, "setObj") and hasattr(decide, "num_cost"):
        from dffl.sets.pyepo import pyepo

        solver = pyepo(decide, name=name)
    else:
        raise ValueError(f"solvers: {name!r:.80} must be a function, a dffl.Solver or a model of PyEPO, found {decide!r:.80}")
    if solver.batch_shape or solver.dim != dim:
        raise ValueError(f"solvers: {name!r:.80} must have {dim} decisions, found {solver!r:.80}")
    return solver


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"Solver: name must be a text of printable characters, found {name!r:.80}")
    return name


def _processes(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"solver {name!r}: processes must be a whole number >= {least}, found {value!r:.80}")


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"solver {name!r}: seconds must be a number > 0, found {value!r:.80}")
    return float(value)
