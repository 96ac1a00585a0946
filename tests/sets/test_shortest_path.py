"""Shortest paths: against a solver for integer programs, against all paths, and by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.sets import ShortestPath, stack

from .instances import TOLERANCE, costs, solve
from .integers import Rows, check, longest

RIGHT_THEN_DOWN = [1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]  # in a grid of 3 x 3


def arcs(rows: int, columns: int) -> list[tuple[int, int]]:
    """PyEPO's `_get_grid_arcs`, word for word (release 2.2.7)."""
    found = []
    for i in range(rows):
        for j in range(columns - 1):
            v = i * columns + j
            found.append((v, v + 1))
        if i == rows - 1:
            continue
        for j in range(columns):
            v = i * columns + j
            found.append((v, v + columns))
    return found


def as_rows(s: ShortestPath) -> Rows:
    nodes, supply = np.zeros((s.rows * s.columns, s.dim)), np.zeros(s.rows * s.columns)
    for arc, (tail, head) in enumerate(arcs(s.rows, s.columns)):
        nodes[tail, arc], nodes[head, arc] = 1, -1
    supply[0], supply[-1] = 1, -1
    return Rows(nodes, supply, supply, np.where(s.closed, 0.0, 1.0))


def all_paths(s: ShortestPath) -> np.ndarray:
    """Every path; at each node the way right first."""
    number = {ends: k for k, ends in enumerate(arcs(s.rows, s.columns))}

    def onward(node: int) -> list[list[int]]:
        if node == s.rows * s.columns - 1:
            return [[]]
        ways = [(node, node + 1)] if (node + 1) % s.columns else []
        ways += [(node, node + s.columns)] if node + s.columns < s.rows * s.columns else []
        return [[number[way], *rest] for way in ways if not s.closed[number[way]] for rest in onward(way[1])]

    found = np.zeros((len(paths := onward(0)), s.dim))
    for row, path in zip(found, paths, strict=True):
        row[path] = 1
    return found


def grid(rng: np.random.Generator, rows: int, columns: int, share: float) -> ShortestPath:
    """A grid with some closed arcs that leave a path."""
    d = len(arcs(rows, columns))
    for _ in range(50):
        try:
            return ShortestPath(rows, columns, rng.random(d) < share)
        except ValueError:
            continue
    return ShortestPath(rows, columns)


def test_the_arcs_are_in_pyepos_order() -> None:
    for rows, columns in ((5, 5), (3, 4), (4, 2), (1, 6), (6, 1)):
        s = ShortestPath(rows, columns)
        assert s.arcs == arcs(rows, columns)
        assert s.dim == len(s.arcs) == rows * (columns - 1) + (rows - 1) * columns
    assert ShortestPath(5, 5).dim == 40
    assert ShortestPath(2, 3).arcs == [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 4), (4, 5)]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_literal_paths(dtype: str) -> None:
    plain = [5, 5, 1, 9, 9, 1, 1, 9, 9, 1, 9, 9]  # down, right, right, down
    shut = np.array(RIGHT_THEN_DOWN) == 1
    for s, c, wanted in (
        (ShortestPath(3, 3), plain, [0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0]),
        (ShortestPath(3, 3), np.negative(plain), [1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1]),
        (ShortestPath(3, 3), np.zeros(12), RIGHT_THEN_DOWN),  # ties go right
        (ShortestPath(3, 3), -np.ones(12), RIGHT_THEN_DOWN),
        (ShortestPath(3, 3, shut), np.zeros(12), [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]),
        (ShortestPath(4, 2), np.zeros(10), [1, 0, 1, 0, 0, 1, 0, 0, 1, 0]),  # lanes are columns here
        (ShortestPath(1, 4), [3, -1, 2], [1, 1, 1]),
        (ShortestPath(4, 1), [3, -1, 2], [1, 1, 1]),
        (ShortestPath(2, 2), [1, 0, 1, 0], [0, 1, 0, 1]),
    ):
        np.testing.assert_array_equal(solve(s, np.asarray(c, float), dtype), wanted, err_msg=f"{s} {c}")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (2, 7), (6, 3), (1, 5), (5, 1), (9, 9)])
def test_an_integer_solver_agrees(rows: int, columns: int, dtype: str) -> None:
    rng = np.random.default_rng([rows, columns])
    for share in (0.0, 0.2):
        s = grid(rng, rows, columns, share)
        c = costs(rng, (12, s.dim))
        check(as_rows(s), c, solve(s, c, dtype), TOLERANCE[dtype])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([0.0, 0.3]), st.integers(0, 10**6))
