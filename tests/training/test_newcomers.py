"""A newcomer tunes the shared models of a fit on its own samples, and the samples say for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.feature_range import normalisers
from dffl.judging import predicted, regrets_at
from dffl.predictor import ConstantPredictor, MeanPredictor, NetworkPredictor, Normaliser
from dffl.training.parts import FoldSamples
from dffl.training.trainers import Stops
from dffl.training.trainers.crossfit import OutOfFold, cross_fitted
from dffl.training.units import UnitPrior
from tests.federations import D, P, client, feasible_sets

SETS = feasible_sets()
SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "dtype": "float64"}
FEW: dict[str, Any] = {"folds": 3, "epochs": (0, 2, 6)}


@pytest.fixture(scope="module")
def fit() -> dffl.Fit:
    members = [client("a", SETS["topk"], 30), client("b", SETS["topk"], 17, maximize=True)]
    return dffl.fit(dffl.Federation(members), "crossfit", **SMALL, **FEW)


def newcomer(n: int, **options: Any) -> dffl.Client:
    return client("new", SETS["topk"], n, **options)


@pytest.mark.parametrize(("n", "models"), [(2, 3), (3, 3), (7, 3), (60, 3)])
def test_it_joins_with_two_samples_or_sixty(fit: dffl.Fit, n: int, models: int) -> None:
    one = newcomer(n)
    joined = fit.joined_by(one, **FEW)
    member = joined.members["new"]
    assert (member.n, list(joined.members)) == (n, ["a", "b", "new"])
    assert isinstance(member.predictor, MeanPredictor)
    assert len(member.predictor.models) == models
    assert joined.out_of_fold("new")["predicted"].shape == one.c.shape
    assert member.choices["out_of_fold_regret"] == pytest.approx(joined.out_of_fold("new")["regret"].mean())
    assert joined.evaluate(dffl.Federation([newcomer(20, seed=1)])).took_part.all()


def test_one_sample_cannot_tune_and_keeps_the_shared_model(fit: dffl.Fit) -> None:
    one = newcomer(1)
    with pytest.warns(UserWarning, match="client 'new': one sample cannot be held out, so nothing is tuned"):
        joined = fit.joined_by(one)
    np.testing.assert_array_equal(joined.predict("new", one.x), fit.predict(one, one.x))
    assert joined.members["new"].choices["epochs"] == 0
    np.testing.assert_allclose(joined.out_of_fold("new")["regret"], fit.regrets(one))


def test_nobody_else_changes(fit: dffl.Fit) -> None:
    joined = fit.joined_by(newcomer(9), **FEW)
    assert joined.shared is fit.shared
    for name in fit.members:
        assert joined.members[name] is fit.members[name]
    assert "new" not in fit.members
    pd.testing.assert_frame_equal(joined.history[: len(fit.history)], fit.history)
    assert set(joined.history[len(fit.history) :].client) == {"new"}


def test_it_is_the_same_from_a_saved_fit_and_can_be_saved_again(fit: dffl.Fit, tmp_path: Path) -> None:
    one = newcomer(9)
    joined = fit.joined_by(one, **FEW)
    fit.save(tmp_path / "fit.dffl")
    late = dffl.load(tmp_path / "fit.dffl").joined_by(one, **FEW)
    late.save(tmp_path / "joined.dffl")
    again = dffl.load(tmp_path / "joined.dffl")
    for other in (late, again):
        np.testing.assert_array_equal(other.predict("new", one.x), joined.predict("new", one.x))
        assert other.members["new"].choices == joined.members["new"].choices
        np.testing.assert_array_equal(other.out_of_fold("new")["regret"], joined.out_of_fold("new")["regret"])


@pytest.mark.parametrize("engine", ["loop"])
@pytest.mark.parametrize("pooled", [False, True])
def test_engines_agree_bit_for_bit(fit: dffl.Fit, engine: str, pooled: bool) -> None:
    one = newcomer(8)
    both = [
        replace(fit, settings=replace(fit.settings, engine=name, pooled_units=pooled)).joined_by(one, **FEW)
        for name in ("vector", engine)
    ]
    np.testing.assert_array_equal(both[0].predict("new", one.x), both[1].predict("new", one.x))
    assert both[0].members["new"].choices == both[1].members["new"].choices


def test_the_choice_has_the_least_regret_over_all_samples(fit: dffl.Fit) -> None:
    """With one candidate beside the shared model at a time, the estimates show which is best; that one is chosen."""
    one, stops = newcomer(11), (2, 6, 30)
    estimates = {stop: _estimate(fit.joined_by(one, folds=3, epochs=(0, stop))) for stop in stops}
    assert len(set(estimates.values())) > 1
    chosen = fit.joined_by(one, folds=3, epochs=(0, *stops))
    assert _estimate(chosen) == pytest.approx(min(estimates.values()), rel=1e-9)
    assert estimates[int(chosen.members["new"].choices["epochs"])] == pytest.approx(min(estimates.values()), rel=1e-9)


def _estimate(joined: dffl.Fit) -> float:
    return joined.members["new"].choices["out_of_fold_regret"]


@pytest.mark.parametrize(("n", "folds"), [(11, 3), (2, 3), (11, 4)])
def test_each_sample_is_judged_by_the_models_that_hold_it_out(fit: dffl.Fit, n: int, folds: int) -> None:
    """Also where there are fewer folds than shared networks, or more: some folds then have several models."""
    one, count = newcomer(n), min(n, folds)
    joined = fit.joined_by(one, folds=folds, epochs=(0, 4))
    model: Any = joined.members["new"].predictor
    assert len(model.models) == (3 if count <= 3 else 6)
    lost = 0.0
    for fold in range(count):
        [held] = dffl.Federation([one]).fold(fold, count, fit.settings.seed)[1]
        guessed = np.mean([predicted(part, held.x) for part in model.models[fold::count]], axis=0)
        lost += float(regrets_at(held, guessed).sum())
    assert _estimate(joined) == pytest.approx(lost / n, rel=1e-6, abs=1e-12)


def test_every_sample_counts_once_in_the_choice() -> None:
    """Two models hold out the first fold and prefer the second stop; the second fold, with one model, speaks against it."""
    losses = {0: [1.0, 0.0], 1: [0.0, 1.5]}

    class Rehearsed:
        def trained(self, trainer: Any, part: FoldSamples) -> np.ndarray:
            return np.array([losses[part.number]]) if isinstance(trainer, OutOfFold) else np.zeros((1, 2, 1))

    run: Any = Rehearsed()
    assert cross_fitted(run, Stops(None, (0, 3)), [FoldSamples(fold, 2) for fold in (0, 1, 0)]).epochs.tolist() == [0]


@pytest.mark.parametrize(("n", "folds"), [(11, 3), (2, 3), (11, 4), (11, 7)])
def test_without_tuning_it_is_the_shared_model(fit: dffl.Fit, n: int, folds: int) -> None:
    """With one unit for all: each network must be used equally often."""
    unit = normalisers(fit.shared)[0]  # type: ignore[arg-type]
    alike = replace(
        fit,
        shared=_in_unit(fit.shared, unit),
        members={name: replace(one, predictor=_in_unit(one.predictor, unit)) for name, one in fit.members.items()},
    )
    one = newcomer(n)
    joined = alike.joined_by(one, folds=folds, epochs=0)
    np.testing.assert_allclose(joined.predict("new", one.x), alike.predict(one, one.x), rtol=1e-12)


def _in_unit(predictor: Any, unit: Normaliser) -> Any:
    """The same networks in other units."""
    is_unit: Callable[[Any], bool] = lambda node: isinstance(node, Normaliser)  # noqa: E731
    return jax.tree.map(lambda node: unit if is_unit(node) else node, predictor, is_leaf=is_unit)


def test_a_judge_that_finds_tuning_worse_refuses_it(fit: dffl.Fit) -> None:
    """Costs that have nothing to do with the features: what is learnt from some samples misleads on the others."""
    rng = np.random.default_rng(0)
    noise = dffl.Client("new", rng.normal(size=(12, P)), rng.normal(size=(12, D)), SETS["topk"])
    joined = fit.joined_by(noise, folds=3, epochs=(0, 300), judge="mse")
    assert joined.members["new"].choices["epochs"] == 0


def test_tuning_helps_where_there_are_samples(fit: dffl.Fit) -> None:
    test = dffl.Federation([newcomer(200, seed=0)])
    joined = fit.joined_by(newcomer(60), folds=3)
    assert joined.evaluate(test).regret[0] < 0.5 * fit.evaluate(test).regret[0]


@pytest.mark.parametrize("method", ["fedavg", "finetune"])
def test_one_shared_network_is_tuned_in_every_fold(method: str) -> None:
    members = [client("a", SETS["entropy"], 12), client("b", SETS["entropy"], 17)]
    fit = dffl.fit(dffl.Federation(members), method, rounds=2)
    joined = fit.joined_by(client("new", SETS["entropy"], 9), **FEW)
    model: Any = joined.members["new"].predictor
    assert isinstance(fit.shared, NetworkPredictor)
    assert len(model.models) == 3


def test_the_seed_and_blocks_of_time(fit: dffl.Fit) -> None:
    one = newcomer(12)
    first, again, other = (fit.joined_by(one, **FEW, seed=seed).predict("new", one.x) for seed in (None, 0, 5))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    blocks = replace(fit, settings=replace(fit.settings, validation_blocks=True)).joined_by(one, **FEW)
    model: Any = blocks.members["new"].predictor
    held = predicted(model.models[1], one.x[4:8])
    np.testing.assert_allclose(blocks.out_of_fold("new")["predicted"][4:8], held, rtol=1e-6)


# Units.

RNG = np.random.default_rng(1)
X, C = RNG.normal(5, 2, (7, 2)), RNG.normal(size=(7, 4))


def _units(means: list[float], scales: list[float], sizes: list[float]) -> list[Normaliser]:
    """Members whose first feature has these means and scales, and whose second has always 0 and 3."""
    rows = zip(means, scales, sizes, strict=True)
    return [Normaliser(np.array([mean, 0.0]), np.array([scale, 3.0]), np.asarray(size)) for mean, scale, size in rows]


def test_members_that_do_not_differ_give_a_newcomer_their_units() -> None:
    prior = UnitPrior.of(_units([1, 1, 1], [2, 2, 2], [10, 10, 10]), [50, 50, 50])
    assert (prior.x_worth, prior.c_worth) == ((np.inf, np.inf), np.inf)
    found = prior.met_by(X, C, dffl.Settings())
    np.testing.assert_allclose([*found.x_mean, *found.x_scale, found.c_scale], [1, 0, 2, 3, 10], rtol=1e-12)


def test_the_more_members_differ_the_fewer_own_samples_outweigh_them() -> None:
    prior = UnitPrior.of(_units([-2, 0, 2], [2, 2, 2], [10, 20, 40]), [50, 50, 50])
    # Means at -1, 0 and 1 scales have a variance of 1; 50 samples explain (1 + 1/2) / 50 of it.
    assert prior.x_worth == (pytest.approx(1.5 / (1 - 1.5 / 50)), np.inf)
    assert prior.c_worth == pytest.approx(0.5 / (np.log(2) ** 2 - 0.5 / 50))
    assert prior.c_scale == pytest.approx(20)
    share, found = 7 / (7 + prior.x_worth[0]), prior.met_by(X, C, dffl.Settings())
    assert found.x_mean[0] == pytest.approx(share * X[:, 0].mean())
    assert found.x_scale[0] ** 2 == pytest.approx(share * X[:, 0].var() + (1 - share) * 4)
    of_costs = 7 / (7 + prior.c_worth)
    assert found.c_scale == pytest.approx(of_costs * np.abs(C).mean() + (1 - of_costs) * 20)


def test_the_rule_is_near_the_best_fixed_weight_for_clients_that_are_drawn() -> None:
    """Means of clients drawn with a known variance: the error of the mixed mean is about the least that any weight has."""
    rng, members, n, between = np.random.default_rng(2), 40, 6, 0.5
    centres = rng.normal(0, between, members)
    rows = [rng.normal(centre, 1, (50, 1)) for centre in centres]
    prior = UnitPrior.of([dffl.Settings().units(x, np.ones((50, 4))) for x in rows], [50] * members)
    weights = np.array([prior.x_worth[0], 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1e9])
    truth = rng.normal(0, between, 20000)
    seen = truth + rng.normal(0, 1 / np.sqrt(n), truth.size)
    share = n / (n + weights)[:, None]
    errors = np.mean((share * seen + (1 - share) * prior.x_mean[0] - truth) ** 2, axis=1)
    assert errors[0] < 1.1 * errors.min()


def test_one_sample_or_a_constant_feature_keeps_the_members_spread() -> None:
    prior = UnitPrior.of(_units([-2, 0, 2], [2, 2, 2], [10, 20, 40]), [50, 50, 50])
    for x in (X[:1], np.tile(X[:1], (3, 1))):
        np.testing.assert_allclose(prior.met_by(x, C[: len(x)], dffl.Settings()).x_scale, [2, 3])


def test_units_that_are_not_used_stay_unused_and_forecasts_keep_to_those_of_the_costs() -> None:
    raw = dffl.Settings(scale_features=False, scale_costs=False)
    plain = UnitPrior.of([raw.units(X, C), raw.units(2 * X, C)], [7, 7]).met_by(X, C, raw)
    np.testing.assert_array_equal([*plain.x_mean, *plain.x_scale, plain.c_scale], [0, 0, 1, 1, 1])
    settings, x = dffl.Settings(forecast=True), np.hstack([X, C])
    members = [settings.units(x, C), settings.units(x + 9, 3 * C)]
    found = UnitPrior.of(members, [50, 50]).met_by(x, C, settings)
    np.testing.assert_array_equal(found.x_mean[2:], 0)
    np.testing.assert_array_equal(found.x_scale[2:], found.c_scale)


def test_a_fit_of_one_member_gives_its_units() -> None:
    prior = UnitPrior.of(_units([1], [2], [10]), [50])
    assert prior.x_worth == (np.inf, np.inf)


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds must be a whole number from 2 to 100, found 1|folds must be a whole number >= 2, found 1"),
        ({"folds": 101}, "folds must be a whole number from 2 to 100, found 101"),
        ({"epochs": (3, 10)}, r"epochs must begin with 0, the shared model as it is, found \(3, 10\)"),
        ({"epochs": ()}, "epochs must be increasing whole numbers"),
        ({"judge": "nothing"}, "unknown loss 'nothing'"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_options_are_refused(fit: dffl.Fit, options: dict[str, Any], message: str) -> None:
    for n in (1, 12):
        with pytest.raises(ValueError, match=message):
            fit.joined_by(newcomer(n), **options)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no client": (lambda: "new", "client must be a dffl.Client, found str"),
    "a member": (lambda: client("a", SETS["topk"]), "client 'a' is already in this fit; a newcomer needs a name of its own"),
    "features": (
        lambda: dffl.Client("new", np.ones((4, 2)), np.ones((4, D)), SETS["topk"]),
        "client 'new': features must be 3, as in training, found 2",
    ),
    "decisions": (
        lambda: dffl.Client("new", np.ones((4, P)), np.ones((4, 4)), dffl.TopK(4, 2)),
        "client 'new': dim must be 5, as in training, found 4",
    ),
    "far away": (
        lambda: dffl.Client("new", np.full((4, P), 1e30), np.ones((4, D)), SETS["topk"]),
        "client 'new': x must be in .*check its units",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_newcomers_are_refused(fit: dffl.Fit, case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        fit.joined_by(make())


def test_other_columns_are_refused(fit: dffl.Fit) -> None:
    named = replace(fit, feature_names=("u", "v", "w"))
    plain = newcomer(4)
    other = dffl.Client("new", pd.DataFrame(plain.x, columns=["u", "w", "v"]), plain.c, plain.set)
    with pytest.raises(ValueError, match="client 'new': x must have the columns of training"):
        named.joined_by(other)


def test_a_fit_without_a_shared_network_is_refused(fit: dffl.Fit) -> None:
    with pytest.raises(ValueError, match="client 'new' took no part, and method 'crossfit' has no shared model for it"):
        replace(fit, shared=None).joined_by(newcomer(4))
    with pytest.raises(ValueError, match=r"must be a network, or a mean of networks, to be tuned, found ConstantPredictor"):
        replace(fit, shared=ConstantPredictor(np.ones(D))).joined_by(newcomer(4))
    with pytest.raises(ValueError, match="the shared network has 581 numbers, and that of the fit's settings 77"):
        replace(fit, settings=replace(fit.settings, hidden=8)).joined_by(newcomer(4))
