"""Feasible sets by a name and parameters, as a federation's file gives them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dffl.data.cells import missing_in, numbers_of, texts_of
from dffl.data.matching import matching
from dffl.data.problems import Problems, named_at
from dffl.data.sources import load, open_source, require_columns, require_file
from dffl.data.tables import first_true
from dffl.named import nearest
from dffl.sets import (
    Assignment,
    Ball,
    Battery,
    Box,
    ConsecutiveHours,
    Ellipsoid,
    EntropySimplex,
    FeasibleSet,
    FractionalKnapsack,
    MixedInteger,
    ModelFile,
    Polytope,
    ShortestPath,
    Simplex,
    TopK,
    ZeroOneKnapsack,
)

NUMBER, WHOLE, FLAG, TEXT = "a number", "a whole number", "true or false", "a text"
VECTOR, MATRIX = "a number or a list of numbers", "a list of rows of numbers"
WHICH, NAMES = "true, or a list of column numbers or of true and false", "a text or a list of texts"
COUNT = "a whole number, or a list of column numbers"
FROM_FILE = (VECTOR, MATRIX, WHICH)
"""Kinds of parameters that may stand in a file."""
ROWS = {
    "A_ub": MATRIX,
    "b_ub": VECTOR,
    "A_eq": MATRIX,
    "b_eq": VECTOR,
    "lower": VECTOR,
    "upper": VECTOR,
    "known_cost": VECTOR,
    "helpers": COUNT,
}
LIMITS = {"nodes": WHOLE, "seconds": NUMBER}


@dataclass(frozen=True)
class Family:
    """A family of sets: its class, its parameters with their kinds, and how the number of costs d enters."""

    make: Callable[..., FeasibleSet]
    kinds: Mapping[str, str]
    sized: Callable[[int], dict[str, Any]] = field(default=lambda d: {})
    """The arguments that follow from d, the number of cost columns."""
    each: Sequence[str] = ()
    """Parameters with an entry for each cost column; a single number stands for all of them."""
    fits: Callable[[Mapping[str, Any]], int | None] = field(default=lambda given: None)
    """The number of decisions that parameters imply, where it is known before a (large) set is built."""

    @property
    def required(self) -> list[str]:
        """The parameters that have no default."""
        known = inspect.signature(self.make).parameters
        return [name for name in self.kinds if known[name].default is inspect.Parameter.empty or name == "path"]


def _dim(d: int) -> dict[str, Any]:
    return {"dim": d}


def _square(d: int) -> dict[str, Any]:
    if math.isqrt(d) ** 2 != d:
        raise ValueError(f"an assignment of n jobs to n workers needs n x n cost columns, found {d}")
    return {"n": math.isqrt(d)}


def _arcs(given: Mapping[str, Any]) -> int:
    rows, columns = int(given["rows"]), int(given["columns"])
    return rows * (columns - 1) + columns * (rows - 1)


SETS: dict[str, Family] = {
    "top-k": Family(TopK, {"k": NUMBER}, _dim),
    "fractional-knapsack": Family(FractionalKnapsack, {"weights": VECTOR, "budget": NUMBER}, each=["weights"]),
    "zero-one-knapsack": Family(ZeroOneKnapsack, {"weights": VECTOR, "budget": NUMBER}, each=["weights"]),
    "simplex": Family(Simplex, {"scale": NUMBER}, _dim),
    "entropy-simplex": Family(EntropySimplex, {"min_entropy": NUMBER}, _dim),
    "box": Family(Box, {"lower": VECTOR, "upper": VECTOR}, each=["lower", "upper"]),
    "ball": Family(Ball, {"center": VECTOR, "radius": NUMBER}, each=["center"]),
    "ellipsoid": Family(Ellipsoid, {"center": VECTOR, "shape": MATRIX}, each=["center"]),
    "polytope": Family(Polytope, ROWS),
    "mixed-integer": Family(MixedInteger, {**ROWS, "integer": WHICH, **LIMITS}),
    "shortest-path": Family(ShortestPath, {"rows": WHOLE, "columns": WHOLE, "closed": WHICH}, fits=_arcs),
    "assignment": Family(Assignment, {}, _square),
    "battery": Family(
        Battery,
        {
            "capacity": NUMBER, "charge": NUMBER, "discharge": NUMBER, "efficiency": NUMBER, "initial": NUMBER, "final": NUMBER,
            "load": VECTOR, "wear": NUMBER, "least_purchase": VECTOR, "most_purchase": VECTOR, "exclusive": FLAG, **LIMITS,
        },
        lambda d: {"hours": d},
    ),
    "consecutive-hours": Family(ConsecutiveHours, {"run": WHOLE, "runs": WHOLE, "first": WHOLE, "last": WHOLE}, _dim),
    "file": Family(
        ModelFile,
        {"path": TEXT, "predicted": NAMES, "costs": TEXT, "keep_coefficients": FLAG, "sense": TEXT, "relaxed": FLAG, **LIMITS},
    ),
}  # fmt: skip
"""Every family of sets by its name in a federation's file."""