def test_all_paths_agree_also_on_ties(rows: int, columns: int, share: float, seed: int) -> None:
    if rows * columns == 1:
        return
    rng = np.random.default_rng(seed)
    s = grid(rng, rows, columns, share)
    paths = all_paths(s)
    c = rng.integers(-1, 2, (16, s.dim)).astype(np.float32)  # whole numbers: ties are exact
    # Of the paths that cost least, the first in the order of `all_paths`: it goes right wherever it can.
    wanted = paths[np.argmin(c @ paths.T, axis=1)]
    for dtype in TOLERANCE:
        np.testing.assert_array_equal(solve(s, c, dtype), wanted)
    assert s.diameter() == pytest.approx((longest(paths), longest(paths)))
    assert s.largest_norm() == pytest.approx(np.linalg.norm(paths, axis=1).max())


def test_the_diameter_in_numbers() -> None:
    assert ShortestPath(5, 5).diameter() == pytest.approx((4, 4))
    assert ShortestPath(1, 9).diameter() == (0, 0)
    only_right = ShortestPath(2, 3, [False, False, True, False, False, False, False])  # the first arc is in all paths
    assert only_right.diameter() == pytest.approx((2, 2))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_compiled_mapped_and_stacked_sets_answer_bit_for_bit(dtype: str) -> None:
    rng = np.random.default_rng(1)
    sets = [grid(rng, 4, 5, share) for share in (0.0, 0.1, 0.2)]
    both = stack(sets)
    with jax.enable_x64(dtype == "float64"):
        c = rng.normal(size=(3, 50, both.dim)).astype(dtype)
        single = np.array([[s.solve(row) for row in rows] for s, rows in zip(sets, c, strict=True)])
        for found in (
            [s.solve(rows) for s, rows in zip(sets, c, strict=True)],
            [jax.vmap(s.solve)(rows) for s, rows in zip(sets, c, strict=True)],
            both.solve(c),
            jax.jit(both.solve)(c),
            jax.vmap(lambda s, rows: s.solve(rows))(both, c),
            ShortestPath(4, 5, [s.closed for s in sets]).solve(c),
        ):
            np.testing.assert_array_equal(np.array(found), single)
        assert np.asarray(both.contains(single)).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_costs_at_the_ends_of_the_range_change_nothing(dtype: str) -> None:
    rng = np.random.default_rng(2)
    s = grid(rng, 5, 5, 0.1)
    c = rng.normal(size=(200, 40)).astype(np.float32).astype(np.float64)
    plain = solve(s, c, dtype)
    for power in {"float32": (-90, 125), "float64": (-900, 1020)}[dtype]:
        np.testing.assert_array_equal(solve(s, c * 2.0**power, dtype), plain)
    for odd in (np.inf, -np.inf, np.nan):  # no answer is right, but each is a path
        assert np.asarray(s.contains(solve(s, np.where(rng.random(c.shape) < 0.3, odd, c), dtype))).all()


def test_contains_asks_for_a_whole_path_over_open_arcs() -> None:
    s = ShortestPath(3, 3)
    way = np.array(RIGHT_THEN_DOWN, float)
    other = np.asarray(s.solve(np.array(RIGHT_THEN_DOWN, float)))
    assert bool(s.contains(way))
    assert not bool(s.contains(0.5 * way + 0.5 * other))  # a flow, but not whole
    assert not bool(s.contains(np.where(np.arange(12) == 9, 0, way)))  # it ends too early
    assert not bool(s.contains(np.zeros(12)))
    assert not bool(s.contains(2 * way))
    assert not bool(ShortestPath(3, 3, np.arange(12) == 4).contains(way))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ShortestPath(0, 3), "ShortestPath: rows must be a whole number >= 1, found 0"),
        (lambda: ShortestPath(3, 2.5), "ShortestPath: columns must be a whole number >= 1, found 2.5"),
        (lambda: ShortestPath(True, 3), "ShortestPath: rows must be a whole number >= 1, found True"),
        (lambda: ShortestPath(1, 1), "ShortestPath: rows and columns must make a grid of at least 2 nodes, found 1 and 1"),
        (lambda: ShortestPath(2, 2, [True, False]), "ShortestPath: closed must be 4 flags, true or false, found shape (2,)"),
        (
            lambda: ShortestPath(2, 2, [1, 0, 0, 0]),
            "ShortestPath: closed must be 4 flags, true or false, found shape (4,) of int",
        ),
        (lambda: ShortestPath(2, 2, "yes"), "ShortestPath: closed must be 4 flags, true or false, found "),
        (lambda: ShortestPath(2, 2, [[True], []]), "ShortestPath: closed must be 4 flags, true or false, found [[True], []]"),
        (
            lambda: ShortestPath(2, 2, [True, True, False, False]),
            "ShortestPath: closed must leave a path from corner to corner, found none",
        ),
        (
            lambda: ShortestPath(2, 2, [[False] * 4, [True, False, False, True]]),
            "ShortestPath: closed must leave a path from corner to corner, found none of set [1]",
        ),
    ],
)
def test_what_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


def test_the_largest_norm_is_that_of_every_path() -> None:
    assert ShortestPath(5, 5).largest_norm() == math.sqrt(8)
