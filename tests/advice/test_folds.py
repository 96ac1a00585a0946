"""Folds: every sample is held out once, blocks are stretches, and too few samples are refused."""

import numpy as np
import pytest

import dffl
from dffl.advice.folds import folds, halved
from dffl.splitting import Splitting
from tests.federations import client


def fleet() -> dffl.Federation:
    return dffl.Federation([client("a", dffl.TopK(5, 2), n=13), client("b", dffl.TopK(5, 3), n=20)])


@pytest.mark.parametrize("blocks", [False, True])
def test_every_sample_is_held_out_once_and_trains_otherwise(blocks):
    federation = fleet()
    parts = folds(federation, 4, Splitting(blocks=blocks))
    for place, whole in enumerate(federation):
        seen = np.concatenate([fold.index[place] for fold in parts])
        assert sorted(seen.tolist()) == list(range(whole.n))
        for fold in parts:
            assert fold.train[place].n + fold.held[place].n == whole.n
            np.testing.assert_array_equal(fold.held[place].x, whole.x[fold.index[place]])
            np.testing.assert_array_equal(fold.held[place].w_star, whole.w_star[fold.index[place]])
            assert not set(map(bytes, fold.train[place].x)) & set(map(bytes, fold.held[place].x))


def test_blocks_are_stretches_and_random_folds_are_not():
    stretches = folds(fleet(), 4, Splitting(blocks=True))
    assert all((np.diff(fold.index[1]) == 1).all() for fold in stretches)
    assert not all((np.diff(fold.index[1]) == 1).all() for fold in folds(fleet(), 4, Splitting()))


def test_half_of_a_time_series_keeps_its_seasons_and_is_judged_on_the_same_samples():
    long = dffl.Federation([client("a", dffl.TopK(5, 2), n=70), client("b", dffl.TopK(5, 3), n=42)])
    whole = folds(long, 5, Splitting(blocks=True))
    for fold, half in zip(whole, halved(whole), strict=True):
        for place in range(2):
            weeks = np.arange(fold.train[place].n) // 7
            np.testing.assert_array_equal(half.train[place].x, fold.train[place].x[weeks % 2 == 0])
            np.testing.assert_array_equal(half.held[place].x, fold.held[place].x)
            assert 0.4 < half.train[place].n / fold.train[place].n < 0.65


def test_a_seed_fixes_the_folds_and_another_changes_them():
    one, again, other = (folds(fleet(), 4, Splitting(seed))[0].index[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_too_few_samples_are_named():
    with pytest.raises(ValueError, match=r"client 'a': x must have at least 16 samples to be judged in 8 folds, found 13"):
        folds(fleet(), 8, Splitting())
