"""The arguments of polytopes and integer sets, checked: rows, bounds, helpers, known costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from scipy import sparse

from dffl.sets._highs import LP
from dffl.sets._program import CONTINUOUS, INTEGER, Program
from dffl.sets.base import float_array, frozen, parameter

SMALLEST_SET = 1e-8
"""The solver keeps rows to an absolute 1e-10, which must be small beside the set."""


def checked_constraints(
    owner: str,
    A_ub: ArrayLike | None,
    b_ub: ArrayLike | None,
    A_eq: ArrayLike | None,
    b_eq: ArrayLike | None,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
) -> LP:
    """The constraints as arrays, for as many columns as they have."""
    parts = {"A_ub": _dense(A_ub), "A_eq": _dense(A_eq), "lower": lower, "upper": upper}
    shapes = {k: float_array(owner, k, v).shape for k, v in parts.items() if v is not None}
    for k, shape in shapes.items():
        if k[0] == "A" and len(shape) != 2:
            raise ValueError(f"{owner}: {k} must be a matrix with one row per constraint, found shape {shape}")
        if k[0] != "A" and len(shape) > 1:
            raise ValueError(f"{owner}: {k} must be a number or a vector, found shape {shape}")
    widths = {k: shape[-1] for k, shape in shapes.items() if shape}
    if not widths:
        raise ValueError(f"{owner}: give A_ub, A_eq, or lower or upper as a vector, so that its dimension is known")
    if len(set(widths.values())) > 1 or 0 in widths.values():
        raise ValueError(f"{owner}: A_ub, A_eq, lower and upper must be equally wide and not empty, found {widths}")
    d = next(iter(widths.values()))
    a_ub, ub = _rows(owner, "ub", parts["A_ub"], b_ub, d)
    a_eq, eq = _rows(owner, "eq", parts["A_eq"], b_eq, d)
    low, high = _bounds(owner, "lower", lower, d, -np.inf), _bounds(owner, "upper", upper, d, np.inf)
    for j in np.flatnonzero(low > high):
        raise ValueError(f"{owner}: lower must be <= upper, found {low[j]:g} and {high[j]:g} at coordinate {j}")
    sizes = np.abs(np.concatenate([ub, eq, low[np.isfinite(low)], high[np.isfinite(high)]]))
    if sizes.size and 0 < sizes.max() < SMALLEST_SET:
        small = f"all its right-hand sides and bounds are below {SMALLEST_SET:g} in size, found {sizes.max():g} at most"
        raise ValueError(f"{owner}: {small}: too near to the solver's tolerance; measure decisions in smaller units")
    return LP(a_ub, ub, a_eq, eq, low, high)


def checked_helpers(owner: str, helpers: int | Sequence[int] | np.ndarray, columns: int) -> np.ndarray:
    """The numbers of the helper columns: the given number of last columns, or those listed."""
    if isinstance(helpers, int | np.integer) and not isinstance(helpers, bool):
        numbers = np.arange(columns - int(helpers), columns) if 0 <= helpers < columns else None
    else:
        numbers = _column_numbers(helpers, columns)
    if numbers is None or numbers.size >= columns:
        wanted = f"the number of helper columns at the end, or column numbers, fewer than all {columns}"
        raise ValueError(f"{owner}: helpers must be {wanted}, found {helpers!r:.80}")
    if np.ndim(helpers):
        _require_different(owner, "helpers", helpers)
    return numbers


def checked_known(owner: str, known_cost: ArrayLike | None, helpers: np.ndarray, columns: int) -> np.ndarray:
    """The known cost of each column: given for the helpers alone, or for all columns."""
    if known_cost is None:
        return np.zeros(columns)
    known = parameter(owner, "known_cost", np.atleast_1d(np.asarray(known_cost)), 1)
    if known.shape == (columns,):
        return known
    if known.shape != (helpers.size,):
        wanted = f"one number for each of the {helpers.size} helpers, or for each of the {columns} columns"
        raise ValueError(f"{owner}: known_cost must be {wanted}, found shape {known.shape}")
    full = np.zeros(columns)
    full[helpers] = known
    return frozen(full)


def checked_integer(owner: str, integer: Any, columns: int) -> np.ndarray:
    """Whether each column must be whole: True for all, a mask, or column numbers."""
    if isinstance(integer, bool | np.bool_):
        return np.full(columns, bool(integer))
    array = np.asarray(integer)
    if array.dtype == bool and array.shape == (columns,):
        return array
    numbers = _column_numbers(integer, columns)
    if numbers is None:
        wanted = f"True, a mask of {columns} values, or column numbers below {columns}"
        raise ValueError(f"{owner}: integer must be {wanted}, found {integer!r:.80}")
    _require_different(owner, "integer", integer)
    return np.isin(np.arange(columns), numbers)


def program_of(owner: str, lp: LP, integer: np.ndarray, helpers: np.ndarray, known: np.ndarray) -> Program:
    """The program of these constraints."""
    columns = lp.lower.size
    names = None
    if helpers.size or known.any():  # else all variables are decisions, in order
        number = {column: place for place, column in enumerate(helpers.tolist())}
        names = tuple(f"helper[{number[j]}]" if j in number else f"w[{j - np.sum(helpers < j)}]" for j in range(columns))
    return Program(
        owner=owner,
        matrix=sparse.csr_matrix(np.concatenate([lp.A_ub, lp.A_eq])),
        row_lower=np.concatenate([np.full(lp.b_ub.size, -np.inf), lp.b_eq]),
        row_upper=np.concatenate([lp.b_ub, lp.b_eq]),
        lower=lp.lower,
        upper=lp.upper,
        kind=np.where(integer, INTEGER, CONTINUOUS),
        predicted=np.setdiff1d(np.arange(columns), helpers),
        known=known,
        columns=names,
        rows=tuple([f"A_ub[{i}]" for i in range(lp.b_ub.size)] + [f"A_eq[{i}]" for i in range(lp.b_eq.size)]),
    )


def described(lp: LP) -> dict[str, Any]:
    """The constraints as constructor arguments; what is empty is left out."""
    return {k: v for k, v in lp._asdict().items() if k in ("lower", "upper") or v.size}


def _column_numbers(value: Any, columns: int) -> np.ndarray | None:
    array = np.asarray(value)
    if array.size == 0:
        return np.zeros(0, int)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or (array >= columns).any():
        return None
    return np.unique(array)


def _require_different(owner: str, field: str, numbers: Any) -> None:
    different, times = np.unique(np.asarray(numbers), return_counts=True)
    for column in different[times > 1][:1]:
        raise ValueError(f"{owner}: {field} must name each column once, found column {column} twice")


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix  # of SciPy's sparse kinds


def _rows(owner: str, kind: str, a: ArrayLike | None, b: ArrayLike | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    if (a is None) != (b is None):
        raise ValueError(f"{owner}: A_{kind} and b_{kind} go together; one of them is missing")
    if a is None or b is None:
        return np.zeros((0, d)), np.zeros(0)
    matrix, vector = parameter(owner, f"A_{kind}", a, 2), parameter(owner, f"b_{kind}", np.atleast_1d(b), 1)
    if vector.shape != matrix.shape[:1]:
        raise ValueError(f"{owner}: b_{kind} must have one entry per row of A_{kind}, found {vector.shape} for {matrix.shape}")
    return matrix, vector


def _bounds(owner: str, field: str, value: ArrayLike | None, d: int, default: float) -> np.ndarray:
    array = frozen(np.array(np.broadcast_to(default if value is None else float_array(owner, field, value), (d,))))
    wrong = np.isnan(array) | (array == -default)
    if wrong.any():
        raise ValueError(f"{owner}: {field} must be numbers or {default}, found {array[wrong][0]}")
    return array
