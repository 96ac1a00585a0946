"""The kinds of parameters that a federation.toml can give to a set: what `FeasibleSet.toml_parameters` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One kind of parameter.

    - ``text``: how messages call it.
    - ``accepts``: whether a value of the file is of this kind.
    - ``each``: it has one entry for each cost column; a single number stands for all of them.
    - ``choice``: how a table such as ``{ file = "items.csv", column = "weight" }`` names what it takes from a file: "column" or
      "columns"; "" where the parameter cannot be in a file.
    """

    text: str
    accepts: Callable[[Any], bool]
    each: bool = False
    choice: str = ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _place(value: Any) -> bool:
    return _whole(value) and value >= 0


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _list_of(entry: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(entry(item) for item in value)


def _either(*kinds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: any(kind(value) for kind in kinds)


def _rows(value: Any) -> bool:
    rows = isinstance(value, list) and all(_list_of(_number)(row) for row in value)
    return rows and len({len(row) for row in value}) == 1


NUMBER = Kind("a number", _number)
WHOLE = Kind("a whole number", _whole)
FLAG = Kind("true or false", _flag)
TEXT = Kind("a text", _text)
NAMES = Kind("a text or a list of texts", _either(_text, _list_of(_text)))
PATH = Kind("a text", _text)
"""A path, relative to the folder of the federation.toml; it must be given even where the constructor has a default."""
VECTOR = Kind("a number or a list of numbers", _either(_number, _list_of(_number)), choice="column")
EACH = Kind(VECTOR.text, VECTOR.accepts, each=True, choice="column")
"""A number for each cost column, or one number for all."""
MATRIX = Kind("a list of rows of numbers", _rows, choice="columns")
WHICH = Kind(
    "true, or a list of column numbers or of true and false", _either(_flag, _list_of(_either(_flag, _place))), choice="column"
)
COUNT = Kind("a whole number, or a list of column numbers", _either(_place, _list_of(_place)))
LIMITS = {"nodes": WHOLE, "seconds": NUMBER}
"""The limits of a search by branch and bound."""
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
"""The rows and bounds of a program."""
