"""Both ways of ranking give one total order: lowest value first, ties to the lowest index, -0.0 equal to 0.0."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.sets import ranking
from dffl.sets.ranking import _compare, _sort, weight_before

finite = st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False)
entries = st.lists(st.one_of(st.sampled_from([-1.0, -0.0, 0.0, 1.0]), finite), min_size=9, max_size=9)


def expected(keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.zeros(keys.size)
    for i in range(keys.size):
        out[i] = sum(weights[j] for j in range(keys.size) if (keys[j], j) < (keys[i], i))
    return out


@pytest.mark.parametrize("rank", [_compare, _sort])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=40, deadline=None)
@given(keys=entries)
def test_what_comes_before_each_entry(rank, compiled: bool, dtype: str, keys: list[float]) -> None:
    weights = 2.0 ** np.arange(9)
    with jax.enable_x64(dtype == "float64"):
        found = (jax.jit(rank) if compiled else rank)(np.asarray(keys, dtype), np.asarray(weights, dtype))
    np.testing.assert_array_equal(found, expected(np.asarray(keys), weights))


@pytest.mark.parametrize("rank", [_compare, _sort])
def test_negative_zero_ties_with_zero_when_compiled(rank) -> None:
    # XLA removes an addition of 0.0, which would leave -0.0 before 0.0.
    keys = np.array([0.0, -0.0, -1.0, -0.0, 0.0], np.float32)
    np.testing.assert_array_equal(jax.jit(rank)(keys, np.ones(5, np.float32)), [1, 2, 0, 3, 4])


@pytest.mark.parametrize("rank", [_compare, _sort])
def test_a_heavy_entry_does_not_cancel_the_light_ones_before_it(rank) -> None:
    keys, weights = np.array([-2.0, -1.0], np.float32), np.array([1e-3, 1e6], np.float32)
    np.testing.assert_array_equal(rank(keys, weights), np.array([0, 1e-3], np.float32))


def test_short_vectors_are_compared_and_long_ones_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_compare", lambda keys, weights: "compared")
    monkeypatch.setattr(ranking, "_sort", lambda keys, weights: "sorted")
    limit = ranking.PAIRWISE_LIMIT
    assert [weight_before(np.zeros(n), np.ones(n)) for n in (1, limit, limit + 1)] == ["compared", "compared", "sorted"]


def test_both_ways_agree_at_the_limit() -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(-40, 40, (3, ranking.PAIRWISE_LIMIT)).astype(np.float32)
    weights = rng.integers(1, 9, keys.shape).astype(np.float32)  # sums of integers are exact in any order
    np.testing.assert_array_equal(_compare(keys, weights), _sort(keys, weights))