def check_set(description: Any, where: str) -> Family:
    """The family of a description whose type and parameters are known; else all that is wrong with them is raised."""
    if not isinstance(description, Mapping):
        raise ValueError(f'{where}: must be a table such as {{ type = "top-k", k = 6 }}, found {description!r:.60}')
    kind = description.get("type")
    if not isinstance(kind, str) or kind not in SETS:
        what = "is missing" if kind is None else f"unknown type {kind!r:.60}{nearest(kind, SETS)}"
        raise ValueError(f"{where}.type: {what} (allowed: {', '.join(SETS)})")
    family, problems = SETS[kind], Problems()
    for name in description:
        if name != "type" and name not in family.kinds:
            own = ", ".join(family.kinds) or "none"
            problems.add(f"{where}.{name}: {kind} has no such parameter{nearest(name, family.kinds)} (parameters: {own})")
    for name in family.required:
        if name not in description:
            problems.add(f"{where}.{name}: is missing; {kind} needs {family.kinds[name]}")
    for name, wanted in family.kinds.items():
        value = description.get(name)
        from_file = isinstance(value, Mapping) and wanted in FROM_FILE
        if name in description and not from_file and not _is(value, wanted):
            found = "a table" if isinstance(value, Mapping) else f"{value!r:.60}"
            problems.add(f"{where}.{name}: must be {wanted}, found {found}")
    problems.stop()
    return family


def make_set(description: Any, costs: Sequence[str], folder: Path, where: str) -> FeasibleSet:
    """The set that a table such as ``{ type = "top-k", k = 6 }`` describes, for these cost columns.

    ``where`` is the file and key for messages; a relative path is one from ``folder``. All that is wrong is raised at once.
    """
    family, problems, d = check_set(description, where), Problems(), len(costs)
    given = {}
    for name, value in description.items():
        if name != "type":
            with problems.catching():
                given[name] = _parameter(value, family.kinds[name], name in family.each, costs, folder, f"{where}.{name}")
    problems.stop()
    if (implied := family.fits(given)) not in (None, d):
        raise ValueError(f"{where}: has {implied} decisions, where there are {d} cost columns")
    if "path" in given:
        given["path"] = folder / given["path"]
        with named_at(f"{where}.path"):
            require_file(given["path"])
    try:
        made = family.make(**family.sized(d), **given)
    except (ValueError, TypeError, OverflowError, OSError, ArithmeticError, MemoryError) as error:
        name = next((name for name in given if f": {name} " in str(error)), None)
        raise ValueError(f"{where}{'' if name is None else '.' + name}: {error}") from None
    if made.dim != d:
        raise ValueError(f"{where}: has {made.dim} decisions, where there are {d} cost columns")
    if made.calls is None and _is_one_point(made):  # what counts its calls may take long to answer
        raise ValueError(f"{where}: leaves one decision only, whatever the costs are: there is nothing to choose")
    return made


def _is_one_point(s: FeasibleSet) -> bool:
    """Whether a set holds a single point: then even opposite costs, of no special direction, have the same best decision."""
    costs = 1.0 + np.sqrt(np.arange(2.0, s.dim + 2.0))
    return bool(np.array_equal(s.decide(costs), s.decide(-costs)))


