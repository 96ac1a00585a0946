"""`nearest`, `ridge`, `ridge-pooled` and `trees` against scikit-learn, and their choices against brute force."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import PolynomialFeatures

import dffl
from dffl.judging import predicted, regrets_at
from dffl.predictor import Normaliser
from dffl.training import METHODS, Run, Settings
from dffl.training.alone import best_of
from dffl.training.methods.nearest import NEIGHBOURS, held_out_means
from dffl.training.methods.ridge_pooled import SummedRidge
from dffl.training.methods.trees import MIN_LEAF, TreesPredictor, grow
from dffl.training.ridge import PENALTIES, expanded, ridges
from tests.federations import client, mixed

PLAIN = ("nearest", "ridge", "ridge-pooled", "trees")
ELSEWHERE = np.random.default_rng(8).normal(size=(300, 3))


@pytest.fixture(scope="module")
def one() -> dffl.Client:
    return client("a", dffl.TopK(5, 2), n=40, maximize=True)


def standardised(of: dffl.Client, x: np.ndarray) -> np.ndarray:
    return (x - of.x.mean(axis=0)) / of.x.std(axis=0)


def noise(name: str, n: int) -> dffl.Client:
    """Costs that have nothing to do with the features."""
    rng = np.random.default_rng(list(name.encode()))
    return dffl.Client(name, rng.normal(size=(n, 3)), rng.normal(size=(n, 5)), dffl.TopK(5, 2))


def chosen(fit: dffl.Fit, label: str) -> list[float]:
    return [member.choices[label] for member in fit.members.values()]


# nearest


@pytest.mark.parametrize("neighbours", [1, 7, 40])
def test_nearest_is_the_mean_of_the_nearest_samples(one: dffl.Client, neighbours: int) -> None:
    theirs = KNeighborsRegressor(neighbours).fit(standardised(one, one.x), one.c).predict(standardised(one, ELSEWHERE))
    fit = dffl.fit(dffl.Federation([one]), "nearest", neighbours=neighbours)
    np.testing.assert_allclose(fit.predict("a", ELSEWHERE), theirs, rtol=1e-12)


def test_samples_that_are_equally_near_all_count() -> None:
    x, c = np.repeat([[0.0], [1.0]], [3, 1], axis=0), np.arange(8.0).reshape(4, 2)
    fit = dffl.fit(dffl.Federation([dffl.Client("a", x, c, dffl.Simplex(2))]), "nearest", neighbours=2)
    np.testing.assert_allclose(fit.predict("a", [[0.0], [0.1], [1.0]]), [[2, 3], [2, 3], [3, 4]])


@pytest.mark.parametrize("judge", ["regret", "mse"])
def test_the_number_of_neighbours_is_chosen_by_leaving_each_sample_out(judge: str) -> None:
    fed = dffl.Federation([*mixed(n=30, families=["topk"]), noise("noise", 30), noise("more", 60)])
    numbers = chosen(dffl.fit(fed, "nearest", judge=judge), "neighbours")
    for member, found in zip(fed, numbers, strict=True):
        z, losses = standardised(member, member.x), {}
        for k in (k for k in NEIGHBOURS if k < member.n):
            others = KNeighborsRegressor(k).fit(z, member.c).kneighbors(return_distance=False)  # none is its own neighbour
            guesses = member.c[others].mean(axis=1)
            losses[k] = regrets_at(member, guesses).mean() if judge == "regret" else np.mean((guesses - member.c) ** 2)
        assert found == min(losses, key=losses.__getitem__), member.name
    assert len(set(numbers)) > 1, "a test of one choice"


def test_neighbours_in_time_are_left_out_together() -> None:
    """A sample has a copy beside it: by leave-one-out that copy is the best guess, by stretches it is left out too."""
    once = noise("noise", 40)
    twice = dffl.Client("twice", np.repeat(once.x, 2, axis=0), np.repeat(once.c, 2, axis=0), once.set)
    fed = dffl.Federation([twice])
    assert chosen(dffl.fit(fed, "nearest", judge="mse", split="draw"), "neighbours") == [1]
    with pytest.warns(UserWarning, match="40 of the 80 rows of client 'twice' are different ones"):
        assert chosen(dffl.fit(fed, "nearest", judge="mse"), "neighbours") != [1]
    assert chosen(dffl.fit(fed, "nearest", judge="mse", validation_blocks=True), "neighbours") == [50]
    group = np.repeat(np.arange(5), 16)
    [means] = held_out_means(standardised(twice, twice.x), twice.c, group, [64])
    np.testing.assert_allclose(means[20], twice.c[group != 1].mean(axis=0))


# ridge


@pytest.mark.parametrize(("degree", "penalty"), list(itertools.product([1, 2], [1e-4, 1.0, 1e3])))
def test_ridge_is_that_of_scikit_learn(one: dffl.Client, degree: int, penalty: float) -> None:
    shape = PolynomialFeatures(degree, include_bias=False)
    theirs = Ridge(penalty).fit(shape.fit_transform(standardised(one, one.x)), one.c)
    fit = dffl.fit(dffl.Federation([one]), "ridge", degree=degree, penalty=penalty)
    wanted = theirs.predict(shape.transform(standardised(one, ELSEWHERE)))
    np.testing.assert_allclose(fit.predict("a", ELSEWHERE), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
def test_leave_one_out_errors_are_those_of_brute_force(one: dffl.Client, degree: int) -> None:
    design = expanded(standardised(one, one.x), degree)
    for found in ridges(design, one.c):
        for i in range(0, one.n, 7):
            others = np.arange(one.n) != i
            without = Ridge(found.penalty).fit(design[others], one.c[others])
            np.testing.assert_allclose(found.residuals[i], one.c[i] - without.predict(design[i : i + 1])[0], atol=1e-8)


@pytest.mark.parametrize("judge", ["regret", "mse"])
def test_the_penalty_is_the_best_of_the_grid(judge: str) -> None:
    fed = dffl.Federation([noise("noise", 15), noise("more", 25), client("a", dffl.TopK(5, 2), 40, maximize=True)])
    found = chosen(dffl.fit(fed, "ridge", judge=judge), "penalty")
    for member, penalty in zip(fed, found, strict=True):
        z, losses = standardised(member, member.x), []
        for candidate in PENALTIES:
            guesses = member.c - next(ridges(z, member.c, [candidate])).residuals
            losses.append(regrets_at(member, guesses).mean() if judge == "regret" else np.mean((guesses - member.c) ** 2))
        assert penalty == PENALTIES[np.argmin(losses)]
    assert judge == "regret" or len(set(found)) > 1


# ridge-pooled


def pooled_samples(fed: dffl.Federation, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """All samples below each other, each in its client's units."""
    x = np.concatenate([expanded(standardised(one, one.x), degree) for one in fed])
    return x, np.concatenate([one.c / np.abs(one.c).mean() for one in fed])


