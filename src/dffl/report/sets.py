"""A feasible set in a few words: `repr` shows every number, and a page has room for a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dffl.sets import FeasibleSet


def in_words(s: FeasibleSet) -> str:
    """What a client decides, such as "choose 6 of 24"; the family and the number of decisions where no words are known."""
    family = type(s).__name__
    return _WORDS[family](s) if family in _WORDS else f"{family}, {s.dim} decisions"


def _number(value: Any) -> str:
    return f"{float(value):.6g}"


def _knapsack(s: Any, whole: str) -> str:
    total = float(s.weights.sum())
    if float(s.budget) >= total:
        return f"{whole} {s.dim} items, budget for all of them"
    return f"{whole} {s.dim} items, budget for {float(s.budget) / total:.0%} of their weight"


def _hours(s: Any) -> str:
    window = "" if (int(s.first), int(s.last)) == (0, s.dim) else f", from hour {int(s.first)} to {int(s.last)}"
    times = "" if s.runs == 1 else f", {s.runs} times"
    return f"run {s.run} of {s.dim} hours on end{times}{window}"


def _path(s: Any) -> str:
    closed = int(s.closed.sum())
    return f"shortest path, {s.rows} x {s.columns} grid" + (f", {closed} arcs closed" if closed else "")


_WORDS: dict[str, Callable[[Any], str]] = {
    "TopK": lambda s: f"choose {_number(s.k)} of {s.dim}",
    "FractionalKnapsack": lambda s: _knapsack(s, "shares of"),
    "ZeroOneKnapsack": lambda s: _knapsack(s, "pack"),
    "Simplex": lambda s: f"divide {_number(s.scale)} among {s.dim}",
    "EntropySimplex": lambda s: f"portfolio of {s.dim}, entropy at least {_number(s.min_entropy)}",
    "Box": lambda s: f"{s.dim} amounts, each within its limits",
    "Ball": lambda s: f"a point of a ball, {s.dim} decisions",
    "Ellipsoid": lambda s: f"a point of an ellipsoid, {s.dim} decisions",
    "Polytope": lambda s: f"linear program, {s.dim} decisions",
    "MixedInteger": lambda s: f"mixed-integer program, {s.dim} decisions",
    "ModelFile": lambda s: f"model file, {s.dim} decisions",
    "Assignment": lambda s: f"assign {s.n} jobs to {s.n} workers",
    "Battery": lambda s: f"battery over {s.dim} hours",
    "ConsecutiveHours": _hours,
    "ShortestPath": _path,
}