def _parameter(value: Any, wanted: str, each: bool, costs: Sequence[str], folder: Path, where: str) -> Any:
    """A parameter of the kind that is wanted, from its value or from the file that it names."""
    value = _from_file(value, wanted, costs, folder, where) if isinstance(value, Mapping) else value
    if each and not isinstance(value, list):
        return [value] * len(costs)
    if each and len(value) != len(costs):
        raise ValueError(f"{where}: must have an entry for each of the {len(costs)} cost columns, found {len(value)}")
    return value


def _is(value: Any, wanted: str) -> bool:
    """Whether a value of the file is of the kind that is wanted."""
    if wanted == MATRIX:
        rows = isinstance(value, list) and all(isinstance(row, list) and _is(row, VECTOR) for row in value)
        return rows and len({len(row) for row in value}) == 1
    if wanted in (VECTOR, WHICH, NAMES, COUNT) and isinstance(value, list):
        return bool(value) and all(_is_one(entry, wanted) for entry in value)
    return _is_one(value, wanted) and not (wanted == WHICH and not isinstance(value, bool))


def _is_one(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted in (FLAG, WHICH)
    if isinstance(value, str):
        return wanted in (TEXT, NAMES) and bool(value)
    if not isinstance(value, int | float) or not abs(value) < 1e300:
        return False
    whole = isinstance(value, int) and abs(value) < 2**53
    return wanted in (NUMBER, VECTOR) or (whole and (wanted == WHOLE or (wanted in (WHICH, COUNT) and value >= 0)))


def _from_file(value: Mapping[str, Any], wanted: str, costs: Sequence[str], folder: Path, where: str) -> list[Any]:
    """A vector from a column of a file, or a matrix from several; ``by`` names the column that holds the names of the costs."""
    choice = "columns" if wanted == MATRIX else "column"
    for name in value:
        if name not in ("file", choice, "by"):
            raise ValueError(
                f"{where}.{name}: no such key{nearest(name, ('file', choice, 'by'))} (allowed: file, {choice}, by)"
            )
    for name in ("file", choice):
        if not _is(value.get(name), NAMES if name == "columns" else TEXT):
            raise ValueError(
                f'{where}: must be such as {{ file = "items.csv", {choice} = "weight" }}, found {dict(value)!r:.60}'
            )
    with named_at(f"{where}.file"):
        require_file(folder / value["file"])
    source = open_source(folder / value["file"])
    names = matching(value[choice], source.columns) if wanted == MATRIX else [value[choice]]
    if not names:
        raise ValueError(f"{where}.{choice}: no column of {source.name} fits {value[choice]!r:.60}")
    by = value.get("by")
    if by is not None and not isinstance(by, str):
        raise ValueError(f"{where}.by: must be the name of a column, found {by!r:.60}")
    require_columns(source, [*names, *([by] if by is not None else [])])
    table = load(source, [*names, *([by] if by is not None else [])], [by] if by is not None else [])
    found = []
    for name in names:
        cells = table.frame[name]
        numbers = numbers_of(cells)
        if (row := first_true(~np.isfinite(numbers))) is not None:
            text = "nothing" if missing_in(cells)[row] else repr(table.cell(row, name))
            raise ValueError(f"{table.at(row, name)}: must be a finite number, found {text}")
        found.append(numbers)
    order = np.arange(len(table)) if by is None else _by_name(table, by, costs)
    if wanted == WHICH:
        return [bool(one) for one in found[0][order]]
    return np.stack(found, axis=1)[order].tolist() if wanted == MATRIX else found[0][order].tolist()


def _by_name(table: Any, by: str, costs: Sequence[str]) -> np.ndarray:
    """The rows in the order of the cost columns that they name."""
    names = texts_of(table.frame[by]).tolist()
    for row, name in enumerate(names):
        if name not in costs:
            what = f"must be the name of a cost column, found {name!r:.60}{nearest(name, costs)}"
            raise ValueError(f"{table.at(row, by)}: {what}")
        if names.index(name) < row:
            raise ValueError(f"{table.at(row, by)}: a second row for {name!r}; keep one")
    if lacking := [name for name in costs if name not in names]:
        raise ValueError(
            f"{table.source.name}: column {by!r} must have a row for each cost column, found none for {lacking[0]!r}"
        )
    return np.array([names.index(name) for name in costs])