@pytest.mark.parametrize("degree", [1, 2])
def test_the_pooled_ridge_is_that_of_all_samples_in_their_clients_units(degree: int) -> None:
    fed = mixed()
    x, c = pooled_samples(fed, degree)
    fit = dffl.fit(fed, "ridge-pooled", degree=degree, dtype="float64")
    best = RidgeCV(PENALTIES, scoring="neg_mean_squared_error").fit(x, c).alpha_  # by leave-one-out
    assert set(chosen(fit, "penalty")) == {best}
    theirs = Ridge(best).fit(x, c)
    for one in fed:
        design = expanded(standardised(one, ELSEWHERE), degree)
        np.testing.assert_allclose(fit.predict(one.name, ELSEWHERE), theirs.predict(design) * np.abs(one.c).mean(), rtol=1e-7)
    unit = Normaliser.pool([Normaliser.fit(one.x, one.c) for one in fed], fed.counts)
    stranger = client("stranger", dffl.TopK(5, 1))
    wanted = theirs.predict(expanded(unit.features(stranger.x), degree)) * unit.c_scale
    np.testing.assert_allclose(fit.predict(stranger, stranger.x), wanted, rtol=1e-7)


def test_the_pooled_ridge_of_one_client_is_its_own() -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2), maximize=True)])
    own, pooled = (dffl.fit(fed, method, dtype="float64") for method in ("ridge", "ridge-pooled"))
    assert chosen(own, "penalty") == chosen(pooled, "penalty")
    np.testing.assert_allclose(pooled.predict("a", ELSEWHERE), own.predict("a", ELSEWHERE), rtol=1e-7)


def test_a_given_penalty_asks_for_the_sums_alone() -> None:
    asked: list[dict[str, Any]] = []

    class Watched(Run):
        def ask(self, *args: Any, **sent: Any) -> Any:
            asked.append(sent)
            return super().ask(*args, **sent)

    Watched(mixed(), Settings()).trained(SummedRidge(penalty=1.0))
    assert asked == [{}]


# trees


