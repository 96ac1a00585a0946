"""Tables of all lengths in tiles of few: every row comes back in its place, and how a client rounds is its own affair."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl import tiles
from dffl.tiles import LARGE, over_tiles, room


class Shift(eqx.Module):
    by: np.ndarray
    note: Any = "plain"


def tables(counts: list[int], width: int = 2) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(n, width)), rng.normal(size=(n, width))) for n in counts]


def moved(owners: list[Shift], parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[list[np.ndarray], list[tuple[int, int]]]:
    """owner.by + x + y for each row, and the shapes that were dispatched."""
    shapes = []

    def program(owner: Shift, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        shapes.append((owner.by.shape[0], x.shape[1]))
        assert owner.by.shape[0] == x.shape[0] == y.shape[0]
        return owner.by[:, None, None] + x + y

    return over_tiles(program, owners, parts, parts[0][0].shape[1]), shapes


@settings(max_examples=100, deadline=None)
@given(counts=st.lists(st.integers(1, 700), min_size=1, max_size=12))
def test_every_row_comes_back_in_its_place(counts: list[int]) -> None:
    parts = tables(counts)
    found, _ = moved([Shift(np.asarray(float(k))) for k in range(len(counts))], parts)
    for k, ((x, y), out) in enumerate(zip(parts, found, strict=True)):
        np.testing.assert_array_equal(out, k + x + y)


@pytest.mark.parametrize(("counts", "width"), [(range(50, 90), 50), (range(1, 200), 50), (range(3000, 9000, 97), 5), ([1], 5)])
def test_few_shapes_and_little_waste(counts: range, width: int) -> None:
    parts = tables(list(counts), width)
    _, shapes = moved([Shift(np.zeros(())) for _ in parts], parts)
    assert len(set(shapes)) <= 3
    assert sum(t * r for t, r in shapes) <= max(2 * sum(counts), 3 * LARGE)


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 10000), width=st.integers(1, 3000), others=st.lists(st.integers(1, 3000), max_size=5))
def test_a_dispatch_is_large_where_the_client_is_and_small_where_it_is_small(n: int, width: int, others: list[int]) -> None:
    fewest, most = room(n, width)
    assert 1 <= fewest <= most
    assert (n * width >= LARGE) == (fewest * width >= LARGE) == (most * width >= LARGE)
    assert (n >= LARGE) == (fewest >= LARGE) == (most >= LARGE)


def test_only_what_has_one_form_is_stacked() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    owners = [Shift(np.zeros(())), Shift(np.zeros(()), "other"), Shift(np.zeros(()), 1), Shift(np.zeros(()), True)]
    owners += [Shift(np.zeros(()), Unhashable()), Shift(np.zeros(()), Unhashable()), Shift(np.zeros((), np.float32))]
    _, shapes = moved(owners, tables([5] * len(owners)))
    assert len(shapes) == len(owners)
    _, shapes = moved([Shift(np.zeros(())), Shift(jax.numpy.zeros(())), Shift(np.zeros((), np.float32))], tables([5] * 3))
    assert len(shapes) == 2


def test_large_owners_are_not_repeated_beyond_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tables([64] * 20)
    owners = [Shift(np.zeros(())) for _ in parts]
    assert len(moved(owners, parts)[1]) == 1
    monkeypatch.setattr(tiles, "BYTES", 3 * owners[0].by.nbytes)
    found, shapes = moved(owners, parts)
    assert max(t for t, _ in shapes) <= 3
    np.testing.assert_array_equal(found[-1], sum(parts[-1]))
