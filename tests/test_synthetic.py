"""Synthetic federations: the paper's two problems, and PyEPO's shortest paths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dffl
from dffl.sets import ShortestPath
from dffl.synthetic import closed_arcs, rotation


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


# Shortest paths.


def test_paths_share_the_clients_problem_between_splits_and_differ_between_seeds() -> None:
    train, again, other = (dffl.synthetic.shortest_path(seed=seed) for seed in (5, 5, 6))
    test = dffl.synthetic.shortest_path(seed=5, split="test")
    assert (train.features, train.dim, len(train), train.counts) == (5, 40, 20, [100] * 20)
    assert test.counts == [1000] * 20
    for a, b, c, t in zip(train, again, other, test, strict=True):
        np.testing.assert_array_equal(a.c, b.c)
        assert not np.array_equal(a.c, c.c)
        assert not np.array_equal(a.x, t.x[: a.n])
        np.testing.assert_array_equal(a.set.closed, t.set.closed)
        assert a.cost_at is not None
        assert t.cost_at is not None
        np.testing.assert_array_equal(a.cost_at(t.x), t.cost_at(t.x))  # one rotation, one B
        np.testing.assert_array_equal(t.cost_at(t.x), t.c_mean)
        assert not a.maximize
    closed = np.stack([client.set.closed for client in train])
    assert len(np.unique(closed, axis=0)) == 20


def test_the_costs_of_paths_are_those_of_pyepo() -> None:
    """With one client as the others are, every cost is PyEPO's polynomial of some binary row, times its noise."""
    fed = dffl.synthetic.shortest_path(seed=1, clients=1, eta_obj=0.0, eta_constr=0.0, degree=6, samples=500)
    one = fed[0]
    assert one.c_mean is not None
    assert not one.set.closed.any()
    loadings = np.array([[(m >> i) & 1 for i in range(5)] for m in range(32)])
    possible = ((one.x @ loadings.T / math.sqrt(5) + 3) ** 6 + 1) / 3.5**6
    rows = [int(np.abs(possible / one.c_mean[:, [k]] - 1).max(axis=0).argmin()) for k in range(40)]
    np.testing.assert_allclose(one.c_mean, possible[:, rows], rtol=1e-12)
    assert 0.4 < loadings[rows].mean() < 0.6
    noise = one.c / one.c_mean
    assert noise.min() >= 0.5
    assert noise.max() <= 1.5
    assert noise.std() == pytest.approx(0.5 / math.sqrt(3), rel=0.02)
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.15  # each arc has noise of its own


def test_the_costs_of_paths_have_the_distribution_of_pyepos_generator() -> None:
    from scipy.stats import ks_2samp

    mine = [dffl.synthetic.shortest_path(seed, clients=1, eta_obj=0.0, eta_constr=0.0, samples=4)[0].c for seed in range(200)]
    theirs = [pyepo_costs(4, 5, (5, 5), 6, 0.5, seed) for seed in range(200)]
    for one in (lambda c: c[0, 0], np.mean, np.max, lambda c: np.std(c.sum(axis=1))):
        assert ks_2samp([one(c) for c in mine], [one(c) for c in theirs]).pvalue > 0.01


def pyepo_costs(n: int, p: int, grid: tuple[int, int], deg: int, noise_width: float, seed: int) -> np.ndarray:
    """The costs of `pyepo.data.shortestpath.genData`, word for word (release 2.2.7)."""
    rnd = np.random.RandomState(seed)
    d = (grid[0] - 1) * grid[1] + (grid[1] - 1) * grid[0]
    B = rnd.binomial(1, 0.5, (d, p))
    x = rnd.normal(0, 1, (n, p))
    c = (x @ B.T / np.sqrt(p) + 3) ** deg + 1
    c /= 3.5**deg
    epsilon = rnd.uniform(1 - noise_width, 1 + noise_width, (n, d))
    c *= epsilon
    return np.asarray(c)


def test_more_arcs_are_closed_with_eta_constr_and_those_before_stay_closed() -> None:
    closed = [
        np.stack([one.set.closed for one in dffl.synthetic.shortest_path(eta_constr=eta, samples=1)])
        for eta in (0.0, 0.25, 0.5, 1.0, 100.0)
    ]
    # A fifth of 40 arcs at 1. In the end all but the 8 of one path.
    assert [set(flags.sum(axis=1).tolist()) for flags in closed] == [{0}, {2}, {4}, {8}, {32}]
    for fewer, more in itertools.pairwise(closed):
        assert (more | ~fewer).all()


def test_an_arc_that_the_last_path_needs_stays_open() -> None:
    arcs = ShortestPath(2, 2).arcs  # 0: right, 1 and 2: down, 3: right
    assert closed_arcs([0, 1, 2, 3], arcs, 4).tolist() == [True, False, True, False]
    assert closed_arcs([3, 1, 2, 0], arcs, 4).tolist() == [False, True, False, True]
    assert closed_arcs([3, 1, 2, 0], arcs, 1).tolist() == [False, False, False, True]


def test_paths_may_have_any_grid_and_unequal_sizes() -> None:
    fed = dffl.synthetic.shortest_path(rows=2, columns=3, clients=4, features=2, imbalanced=True, noise=0.0)
    assert (fed.dim, fed.features, fed.counts) == (7, 2, [500, 500, 50, 50])
    for one in fed:
        np.testing.assert_array_equal(one.c, one.c_mean)


def test_literal_numbers_of_paths() -> None:
    one = dffl.synthetic.shortest_path(seed=0, clients=3)[1]
    np.testing.assert_allclose(one.c[0, :3], LITERAL_PATH_C, rtol=1e-10)
    assert np.flatnonzero(one.set.closed).tolist() == [0, 12, 16, 24]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 1}, "rows must be a whole number >= 2, found 1"),
        ({"columns": 2.5}, "columns must be a whole number >= 2, found 2.5"),
        ({"eta_constr": -0.5}, "eta_constr must be >= 0, found -0.5"),
        ({"eta_constr": math.inf}, "eta_constr must be finite"),
        ({"noise": 2}, r"noise must be in \[0, 1\], found 2"),
        ({"degree": 0}, "degree must be a whole number >= 1, found 0"),
    ],
)
def test_bad_arguments_of_paths_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.synthetic.shortest_path(**change)  # type: ignore[arg-type]


LITERAL_PATH_C = [0.5665783752029897, 5.793293096185335, 2.1993628568757155]
LITERAL_X = [1.6964384099740326, 0.9483961167885265, 1.359316306195656]
LITERAL_C = [10.084335341386177, 12.17292277844402, 5.881970465624377]
LITERAL_BUDGET = 59.932144477843316
