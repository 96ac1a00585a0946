"""How samples are split into minibatches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.randomness import Purpose, permutation, stream
from dffl.shapes import round_up
from dffl.training.batches import Batches, steps_per_epoch


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 3000), batch=st.integers(1, 100))
def test_every_sample_once_in_equal_batches_none_too_large(n: int, batch: int) -> None:
    batches = Batches("a", n, batch, seed=0, offset=7)
    grid = np.full((batches.steps, batches.rows), -1, np.int32)
    batches.write(0, Purpose.SHUFFLE, grid)
    sizes = (grid >= 0).sum(axis=1)
    assert sorted(grid[grid >= 0]) == list(range(7, n + 7))
    assert sizes.max() <= batch
    assert sizes.max() - sizes.min() <= 1
    fewest = -(-n // batch)
    assert fewest <= batches.steps <= max(fewest * 1.25, 1)


def test_literal_numbers_of_batches() -> None:
    assert [steps_per_epoch(n, 64) for n in (1, 50, 64, 65, 100, 500, 512, 513, 1000)] == [1, 1, 1, 2, 2, 8, 8, 10, 16]
    assert [round_up(k) for k in range(1, 20)] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 12, 12, 14, 14, 16, 16, 20, 20, 20]
    assert sorted({round_up(k, bits=2) for k in range(1, 65)}) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert sorted({Batches("a", n, 64, seed=0).rows for n in range(1, 65)}) == [4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64]


def test_shuffles_differ_by_epoch_client_seed_and_purpose() -> None:
    def order(name: str = "a", epoch: int = 0, seed: int = 0, purpose: Purpose = Purpose.SHUFFLE) -> tuple[int, ...]:
        batches = Batches(name, 30, 8, seed)
        grid = np.full((batches.steps, batches.rows), -1)
        batches.write(epoch, purpose, grid)
        return tuple(grid.ravel())

    assert order() == order()
    assert len({order(), order("b"), order(epoch=1), order(seed=1), order(purpose=Purpose.TUNE)}) == 5


def test_a_permutation_is_that_of_its_stream() -> None:
    for seed, name, counter, n in ((0, "a", 0, 7), (3, "client-07", 5, 100), (2**62, "ö", 2**40, 1), (0, "a", 0, 7)):
        for purpose in (Purpose.SHUFFLE, Purpose.TUNE):
            expected = stream(seed, purpose, name, counter).permutation(n)
            np.testing.assert_array_equal(permutation(seed, purpose, name, counter, n), expected)
