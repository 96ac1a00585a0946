"""Cross-fitting: every sample is held out once, each client chooses by all its samples, and the mean of the folds decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dffl
from dffl.judging import predicted, regrets_at
from dffl.predictor import MeanPredictor
from dffl.training.parts import FoldSamples
from tests.federations import client, feasible_sets, mixed

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "epochs": (0, 2, 4), "folds": 3}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    sets = feasible_sets()
    return dffl.Federation(
        [client("a", sets["topk"], 30), client("b", sets["topk"], 17, maximize=True), client("c", sets["topk"], 9)]
    )


@pytest.fixture(scope="module", params=["crossfit", "local-tuned"])
def fit(request: pytest.FixtureRequest, federation: dffl.Federation) -> dffl.Fit:
    return dffl.fit(federation, request.param, dtype="float64", **SMALL)


@pytest.mark.parametrize("blocks", [False, True])
def test_every_sample_is_held_out_once_and_trains_in_all_other_folds(federation: dffl.Federation, blocks: bool) -> None:
    parts = [federation.fold(number, 4, seed=1, blocks=blocks) for number in range(4)]
    for name in federation.names:
        held = np.concatenate([judge[name].c for _, judge in parts])
        assert sorted(map(tuple, held)) == sorted(map(tuple, federation[name].c))
        sizes = [judge[name].n for _, judge in parts]
        assert max(sizes) - min(sizes) <= 1
        for train, judge in parts:
            assert train[name].n + judge[name].n == federation[name].n
    if blocks:
        np.testing.assert_array_equal(parts[1][1]["a"].c, federation["a"].c[8:16])


def test_folds_have_starts_of_their_own() -> None:
    settings = dffl.Settings(seed=5)
    seeds = {FoldSamples(number, 5).seeded(settings).seed for number in range(5)}
    assert len(seeds | {5}) == 6
    assert FoldSamples(2, 5).seeded(settings) == FoldSamples(2, 5).seeded(dffl.Settings(seed=5))


def test_the_mean_of_the_folds_decides(fit: dffl.Fit, federation: dffl.Federation) -> None:
    for one in federation:
        model = fit.members[one.name].predictor
        assert isinstance(model, MeanPredictor)
        assert len(model.models) == 3
        mean = np.mean([predicted(part, one.x) for part in model.models], axis=0)
        np.testing.assert_allclose(fit.predict(one.name, one.x), mean, rtol=1e-12)


def test_the_estimate_is_the_regret_of_models_that_have_not_seen_the_sample(fit: dffl.Fit, federation: dffl.Federation) -> None:
    lost = dict.fromkeys(federation.names, 0.0)
    for number in range(3):
        held = federation.fold(number, 3, fit.settings.seed)[1]
        for one in held:
            model: Any = fit.members[one.name].predictor
            lost[one.name] += float(regrets_at(one, predicted(model.models[number], one.x)).sum())
    for one in federation:
        estimate = fit.members[one.name].choices["out_of_fold_regret"]
        assert estimate == pytest.approx(lost[one.name] / one.n, rel=1e-6, abs=1e-12)
    assert "out_of_fold_regret" in fit.evaluate(federation)


def test_the_choice_has_the_least_loss_over_all_samples(federation: dffl.Federation) -> None:
    """With one candidate after the other, the estimates show which is best; with regret as the judge that one is chosen."""
    stops = (0, 2, 6)
    alone = {stop: dffl.fit(federation, "crossfit", **{**SMALL, "epochs": stop}, judge="regret") for stop in stops}
    chosen = dffl.fit(federation, "crossfit", **{**SMALL, "epochs": stops}, judge="regret")
    for name in federation.names:
        estimates = {stop: one.members[name].choices["out_of_fold_regret"] for stop, one in alone.items()}
        own = chosen.members[name].choices
        assert own["out_of_fold_regret"] == pytest.approx(min(estimates.values()), rel=1e-5)
        assert estimates[int(own["epochs"])] == pytest.approx(min(estimates.values()), rel=1e-5)


@pytest.mark.parametrize("method", ["crossfit", "local-tuned"])
@pytest.mark.parametrize("engine", ["loop"])
def test_engines_agree_bit_for_bit(federation: dffl.Federation, method: str, engine: str) -> None:
    one, other = (dffl.fit(federation, method, engine=name, **SMALL) for name in ("vector", engine))
    for name in federation.names:
        np.testing.assert_array_equal(one.predict(name, federation[name].x), other.predict(name, federation[name].x))
        assert one.members[name].choices == other.members[name].choices


def test_it_is_saved_as_one_predictor_and_serves_newcomers(fit: dffl.Fit, federation: dffl.Federation, tmp_path: Path) -> None:
    fit.save(tmp_path / "model.dffl")
    again = dffl.load(tmp_path / "model.dffl")
    for one in federation:
        np.testing.assert_array_equal(again.predict(one.name, one.x), fit.predict(one.name, one.x))
    newcomer = client("new", feasible_sets()["topk"], 5)
    if fit.method == "crossfit":
        np.testing.assert_array_equal(again.decide(newcomer, newcomer.x), fit.decide(newcomer, newcomer.x))
    else:
        with pytest.raises(ValueError, match="client 'new' took no part, and method 'local-tuned' has no shared model"):
            fit.decide(newcomer, newcomer.x)


@pytest.mark.slow
def test_kinds_of_oracles_and_blocks_of_time() -> None:
    fit = dffl.fit(mixed(), "crossfit", validation_blocks=True, **SMALL)
    assert len(fit.evaluate(mixed(n=20))) == 6


def test_an_interrupted_one_continues_to_the_same_numbers(
    federation: dffl.Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.training.test_seam import _interrupt_after

    whole = dffl.fit(federation, "crossfit", **SMALL)
    with monkeypatch.context() as patch:
        _interrupt_after(patch, 9)
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(federation, "crossfit", checkpoint=tmp_path / "run.checkpoint", **SMALL)
    assert (tmp_path / "run.checkpoint").exists()
    again = dffl.fit(federation, "crossfit", checkpoint=tmp_path / "run.checkpoint", **SMALL)
    for one in federation:
        np.testing.assert_array_equal(again.predict(one.name, one.x), whole.predict(one.name, one.x))


def test_fewer_samples_than_folds_are_fewer_folds() -> None:
    sets = feasible_sets()
    few = dffl.Federation([client("a", sets["topk"], 12), client("b", sets["topk"], 2)])
    with pytest.warns(UserWarning, match="2 folds instead of 3: client 'b' has 2 samples"):
        fit = dffl.fit(few, "crossfit", **SMALL)
    model: Any = fit.members["a"].predictor
    assert len(model.models) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds must be a whole number >= 2, found 1"),
        ({"folds": 2.5}, "folds must be a whole number >= 2, found 2.5"),
        ({"folds": 101}, "folds must be a whole number from 2 to 100, found 101"),
        ({"epochs": ()}, "epochs must be increasing whole numbers"),
        ({"judge": "nothing"}, "unknown loss 'nothing'"),
    ],
)
def test_bad_options_are_refused(federation: dffl.Federation, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dffl.fit(federation, "crossfit", **{**SMALL, **options})


def test_a_client_with_one_sample_is_refused_by_name() -> None:
    sets = feasible_sets()
    few = dffl.Federation([client("a", sets["topk"], 12), client("single", sets["topk"], 1)])
    with pytest.raises(ValueError, match="client 'single': x must have at least 2 samples to be held out in folds, found 1"):
        dffl.fit(few, "crossfit", **SMALL)


# The interpolation whose weight is chosen in folds.

REFIT: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "folds": 3, "dtype": "float64"}


@pytest.mark.slow
def test_the_refitted_weight_has_the_least_loss_over_all_samples(federation: dffl.Federation) -> None:
    """Written out: in each fold the own and the shared model of the other folds, judged on the samples held out."""
    fit = dffl.fit(federation, "interp-refit", lambda_step=0.25, **REFIT)
    settings = dffl.Settings(rounds=2, local_epochs=2, dtype="float64")
    total = {name: np.zeros(5) for name in federation.names}
    for number in range(3):
        part = FoldSamples(number, 3)
        train, held = part.divide(federation, settings, None)
        fits = dffl.fit_all(
            train, ["local", "fedavg"], rounds=2, local_epochs=2, dtype="float64", seed=part.seeded(settings).seed
        )
        for one in held:
            unit: Any = fits["local"].members[one.name].predictor
            own, shared = (fits[name].predict(one.name, one.x) for name in ("local", "fedavg"))
            for place, weight in enumerate(np.linspace(0, 1, 5)):
                with jax.enable_x64(True):
                    lost = dffl.spo_plus((1 - weight) * own + weight * shared, one.c, one.set, one.maximize)
                total[one.name][place] += float(np.asarray(lost).sum()) / float(unit.normaliser.c_scale)
    for name in federation.names:
        assert fit.members[name].choices["lambda"] == np.linspace(0, 1, 5)[np.argmin(total[name])]


def test_the_refitted_models_are_those_of_all_samples(federation: dffl.Federation) -> None:
    fits = dffl.fit_all(
        federation, ["local", "fedavg", ("interp-refit", {"folds": 3})], rounds=2, local_epochs=2, dtype="float64"
    )
    for one in federation:
        weight = fits["interp-refit"].members[one.name].choices["lambda"]
        mean = (1 - weight) * fits["local"].predict(one.name, one.x) + weight * fits["fedavg"].predict(one.name, one.x)
        np.testing.assert_allclose(fits["interp-refit"].predict(one.name, one.x), mean, rtol=1e-12)


@pytest.mark.slow
def test_the_refitted_interpolation_is_the_same_in_a_loop(federation: dffl.Federation) -> None:
    one, other = (dffl.fit(federation, "interp-refit", engine=name, **REFIT) for name in ("vector", "loop"))
    for name in federation.names:
        np.testing.assert_array_equal(one.predict(name, federation[name].x), other.predict(name, federation[name].x))


@pytest.mark.parametrize("option", [{"folds": 1}, {"lambda_step": 0}, {"judge": "nothing"}])
def test_bad_options_of_the_refitted_interpolation_are_refused(federation: dffl.Federation, option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(option))}|unknown loss"):
        dffl.fit(federation, "interp-refit", **{**REFIT, **option})
