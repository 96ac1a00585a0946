"""Hours on end: against a solver for integer programs, against all schedules, and by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations, pairwise

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.sets import ConsecutiveHours, stack
from dffl.sets._numerics import MOST

from .instances import TOLERANCE, costs, solve
from .integers import Rows, longest, optimum


def starting(s: ConsecutiveHours) -> tuple[Rows, np.ndarray]:
    """The schedules as 0/1 vectors of starts, and the matrix from starts to hours."""
    starts = s.dim - s.run + 1
    hours = np.array([[1.0 if start <= h < start + s.run else 0.0 for start in range(starts)] for h in range(s.dim)])
    allowed = np.array([1.0 if start >= s.first and start + s.run <= s.last else 0.0 for start in range(starts)])
    matrix = np.concatenate([hours, np.ones((1, starts))])
    high = np.append(np.ones(s.dim), s.runs)
    return Rows(matrix, np.append(np.zeros(s.dim), s.runs), high, allowed), hours


def all_schedules(s: ConsecutiveHours) -> np.ndarray:
    """Every schedule; those whose first run begins earlier first, of them those whose second does, and so on."""
    found = []
    for starts in combinations(range(int(s.first), int(s.last) - s.run + 1), s.runs):
        if all(b - a >= s.run for a, b in pairwise(starts)):
            found.append(np.zeros(s.dim))
            for start in starts:
                found[-1][start : start + s.run] = 1
    return np.array(found)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_literal_schedules(dtype: str) -> None:
    prices = [5, 1, 2, 9, 1, 1, 9, 0]
    for s, c, wanted in (
        (ConsecutiveHours(8, 1), prices, [0, 0, 0, 0, 0, 0, 0, 1]),
        (ConsecutiveHours(8, 2), prices, [0, 0, 0, 0, 1, 1, 0, 0]),
        (ConsecutiveHours(8, 2, 2), prices, [0, 1, 1, 0, 1, 1, 0, 0]),
        (ConsecutiveHours(8, 2, first=6), prices, [0, 0, 0, 0, 0, 0, 1, 1]),
        (ConsecutiveHours(8, 2, last=4), prices, [0, 1, 1, 0, 0, 0, 0, 0]),
        (ConsecutiveHours(8, 4, 2), prices, [1, 1, 1, 1, 1, 1, 1, 1]),
        (ConsecutiveHours(6, 2), np.zeros(6), [1, 1, 0, 0, 0, 0]),  # ties: as early as possible
        (ConsecutiveHours(6, 2, 2, first=1), -np.ones(6), [0, 1, 1, 1, 1, 0]),
        (ConsecutiveHours(6, 2, 2), [-1, -1, 0, -1, -1, 0], [1, 1, 0, 1, 1, 0]),
        (ConsecutiveHours(1, 1), [7], [1]),
    ):
        np.testing.assert_array_equal(solve(s, np.asarray(c, float), dtype), wanted, err_msg=f"{s} {c}")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("dim", "run", "runs", "first", "last"), [(24, 3, 2, 6, 22), (24, 1, 5, 0, 24), (48, 5, 4, 3, 48)])
def test_an_integer_solver_agrees(dim: int, run: int, runs: int, first: int, last: int, dtype: str) -> None:
    s = ConsecutiveHours(dim, run, runs, first, last)
    rows, hours = starting(s)
    c = costs(np.random.default_rng(dim + run), (14, dim))
    w = solve(s, c, dtype)
    assert np.asarray(s.contains(w)).all()
    for one, answer in zip(c.astype(np.float64), w, strict=True):
        assert one @ answer <= optimum(rows, one @ hours) + TOLERANCE[dtype] * np.abs(one).sum()


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_all_schedules_agree_also_on_ties(data: st.DataObject) -> None:
    dim = data.draw(st.integers(1, 10))
    run = data.draw(st.integers(1, dim))
    runs = data.draw(st.integers(1, dim // run))
    first = data.draw(st.integers(0, dim - run * runs))
    last = data.draw(st.integers(first + run * runs, dim))
    s = ConsecutiveHours(dim, run, runs, first, last)
    every = all_schedules(s)
    c = np.random.default_rng(data.draw(st.integers(0, 10**6))).integers(-1, 2, (12, dim)).astype(np.float32)
    wanted = every[np.argmin(c @ every.T, axis=1)]  # whole numbers: ties are exact
    np.testing.assert_array_equal(solve(s, c, data.draw(st.sampled_from(list(TOLERANCE)))), wanted)
    assert s.diameter() == pytest.approx((longest(every), longest(every)))
    assert s.largest_norm() == pytest.approx(np.linalg.norm(every, axis=1).max())
    points = np.concatenate([every, np.random.default_rng(dim).integers(0, 2, (64, dim))])
    allowed = {tuple(one) for one in every.tolist()}
    assert np.asarray(s.contains(points)).tolist() == [tuple(p) in allowed for p in points.tolist()]


def test_the_diameter_in_numbers() -> None:
    assert ConsecutiveHours(24, 3).diameter() == pytest.approx((6**0.5, 6**0.5))
    assert ConsecutiveHours(24, 3, 2, 4, 12).diameter() == pytest.approx((2, 2))  # 6 of 8 hours: 2 each differ
    assert ConsecutiveHours(24, 3, 8).diameter() == (0, 0)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_compiled_mapped_and_stacked_sets_answer_bit_for_bit(dtype: str) -> None:
    rng = np.random.default_rng(1)
    windows = ([0, 5, 8], [24, 20, 16])
    sets = [ConsecutiveHours(24, 3, 2, first, last) for first, last in zip(*windows, strict=True)]
    both = stack(sets)
    with jax.enable_x64(dtype == "float64"):
        c = rng.normal(size=(3, 2 * MOST + 9, 24)).astype(dtype)  # whole blocks, and a part of one
        few = c[:, :6]
        single = np.array([[s.solve(row) for row in rows] for s, rows in zip(sets, few, strict=True)])
        for found in (
            [s.solve(rows) for s, rows in zip(sets, few, strict=True)],
            [s.solve(rows)[:6] for s, rows in zip(sets, c, strict=True)],
            [jax.vmap(s.solve)(rows) for s, rows in zip(sets, few, strict=True)],
            both.solve(few),
            jax.jit(both.solve)(c)[:, :6],
            jax.vmap(lambda s, rows: s.solve(rows))(both, few),
            ConsecutiveHours(24, 3, 2, *windows).solve(few),
        ):
            np.testing.assert_array_equal(np.array(found), single)
        assert np.asarray(both.contains(single)).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_costs_at_the_ends_of_the_range_change_nothing(dtype: str) -> None:
    rng = np.random.default_rng(2)
    s = ConsecutiveHours(24, 3, 3, 2, 23)
    c = rng.normal(size=(200, 24)).astype(np.float32).astype(np.float64)
    plain = solve(s, c, dtype)
    for power in {"float32": (-90, 125), "float64": (-900, 1020)}[dtype]:
        np.testing.assert_array_equal(solve(s, c * 2.0**power, dtype), plain)
    for odd in (np.inf, -np.inf, np.nan):  # no answer is right, but each is a schedule
        assert np.asarray(s.contains(solve(s, np.where(rng.random(c.shape) < 0.3, odd, c), dtype))).all()


def test_a_costly_hour_before_does_not_blur_the_later_ones() -> None:
    # A difference of running sums would be 0 for all later hours in float32.
    s = ConsecutiveHours(8, 2)
    assert np.asarray(s.solve(np.array([3e9, 5, 5, 5, 1, 1, 5, 5], np.float32))).tolist() == [0, 0, 0, 0, 1, 1, 0, 0]


def test_contains_asks_for_whole_hours() -> None:
    s = ConsecutiveHours(4, 2)
    assert bool(s.contains([0, 1, 1, 0]))
    assert not np.asarray(s.contains([[0.5, 1, 0.5, 0], [0, 1, 1, 1e-3], [2, 2, 0, 0], [-1, 0, 1, 1]])).any()
    assert not bool(s.contains([0, np.nan, 1, 0]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ConsecutiveHours(0, 1), "ConsecutiveHours: dim must be a whole number >= 1, found 0"),
        (lambda: ConsecutiveHours(24, 0), "ConsecutiveHours: run must be a whole number >= 1, found 0"),
        (lambda: ConsecutiveHours(24, 2.5), "ConsecutiveHours: run must be a whole number >= 1, found 2.5"),
        (lambda: ConsecutiveHours(24, 2, 0), "ConsecutiveHours: runs must be a whole number >= 1, found 0"),
        (lambda: ConsecutiveHours(24, 2, first=-1), "ConsecutiveHours: first must be a whole number from 0 to 24, found -1"),
        (lambda: ConsecutiveHours(24, 2, first=1.5), "ConsecutiveHours: first must be a whole number from 0 to 24, found 1.5"),
        (lambda: ConsecutiveHours(24, 2, last=25), "ConsecutiveHours: last must be a whole number from 0 to 24, found 25"),
        (lambda: ConsecutiveHours(24, 2, last="x"), "ConsecutiveHours: last must be numbers, found 'x'"),
        (
            lambda: ConsecutiveHours(24, 3, 2, 8, 13),
            "ConsecutiveHours: last - first must be >= 6, the hours of 2 runs of 3, found 5",
        ),
        (lambda: ConsecutiveHours(24, 25), "ConsecutiveHours: last - first must be >= 25, the hours of 1 runs of 25, found 24"),
        (
            lambda: ConsecutiveHours(24, 2, first=[1, 2], last=[9, 9, 9]),
            "ConsecutiveHours: leading client axes do not match: {'first': (2,), 'last': (3,)}",
        ),
    ],
)
def test_what_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build()
