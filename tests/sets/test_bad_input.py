"""What is refused, and that the message names the class, the field, what was found and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from dffl.sets import Ball, Box, Ellipsoid, EntropySimplex, FeasibleSet, FractionalKnapsack, Polytope, Simplex, TopK

nan, inf = math.nan, math.inf
I2 = [[1, 0], [0, 1]]
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: FractionalKnapsack([1, 1], -1), "FractionalKnapsack: budget must be >= 0, found -1"),
    (lambda: FractionalKnapsack([1, 1], [1, -2]), "FractionalKnapsack: budget must be >= 0, found -2"),
    (lambda: FractionalKnapsack([1, 0], 1), "FractionalKnapsack: weights must be > 0, found 0"),
    (lambda: FractionalKnapsack([1, -3], 1), "FractionalKnapsack: weights must be > 0, found -3"),
    (lambda: FractionalKnapsack([1, nan], 1), "FractionalKnapsack: weights must be finite, found nan"),
    (lambda: FractionalKnapsack([1, 1], inf), "FractionalKnapsack: budget must be finite, found inf"),
    (lambda: FractionalKnapsack("abc", 1), "FractionalKnapsack: weights must be numbers, found 'abc'"),
    (lambda: FractionalKnapsack(["1", "2"], 1), "FractionalKnapsack: weights must be numbers, found ['1', '2']"),
    (lambda: FractionalKnapsack([1, 2], "3"), "FractionalKnapsack: budget must be numbers, found '3'"),
    (lambda: FractionalKnapsack(np.array([1j]), 1), "FractionalKnapsack: weights must be numbers, found array([0.+1.j])"),
    (lambda: FractionalKnapsack([[1, 2], [3]], 1), "FractionalKnapsack: weights must be numbers, found [[1, 2], [3]]"),
    (lambda: FractionalKnapsack(3, 1), "FractionalKnapsack: weights must have at least 1 axes, found shape ()"),
    (lambda: FractionalKnapsack([], 1), "FractionalKnapsack: weights must not be empty, found shape (0,)"),
    (
        lambda: FractionalKnapsack(np.ones((3, 2)), [1, 2]),
        "FractionalKnapsack: leading client axes do not match: {'weights': (3,), 'budget': (2,)}",
    ),
    (lambda: TopK(3, -1), "TopK: k must be in [0, 3], found -1"),
    (lambda: TopK(3, 3.5), "TopK: k must be in [0, 3], found 3.5"),
    (lambda: TopK(3, nan), "TopK: k must be finite, found nan"),
    (lambda: TopK(0, 0), "TopK: dim must be a whole number >= 1, found 0"),
    (lambda: TopK(2.5, 1), "TopK: dim must be a whole number >= 1, found 2.5"),
    (lambda: TopK("3", 1), "TopK: dim must be a whole number >= 1, found '3'"),
    (lambda: TopK(True, 1), "TopK: dim must be a whole number >= 1, found True"),
    (lambda: TopK(None, 1), "TopK: dim must be a whole number >= 1, found None"),
    (lambda: TopK([3], 1), "TopK: dim must be a whole number >= 1, found [3]"),
    (lambda: TopK(nan, 1), "TopK: dim must be a whole number >= 1, found nan"),
    (lambda: TopK(inf, 1), "TopK: dim must be a whole number >= 1, found inf"),
    (lambda: EntropySimplex(3, -0.1), "EntropySimplex: min_entropy must be in [0, log 3 = 1.09861], found -0.1"),
    (lambda: EntropySimplex(3, 1.2), "EntropySimplex: min_entropy must be in [0, log 3 = 1.09861], found 1.2"),
    (lambda: EntropySimplex(3, nan), "EntropySimplex: min_entropy must be finite, found nan"),
    (lambda: EntropySimplex(-3, 0), "EntropySimplex: dim must be a whole number >= 1, found -3"),
    (lambda: Simplex(3, -1), "Simplex: scale must be >= 0, found -1"),
    (lambda: Simplex(3, inf), "Simplex: scale must be finite, found inf"),
    (lambda: Box([0, 2], [1, 1]), "Box: upper - lower must be >= 0 (not reversed), found -1"),
    (lambda: Box([0, 0], [1, 1, 1]), "Box: lower and upper must be equally long, found 2 and 3"),
    (lambda: Box([0, nan], [1, 1]), "Box: lower must be finite, found nan"),
    (lambda: Box([0, 0], [1, inf]), "Box: upper must be finite, found inf"),
    (lambda: Ball([0, 0], -2), "Ball: radius must be >= 0, found -2"),
    (lambda: Ball([0, nan], 1), "Ball: center must be finite, found nan"),
    (lambda: Ball(0, 1), "Ball: center must have at least 1 axes, found shape ()"),
    (
        lambda: Ellipsoid([0, 0], [[1, 2], [2, 1]]),
        "Ellipsoid: shape's lowest eigenvalue must be > 0 (positive definite), found -1",
    ),
    (lambda: Ellipsoid([0, 0], [[1, 2], [0, 9]]), "Ellipsoid: shape minus its transpose must be 0 (symmetric), found 2"),
    (
        lambda: Ellipsoid([0, 0], [I2, [[1e-9, 1e-9], [0, 1e-9]]]),
        "Ellipsoid: shape minus its transpose must be 0 (symmetric), found 1e-09",
    ),
    (lambda: Ellipsoid([0, 0, 0], I2), "Ellipsoid: shape must be (3, 3) as center has 3 entries, found (2, 2)"),
    (lambda: Ellipsoid([0, 0], [[1, nan], [nan, 1]]), "Ellipsoid: shape must be finite, found nan"),
    (lambda: Polytope(), "Polytope: give A_ub, A_eq, or lower or upper as a vector, so that its dimension is known"),
    (lambda: Polytope(lower=0, upper=1), "Polytope: give A_ub, A_eq, or lower or upper as a vector"),
    (lambda: Polytope(lower=[0, 0], upper=[-1, 1]), "Polytope: lower must be <= upper, found 0 and -1 at coordinate 0"),
    (lambda: Polytope(A_eq=I2, b_eq=[1, 5], lower=0, upper=2), "Polytope: it is empty: no point satisfies"),
    (lambda: Polytope(lower=[0, 0]), "Polytope: it is unbounded: add lower and upper bounds"),
    (lambda: Polytope(A_ub=[[1, 1]], b_ub=[1], lower=[0, -inf]), "Polytope: it is unbounded: add lower and upper bounds"),
    (lambda: Polytope(A_ub=I2, lower=0), "Polytope: A_ub and b_ub go together; one of them is missing"),
    (lambda: Polytope(b_eq=[1], lower=[0], upper=[1]), "Polytope: A_eq and b_eq go together; one of them is missing"),
    (lambda: Polytope(A_ub=I2, b_ub=[1]), "Polytope: b_ub must have one entry per row of A_ub, found (1,) for (2, 2)"),
    (lambda: Polytope(A_ub=[1, 2], b_ub=[1]), "Polytope: A_ub must be a matrix with one row per constraint, found shape (2,)"),
    (
        lambda: Polytope(A_ub=I2, b_ub=[1, 1], upper=[1, 1, 1]),
        "Polytope: A_ub, A_eq, lower and upper must be equally wide and not empty, found {'A_ub': 2, 'upper': 3}",
    ),
    (lambda: Polytope(lower=[], upper=[]), "must be equally wide and not empty, found {'lower': 0, 'upper': 0}"),
    (lambda: Polytope(lower=[[0, 0]], upper=1), "Polytope: lower must be a number or a vector, found shape (1, 2)"),
    (lambda: Polytope(lower=[0, 0], upper=[1, nan]), "Polytope: upper must be numbers or inf, found nan"),
    (lambda: Polytope(lower=[0, inf], upper=[1, 1]), "Polytope: lower must be numbers or -inf, found inf"),
    (lambda: Polytope(lower="a", upper=[1]), "Polytope: lower must be numbers, found 'a'"),
    (lambda: Polytope(A_ub=[[1, inf]], b_ub=[1], lower=0, upper=1), "Polytope: A_ub must be finite, found inf"),
    (lambda: Polytope(A_ub=[[1, 2], [3]], b_ub=[1, 2]), "Polytope: A_ub must be numbers, found [[1, 2], [3]]"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[m[:60] for _, m in REFUSED])
def test_bad_parameters_are_refused_when_the_set_is_built(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


@pytest.mark.parametrize(("method", "what"), [("solve", "costs"), ("support", "directions"), ("contains", "points")])
@pytest.mark.parametrize(
    ("s", "value", "wanted"),
    [
        (TopK(3, 1), np.zeros(4), "(..., 3), found (4,)"),
        (TopK(3, 1), 1.0, "(..., 3), found ()"),
        (TopK(3, [1, 2]), np.zeros(3), "(2, ..., 3), found (3,)"),
        (TopK(3, [1, 2]), np.zeros((3, 3)), "(2, ..., 3), found (3, 3)"),
        (Polytope(lower=[0, 0], upper=1), np.zeros((2, 3)), "(..., 2), found (2, 3)"),
    ],
)
def test_wrong_shapes_are_refused(method: str, what: str, s: FeasibleSet, value: object, wanted: str) -> None:
    message = f"{type(s).__name__}: {what} must have shape {wanted}"
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(s, method)(value)


@pytest.mark.parametrize("value", ["abc", [[1, 2], [3]], None, {"a": 1}])
def test_costs_that_are_not_numbers_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="TopK: costs must be numbers, found "):
        TopK(3, 1).solve(value)


def test_the_limits_themselves_are_allowed() -> None:
    FractionalKnapsack([1e-9], 0)
    TopK(3, [0, 3])
    for d in range(1, 200):
        EntropySimplex(d, [0, float(np.log(d)), math.log(d)])
    Box([1], [1])
    Ball([0], 0)
    Simplex(1, 0)
    Polytope(lower=[-inf, 0], upper=[1, 1], A_ub=[[-1, 0]], b_ub=[0])
