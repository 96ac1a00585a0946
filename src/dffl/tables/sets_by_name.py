"""Feasible sets by a name and parameters, as a federation's file gives them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dffl.cells import missing_in, numbers_of, texts_of
from dffl.checks import first_true
from dffl.named import nearest
from dffl.sets import FeasibleSet
from dffl.sets.parameters import NAMES, PATH, TEXT, WHICH, Kind
from dffl.tables.columns import matching
from dffl.tables.keys import Problems, named_at
from dffl.tables.sources import load, open_source, require_columns, require_file


def required(family: type[FeasibleSet]) -> list[str]:
    """The parameters that a federation.toml must give: those without a default, and paths."""
    known = inspect.signature(family).parameters
    for name in family.toml_parameters:
        if name not in known:
            raise ValueError(
                f"{family.__name__}: toml_parameters has {name!r}, which its constructor does not take ({', '.join(known)})"
            )
    return [
        name for name, kind in family.toml_parameters.items() if known[name].default is inspect.Parameter.empty or kind is PATH
    ]


def check_set(description: Any, where: str) -> type[FeasibleSet]:
    """The family of a description. Its type and parameters are checked, and one error lists all problems."""
    if not isinstance(description, Mapping):
        raise ValueError(f'{where}: must be a table such as {{ type = "top-k", k = 6 }}, found {description!r:.60}')
    kind, sets = description.get("type"), FeasibleSet.by_toml_name
    with named_at(f"{where}.type"):
        if isinstance(kind, str):
            sets.bring(kind)
        if not isinstance(kind, str) or kind not in sets:
            names = sets.names()
            what = "is missing" if kind is None else f"unknown type {kind!r:.60}{nearest(kind, names)}"
            raise ValueError(f"{what} (allowed: {', '.join(names)})")
        family, needed, problems = sets[kind], required(sets[kind]), Problems()
    parameters = family.toml_parameters
    for name in description:
        if name != "type" and name not in parameters:
            allowed = ", ".join(parameters) or "none"
            problems.add(f"{where}.{name}: {kind} has no such parameter{nearest(name, parameters)} (parameters: {allowed})")
    for name in needed:
        if name not in description:
            problems.add(f"{where}.{name}: is missing; {kind} needs {parameters[name].text}")
    for name, wanted in parameters.items():
        value = description.get(name)
        from_file = isinstance(value, Mapping) and wanted.choice
        if name in description and not from_file and not wanted.accepts(value):
            shown = "a table" if isinstance(value, Mapping) else f"{value!r:.60}"
            problems.add(f"{where}.{name}: must be {wanted.text}, found {shown}")
    problems.stop()
    return family


def make_set(description: Any, costs: Sequence[str], folder: Path, where: str) -> FeasibleSet:
    """The set that a table such as ``{ type = "top-k", k = 6 }`` describes, for these cost columns.

    ``where`` is the file and key for messages. A relative path starts at ``folder``. One error lists all problems.
    """
    family, problems, d = check_set(description, where), Problems(), len(costs)
    arguments = {}
    for name, value in description.items():
        if name != "type":
            with problems.catching():
                arguments[name] = parameter(value, family.toml_parameters[name], costs, folder, f"{where}.{name}")
    problems.stop()
    if (implied := family.toml_dim(arguments)) not in (None, d):
        raise ValueError(f"{where}: has {implied} decisions, where there are {d} cost columns")
    for name in arguments:
        if family.toml_parameters[name] is PATH:
            arguments[name] = folder / arguments[name]
            with named_at(f"{where}.{name}"):
                require_file(arguments[name])
    try:
        feasible_set = family(**family.toml_sized(d), **arguments)
    except (ValueError, TypeError, OverflowError, OSError, ArithmeticError, MemoryError) as error:
        name = next((name for name in arguments if f": {name} " in str(error)), None)
        raise ValueError(f"{where}{'' if name is None else '.' + name}: {error}") from None
    if feasible_set.dim != d:
        raise ValueError(f"{where}: has {feasible_set.dim} decisions, where there are {d} cost columns")
    if feasible_set.calls is None and _is_one_point(feasible_set):  # a solver that counts its calls may take long to answer
        raise ValueError(f"{where}: leaves one decision only, whatever the costs are: there is nothing to choose")
    return feasible_set


def _is_one_point(s: FeasibleSet) -> bool:
    """Whether a set has a single point: then opposite costs in a general direction have the same best decision."""
    costs = 1.0 + np.sqrt(np.arange(2.0, s.dim + 2.0))
    return bool(np.array_equal(s.decide(costs), s.decide(-costs)))


def parameter(value: Any, wanted: Kind, costs: Sequence[str], folder: Path, where: str) -> Any:
    """A parameter of the wanted kind, from its value or from the file that it names."""
    value = _from_file(value, wanted, costs, folder, where) if isinstance(value, Mapping) else value
    if wanted.each and not isinstance(value, list):
        return [value] * len(costs)
    if wanted.each and len(value) != len(costs):
        raise ValueError(f"{where}: must have an entry for each of the {len(costs)} cost columns, found {len(value)}")
    return value


def _from_file(value: Mapping[str, Any], wanted: Kind, costs: Sequence[str], folder: Path, where: str) -> list[Any]:
    """A vector from a column of a file, or a matrix from several columns. ``by``: the column with the names of the costs."""
    choice = wanted.choice
    for name in value:
        if name not in ("file", choice, "by"):
            raise ValueError(
                f"{where}.{name}: no such key{nearest(name, ('file', choice, 'by'))} (allowed: file, {choice}, by)"
            )
    for name in ("file", choice):
        if not (NAMES if name == "columns" else TEXT).accepts(value.get(name)):
            raise ValueError(
                f'{where}: must be such as {{ file = "items.csv", {choice} = "weight" }}, found {dict(value)!r:.60}'
            )
    with named_at(f"{where}.file"):
        require_file(folder / value["file"])
    source = open_source(folder / value["file"])
    names = matching(value[choice], source.columns) if choice == "columns" else [value[choice]]
    if not names:
        raise ValueError(f"{where}.{choice}: no column of {source.name} fits {value[choice]!r:.60}")
    by = value.get("by")
    if by is not None and not isinstance(by, str):
        raise ValueError(f"{where}.by: must be the name of a column, found {by!r:.60}")
    require_columns(source, [*names, *([by] if by is not None else [])])
    table = load(source, [*names, *([by] if by is not None else [])], [by] if by is not None else [])
    columns = []
    for name in names:
        cells = table.frame[name]
        numbers = numbers_of(cells)
        if (row := first_true(~np.isfinite(numbers))) is not None:
            text = "nothing" if missing_in(cells)[row] else repr(table.cell(row, name))
            raise ValueError(f"{table.at(row, name)}: must be a finite number, found {text}")
        columns.append(numbers)
    order = np.arange(len(table)) if by is None else _by_name(table, by, costs)
    if wanted is WHICH:
        return [bool(flag) for flag in columns[0][order]]
    return np.stack(columns, axis=1)[order].tolist() if choice == "columns" else columns[0][order].tolist()


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
