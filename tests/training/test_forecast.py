"""A client that already has a forecast: the network starts from it and learns what to add."""

from __future__ import annotations

import numpy as np
import pytest

import dffl
from dffl.predictor import Network, Normaliser
from dffl.training import Run, Settings
from tests.federations import D, P, client, feasible_sets


def with_forecast(one: dffl.Client, error: float = 0.3) -> dffl.Client:
    """The client with a forecast of its costs."""
    noise = np.random.default_rng(1).normal(0, error, one.c.shape)
    return dffl.Client(one.name, one.x, one.c, one.set, one.maximize, forecast=one.c + noise)


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    sets = feasible_sets()
    return dffl.Federation(
        [with_forecast(client("buys", sets["topk"], 60)), with_forecast(client("packs", sets["knapsack"], 40, maximize=True))]
    )


def test_before_any_training_the_forecast_is_the_prediction(federation: dffl.Federation) -> None:
    run = Run(federation, Settings())
    predictors = run.personal(np.stack([run.engine().initial] * 2))
    for one, predictor in zip(federation, predictors, strict=True):
        np.testing.assert_allclose(predictor(one.x), one.x[:, P:], rtol=1e-5)


def test_forecasts_keep_to_the_units_of_the_costs_and_other_features_are_standardised() -> None:
    rng = np.random.default_rng(0)
    x, c = rng.normal(5, 3, (50, 4)), rng.normal(20, 4, (50, 2))
    unit = Normaliser.fit(x, c, forecasts=2)
    np.testing.assert_allclose(unit.features(x)[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(unit.features(x)[:, 2:], x[:, 2:] / np.abs(c).mean())
    other = Normaliser.fit(3 * x, 5 * c, forecasts=2)
    pooled = Normaliser.pool([unit, other], [50, 50], forecasts=2)
    np.testing.assert_allclose(pooled.x_scale[2:], pooled.c_scale)
    assert pooled.c_scale == pytest.approx(3 * unit.c_scale)


def test_training_gets_better_than_a_biased_forecast(federation: dffl.Federation) -> None:
    bias = np.linspace(-2, 2, D)
    fed = dffl.Federation(
        [dffl.Client(one.name, one.x[:, :P], one.c, one.set, one.maximize, forecast=one.forecast + bias) for one in federation]
    )
    fit = dffl.fit(fed, "finetune", rounds=10, epochs=(3, 10))
    for one in fed:
        naive = dffl.regret(one.x[:, P:], one.c, one.set, one.maximize).mean()
        assert fit.regrets(one).mean() < 0.6 * naive


def test_it_is_saved_with_the_fit_and_serves_a_newcomer(federation: dffl.Federation, tmp_path) -> None:
    fit = dffl.fit(federation, "fedavg", rounds=2)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl")
    newcomer = with_forecast(client("new", dffl.TopK(D, 2), 10))
    np.testing.assert_array_equal(again.predict(newcomer, newcomer.x), fit.predict(newcomer, newcomer.x))


def test_a_mix_takes_the_forecast_in_as_a_third(federation: dffl.Federation, tmp_path) -> None:
    options = {"fedavg": {}, "finetune": {"epochs": (3,)}, "finetune-mix": {"epochs": (3,)}}
    fits = {name: dffl.fit(federation, name, rounds=3, **own) for name, own in options.items()}
    for one in federation:
        parts = [fits[name].predict(one.name, one.x) for name in ("fedavg", "finetune")]
        expected = (*parts, one.x[:, P:])
        np.testing.assert_allclose(fits["finetune-mix"].predict(one.name, one.x), sum(expected) / 3, rtol=1e-5)
    fits["finetune-mix"].save(tmp_path / "mix.dffl")
    again = dffl.load(tmp_path / "mix.dffl")
    np.testing.assert_array_equal(again.predict("buys", federation[0].x), fits["finetune-mix"].predict("buys", federation[0].x))


def test_the_forecast_itself_is_a_method(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "forecast")
    for one in federation:
        np.testing.assert_array_equal(fit.predict(one.name, one.x), one.x[:, P:])
    without = dffl.Federation([client("buys", feasible_sets()["topk"], 60)])
    with pytest.raises(ValueError, match="method 'forecast' needs clients that bring a forecast"):
        dffl.fit(without, "forecast")


def test_the_engines_agree(federation: dffl.Federation) -> None:
    fits = [dffl.fit(federation, "finetune-mix", rounds=3, engine=e, dtype="float64", epochs=(2,)) for e in ("vector", "loop")]
    for one in federation:
        np.testing.assert_allclose(*(fit.predict(one.name, one.x) for fit in fits), rtol=1e-9)


def test_a_network_of_ones_own_sees_the_other_features_alone(federation: dffl.Federation) -> None:
    seen = []

    def network(key, inputs, outputs):
        seen.append((inputs, outputs))
        return Network(key, inputs, outputs, (4,))

    dffl.fit(federation, "fedavg", rounds=1, network=network)
    assert set(seen) == {(P, D)}


def test_without_other_features_the_network_sees_the_forecast() -> None:
    one = client("a", dffl.TopK(D, 2), 30)
    alone = dffl.Client("a", one.c + 1, one.c, one.set, forecast=one.c + 1)
    np.testing.assert_array_equal(alone.x, one.c + 1)
    seen = []

    def network(key, inputs, outputs):
        seen.append((inputs, outputs))
        return Network(key, inputs, outputs, (4,))

    fit = dffl.fit(dffl.Federation([alone]), "local", rounds=1, local_epochs=2, network=network)
    assert set(seen) == {(D, D)}
    lower, higher = fit.predict("a", alone.x), fit.predict("a", alone.x + 1)
    assert np.ptp(higher - lower) > 1e-3, "a constant and a gain alone would move all costs alike"
