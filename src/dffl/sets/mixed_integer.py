"""Any bounded mixed-integer linear set, solved by HiGHS on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from dffl.sets._constraints import checked_constraints, checked_helpers, checked_integer, checked_known, described, program_of
from dffl.sets.parameters import LIMITS, ROWS, WHICH
from dffl.sets.program_set import NODES, SECONDS, ProgramSet, checked_limits


class MixedInteger(ProgramSet):
    """{w : A_ub (w, v) <= b_ub, A_eq (w, v) = b_eq, lower <= (w, v) <= upper, some entries whole}, for some helpers v.

    Without bounds a column is free. ``integer`` says which columns are whole: all (True), a mask, or column numbers.
    ``helpers`` says which columns have no predicted cost: a number of last columns, or a list of columns. ``known_cost``
    holds the known costs of the helpers, or of all columns, in the client's own sense; they are added to the predicted
    ones.

    One call ends after ``nodes`` nodes of branch and bound at the latest, or, as a safety net, after ``seconds``; such an
    answer is feasible and may not be the best, and `calls` counts it with its gap. ``relaxed`` drops the integer conditions.
    """

    toml_name = "mixed-integer"
    toml_parameters = {**ROWS, "integer": WHICH, **LIMITS}

    def __init__(
        self,
        A_ub: ArrayLike | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: ArrayLike | None = None,
        b_eq: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        integer: bool | Sequence[int] | Sequence[bool] | np.ndarray = True,
        known_cost: ArrayLike | None = None,
        helpers: int | Sequence[int] | np.ndarray = 0,
        nodes: int = NODES,
        seconds: float = SECONDS,
        relaxed: bool = False,
    ):
        name = type(self).__name__
        lp = checked_constraints(name, A_ub, b_ub, A_eq, b_eq, lower, upper)
        columns = lp.lower.size
        numbers = checked_helpers(name, helpers, columns)
        known = checked_known(name, known_cost, numbers, columns)
        is_integer = checked_integer(name, integer, columns)
        spec: dict[str, Any] = described(lp) | {"integer": is_integer} | checked_limits(name, nodes, seconds)
        spec |= {"known_cost": known} if known.any() else {}
        spec |= {"helpers": numbers} if numbers.size else {}
        spec |= {"relaxed": True} if relaxed else {}
        self._start(spec, program_of(name, lp, is_integer, numbers, known))

    def in_words(self) -> str:
        return f"mixed-integer program, {self.dim} decisions"