@pytest.mark.parametrize(("min_leaf", "dim"), [(1, 5), (3, 5), (2, 1)])
def test_the_copied_trees_predict_as_scikit_learn_does(min_leaf: int, dim: int) -> None:
    rng = np.random.default_rng(2)
    x, c = rng.normal(size=(60, 3)), rng.normal(size=(60, dim))
    unit = Normaliser.fit(x, c, features=False)
    z = x.astype(np.float32)
    theirs = RandomForestRegressor(20, min_samples_leaf=min_leaf, random_state=5, oob_score=True).fit(z, c.squeeze())
    grown = grow(z, c, 20, min_leaf, 5)
    mine = TreesPredictor(unit, costs=c, **grown.arrays)
    thresholds = np.concatenate([one.tree_.threshold[one.tree_.feature >= 0] for one in theirs.estimators_])
    edges = np.stack([thresholds, thresholds * (1 + 1e-9), thresholds * (1 - 1e-9)], axis=1)  # single precision decides
    for rows in (rng.normal(size=(1000, 3)), edges, x):
        wanted = theirs.predict(rows.astype(np.float32)).reshape(-1, dim)
        np.testing.assert_allclose(predicted(mine, rows), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(grown.out_of_bag, theirs.oob_prediction_.reshape(-1, dim), rtol=0, atol=1e-12)


def test_the_leaf_is_chosen_out_of_the_bag_and_the_seed_grows_the_forest() -> None:
    fed = mixed(n=30, families=["topk"])
    fit, again, other = (dffl.fit(fed, "trees", trees=10, seed=seed) for seed in (1, 1, 2))
    for one in fed:
        x = one.x + 0.1
        np.testing.assert_array_equal(fit.predict(one.name, x), again.predict(one.name, x))
        assert not np.array_equal(fit.predict(one.name, x), other.predict(one.name, x))
    fed = dffl.Federation([client("signal", dffl.TopK(5, 2), n=60), noise("noise", 60)])
    assert chosen(dffl.fit(fed, "trees", judge="mse"), "min_leaf") == [MIN_LEAF[0], MIN_LEAF[-1]]


def test_without_scikit_learn_one_line_says_what_to_install(one: dffl.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ValueError, match=r"method 'trees' needs the extra: pip install 'dffl\[trees\]'"):
        dffl.fit(dffl.Federation([one]), "trees")


# all of them


def test_a_client_that_maximises_is_judged_by_its_own_sense(one: dffl.Client) -> None:
    """Costs as they are against costs of the other sign: the first serve, whoever decides."""
    for maximize in (False, True):
        this = dffl.Client("a", one.x, one.c, one.set, maximize)
        assert best_of(this, [-one.c, one.c], "regret") == best_of(this, [-one.c, one.c], "mse") == 1
    unknown = np.full_like(one.c, np.nan)
    assert best_of(one, [unknown, unknown], "regret") == 0
    partly = np.where(np.arange(one.n)[:, None] < 3, np.nan, one.c)
    assert best_of(one, [-one.c, partly], "regret") == 1


@pytest.mark.parametrize("method", PLAIN)
def test_one_sample_and_constant_features_predict_the_mean(method: str) -> None:
    fed = dffl.Federation([client(f"n{n}", dffl.TopK(5, 2), n=n) for n in (1, 2, 3)])
    fit = dffl.fit(fed, method)
    assert all(np.isfinite(fit.decide(one.name, ELSEWHERE)).all() for one in fed)
    constant = dffl.Client("flat", np.full((9, 3), 0.3), fed[2].c[:1] * np.arange(1.0, 10.0)[:, None], dffl.TopK(5, 2))
    flat = dffl.fit(dffl.Federation([constant]), method).predict("flat", [[0.3, 0.3, 0.3]])
    np.testing.assert_allclose(flat, [constant.c.mean(axis=0)], rtol=0.2 if method == "trees" else 1e-6)
    if method != "ridge-pooled":
        np.testing.assert_allclose(fit.predict("n1", ELSEWHERE[:1]), fed[0].c)
        with pytest.raises(ValueError, match=f"client 'new' took no part, and method '{method}' has no shared model"):
            fit.predict(client("new", dffl.TopK(5, 2)), ELSEWHERE)


def test_more_neighbours_than_samples_are_all_samples() -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2), n=4)])
    fit = dffl.fit(fed, "nearest", neighbours=9)
    np.testing.assert_allclose(fit.predict("a", ELSEWHERE[:1]), [fed[0].c.mean(axis=0)])
    assert chosen(fit, "neighbours") == [4]


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("nearest", {"neighbours": 0}, "neighbours must be a whole number >= 1, found 0"),
        ("nearest", {"judge": "spo+"}, r"judge must be one of regret, mse, found 'spo\+'"),
        ("ridge", {"penalty": 0}, "penalty must be > 0 and finite, found 0"),
        ("ridge", {"degree": 3}, "degree must be a whole number from 1 to 2, found 3"),
        ("ridge-pooled", {"penalty": "large"}, "penalty must be > 0 and finite, found 'large'"),
        ("ridge-pooled", {"degree": 0}, "degree must be a whole number >= 1, found 0"),
        ("trees", {"trees": 0}, "trees must be a whole number >= 1, found 0"),
        ("trees", {"min_leaf": 1.5}, "min_leaf must be a whole number >= 1, found 1.5"),
    ],
)
def test_options_are_refused_in_one_line(one: dffl.Client, method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.fit(dffl.Federation([one]), method, **options)


def test_a_rehearsal_makes_no_models(one: dffl.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("dffl.training.methods.nearest._nearest", lambda client, *_: calls.append(client.name))
    run = Run(dffl.Federation([one]), Settings())
    assert run.rehearse([lambda run: METHODS["nearest"].fit(run)]).work == one.n
    assert not calls


def test_they_decide_better_than_the_mean_cost() -> None:
    fed, test = mixed(n=60, families=["topk"]).split(0.3)
    mean = {m: dffl.fit(fed, m).evaluate(test)["relative_regret"].mean() for m in ("mean-cost", *PLAIN)}
    assert all(mean[m] < 0.7 * mean["mean-cost"] for m in PLAIN), mean
