"""The paper's synthetic federations."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dffl
from dffl.data.synthetic import rotation


@pytest.mark.parametrize("make", [dffl.synthetic.knapsack, dffl.synthetic.portfolio])
def test_one_seed_fixes_the_problem_and_splits_are_independent_draws(make: object) -> None:
    train, again, other = make(seed=5), make(seed=5), make(seed=6)  # type: ignore[operator]
    test = make(seed=5, split="test")  # type: ignore[operator]
    assert (train.features, train.dim, len(train), train.counts) == (8, 50, 20, [100] * 20)
    assert test.counts == [1000] * 20
    assert make(seed=5, split="validation").counts == [2000] * 20  # type: ignore[operator]
    for a, b, c, t in zip(train, again, other, test, strict=True):
        np.testing.assert_array_equal(a.c, b.c)
        assert not np.array_equal(a.c, c.c)
        assert not np.array_equal(a.x, t.x[: a.n])
        for mine, theirs in zip(a.set.spec().values(), t.set.spec().values(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert a.maximize


def test_the_costs_are_the_generating_polynomial() -> None:
    fed = dffl.synthetic.knapsack(seed=1, eta_obj=0.0, degree=6, clients=2, samples=400)
    c, x = np.concatenate([one.c for one in fed]), np.concatenate([one.x for one in fed])
    loadings = np.array([[(m >> i) & 1 for i in range(8)] for m in range(256)])
    possible = 1 + (1 + x @ loadings.T / math.sqrt(8)) ** 6
    for k in range(50):  # every cost belongs to one binary loading vector
        assert np.abs(possible / c[:, [k]] - 1).max(axis=0).min() < 1e-12


def test_eta_obj_turns_the_loadings_by_that_angle() -> None:
    for angle in (0.0, 0.25, 1.0):
        r = rotation(np.random.default_rng(0), 8, angle)
        np.testing.assert_allclose(r @ r.T, np.eye(8), atol=1e-12)
        values = np.angle(np.linalg.eigvals(r))
        assert np.sqrt((values**2).sum()) == pytest.approx(angle, abs=1e-9)  # |log R|_F


def test_constraints_spread_with_eta_constr() -> None:
    same = dffl.synthetic.knapsack(eta_constr=0.0)
    assert {float(c.set.budget) for c in same} == {30.0}
    wide = dffl.synthetic.portfolio(eta_constr=1.0)
    thresholds = np.array([float(c.set.min_entropy) for c in wide])
    assert thresholds.std() > 0.3
    assert (np.abs(thresholds - math.log(50) / 2) <= 1).all()


def test_imbalance_noise_and_the_literal_wording_are_options() -> None:
    fed = dffl.synthetic.portfolio(imbalanced=True, noise=1.0, maximize=False)
    assert fed.counts == [500] * 10 + [50] * 10
    for one in fed:
        assert not one.maximize
        assert one.c_mean is not None
        ratio = one.c / one.c_mean
        assert ratio.min() >= 0
        assert ratio.max() <= 2
        assert abs(ratio.mean() - 1) < 0.05
        assert ratio.std() == pytest.approx(1 / math.sqrt(3), rel=0.05)
    quiet = dffl.synthetic.knapsack()[0]
    np.testing.assert_array_equal(quiet.c, quiet.c_mean)


def test_literal_numbers_so_that_a_seed_means_the_same_tomorrow() -> None:
    one = dffl.synthetic.knapsack(seed=0, clients=3)[1]
    np.testing.assert_allclose(one.x[0, :3], LITERAL_X, rtol=1e-12)
    np.testing.assert_allclose(one.c[0, :3], LITERAL_C, rtol=1e-10)
    assert float(one.set.budget) == pytest.approx(LITERAL_BUDGET, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "holdout"}, "split must be one of train, validation, test, found 'holdout'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"clients": 0}, "clients must be a whole number >= 1, found 0"),
        ({"noise": 1.5}, r"noise must be in \[0, 1\], found 1.5"),
        ({"eta_obj": math.nan}, "eta_obj must be finite"),
        ({"samples": [5, 5]}, "samples must be a number >= 1, or one for each of 20 clients"),
        ({"degree": 2.5}, "degree must be a whole number >= 1, found 2.5"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.synthetic.knapsack(**change)  # type: ignore[arg-type]


LITERAL_X = [1.6964384099740326, 0.9483961167885265, 1.359316306195656]
LITERAL_C = [10.084335341386177, 12.17292277844402, 5.881970465624377]
LITERAL_BUDGET = 59.932144477843316
