"""Assignments: against a solver for integer programs, against all permutations, and by hand."""

from __future__ import annotations

import re
from itertools import permutations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.sets import Assignment, stack

from .instances import TOLERANCE, costs, solve
from .integers import Rows, check, longest


def as_rows(n: int) -> Rows:
    workers, jobs = np.kron(np.eye(n), np.ones((1, n))), np.kron(np.ones((1, n)), np.eye(n))
    return Rows(np.concatenate([workers, jobs]), np.ones(2 * n), np.ones(2 * n))


def all_assignments(n: int) -> np.ndarray:
    return np.array([np.eye(n)[list(order)].ravel() for order in permutations(range(n))])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_literal_assignments(dtype: str) -> None:
    # Worker 0 is cheapest at every job, but job 0 must go to worker 1, who is far dearer at the others.
    c = np.array([1, 2, 3, 2, 9, 9, 3, 4, 4.5])
    np.testing.assert_array_equal(solve(Assignment(3), c, dtype), [0, 1, 0, 1, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(solve(Assignment(3), -(np.arange(9.0) ** 2), dtype), [1, 0, 0, 0, 1, 0, 0, 0, 1])
    np.testing.assert_array_equal(solve(Assignment(1), np.array([5.0]), dtype), [1])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_an_integer_solver_agrees(n: int, dtype: str) -> None:
    c = costs(np.random.default_rng(n), (12, n * n))
    check(as_rows(n), c, solve(Assignment(n), c, dtype), TOLERANCE[dtype])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_all_permutations_agree(n: int, seed: int) -> None:
    every, s = all_assignments(n), Assignment(n)
    c = np.random.default_rng(seed).integers(-2, 3, (8, n * n)).astype(np.float32)
    w = solve(s, c, "float32")
    np.testing.assert_array_equal(np.sum(c * w, axis=1), (c @ every.T).min(axis=1))
    np.testing.assert_array_equal(solve(s, c, "float64"), w)  # ties as well: SciPy sees the same numbers
    assert np.asarray(s.contains(w)).all()
    assert s.diameter() == pytest.approx((longest(every), longest(every)))
    assert s.largest_norm() == pytest.approx(np.linalg.norm(every, axis=1).max())


def test_compiled_mapped_and_stacked_sets_answer_bit_for_bit() -> None:
    s = Assignment(3)
    c = np.random.default_rng(1).normal(size=(2, 30, 9)).astype(np.float32)
    single = np.array([[s.solve(row) for row in rows] for rows in c])
    both = stack([s, Assignment(3)])
    for found in (s.solve(c), jax.jit(s.solve)(c), jax.vmap(jax.vmap(s.solve))(c), both.solve(c), jax.jit(both.solve)(c)):
        np.testing.assert_array_equal(found, single)
    np.testing.assert_array_equal(jax.vmap(lambda s, rows: s.solve(rows))(both, c), single)


def test_contains_asks_for_permutations() -> None:
    s = Assignment(2)
    assert s.n == 2
    assert np.asarray(s.contains([[1, 0, 0, 1], [0, 1, 1, 0]])).all()
    assert not np.asarray(s.contains([[0.5, 0.5, 0.5, 0.5], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])).any()
    assert not bool(s.contains([np.nan, 0, 0, 1]))


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3", None])
def test_what_is_refused(n: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"Assignment: n must be a whole number >= 1, found {n!r}")):
        Assignment(n)
