"""`crossfit-turned`, pooled units, settings of a method's own, out-of-fold predictions and what a fit took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.judging import predicted, regrets_at
from dffl.predictor import Correction, MeanPredictor, Network, NetworkPredictor, Normaliser, Template
from dffl.training.aggregators.server import Momentum
from dffl.training.methods import METHODS
from dffl.training.trainers.turned import TurnedNetwork
from tests.federations import client, feasible_sets

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "epochs": (0, 3), "folds": 2, "hidden": 6}


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    sets = feasible_sets()
    sizes = {"a": 14, "b": 12, "c": 9}
    return dffl.Federation([client(name, sets["topk"], n, maximize=name == "b") for name, n in sizes.items()])


# The network behind a matrix.


@pytest.mark.parametrize("kind", ["plain", "correction"])
def test_the_folded_network_gives_what_the_turned_one_gives(kind: str) -> None:
    with jax.enable_x64(True):
        inner: Any = Network(jax.random.key(0), 3, 4, (5,))
        network: Any = inner if kind == "plain" else Correction(inner, 4)
        turned = TurnedNetwork.around(network)
        x = jnp.arange(3.0 if kind == "plain" else 7.0)
        np.testing.assert_array_equal(turned(x), network(x))  # the identity changes nothing
        matrix = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
        turned = eqx.tree_at(lambda one: one.turn, turned, matrix)
        mixed = jnp.concatenate([x[:3] @ matrix, x[3:]])
        np.testing.assert_allclose(turned(x), network(mixed), rtol=1e-12)
        np.testing.assert_allclose(turned.folded()(x), turned(x), rtol=1e-12)


def test_the_matrix_comes_first_in_the_vector() -> None:
    turned = TurnedNetwork.around(Network(jax.random.key(0), 3, 4, (5,)))
    template = Template(turned)
    np.testing.assert_array_equal(np.asarray(template.vector(turned))[:9].reshape(3, 3), np.eye(3))


class Odd(eqx.Module):
    """A network without weights that could be turned."""

    matrix: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.matrix


def test_a_network_that_cannot_be_turned_is_refused(federation: dffl.Federation) -> None:
    with pytest.raises(ValueError, match="network: Odd needs a list of weights whose first turns features"):
        dffl.fit(federation, "crossfit-turned", network=lambda key, p, d: Odd(jnp.ones((p, d))), **SMALL | {"hidden": 64})


def test_matrices_stay_with_their_clients_and_change_what_they_predict(federation: dffl.Federation) -> None:
    """Written out for one fold: with a shared network that never moves, only matrices and tuning make clients differ."""
    same = {"aggregate": "mean", "learning_rate": 1e-3, "schedule": "constant"}
    fit = dffl.fit(federation, "crossfit-turned", **SMALL, **same)
    plain = dffl.fit(federation, "crossfit", **SMALL)
    for one in federation:
        assert fit.members[one.name].choices["epochs"] in (0, 3)
        assert not np.allclose(fit.predict(one.name, one.x), plain.predict(one.name, one.x))
    # Even a client that tunes for no epoch has turned its features in its own way.
    models = [fit.members[name].predictor for name in federation.names]
    assert all(isinstance(model, MeanPredictor) and len(model.models) == 2 for model in models)
    shared: Any = fit.shared
    weights = [np.asarray(one.network.weights[0]) for one in shared.models]
    first: Any = models[0]
    assert not np.allclose(np.asarray(first.models[0].network.weights[0]), weights[0])


@pytest.mark.parametrize("engine", ["loop"])
@pytest.mark.parametrize(("method", "options"), [("crossfit-turned", {}), ("crossfit", {"pooled_units": True})])
def test_engines_agree_bit_for_bit(federation: dffl.Federation, engine: str, method: str, options: dict[str, Any]) -> None:
    one, other = (dffl.fit(federation, method, engine=name, **SMALL, **options) for name in ("vector", engine))
    for name in federation.names:
        np.testing.assert_array_equal(one.predict(name, federation[name].x), other.predict(name, federation[name].x))
        assert one.members[name].choices == other.members[name].choices


def test_it_is_saved_and_continues_where_it_was(federation: dffl.Federation, tmp_path: Path) -> None:
    fit = dffl.fit(federation, "crossfit-turned", **SMALL)
    again = dffl.fit(federation, "crossfit-turned", checkpoint=tmp_path / "half", **SMALL)
    again.save(tmp_path / "model.dffl")
    loaded = dffl.load(tmp_path / "model.dffl")
    for one in federation:
        np.testing.assert_array_equal(loaded.predict(one.name, one.x), fit.predict(one.name, one.x))
        for name, values in fit.out_of_fold(one.name).items():
            np.testing.assert_array_equal(loaded.out_of_fold(one.name)[name], values)


# Pooled units.


def test_pooled_units_are_those_of_all_samples(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "local", pooled_units=True, rounds=1, dtype="float64")
    x = np.concatenate([one.x for one in federation])
    shares = np.array(federation.counts) / sum(federation.counts)
    size = float(shares @ [np.abs(one.c).mean() for one in federation])
    for member in fit.members.values():
        model: Any = member.predictor
        assert isinstance(model, NetworkPredictor)
        np.testing.assert_allclose(model.normaliser.x_mean, x.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(model.normaliser.x_scale, x.std(axis=0), rtol=1e-12)
        assert float(model.normaliser.c_scale) == pytest.approx(size, rel=1e-12)


def test_pooled_units_do_not_depend_on_the_order_of_clients(federation: dffl.Federation) -> None:
    turned_round = dffl.Federation(list(federation)[::-1])
    one, other = (dffl.fit(fed, "fedavg", pooled_units=True, rounds=1) for fed in (federation, turned_round))
    for each in federation:
        np.testing.assert_array_equal(one.predict(each.name, each.x), other.predict(each.name, each.x))


# Settings of a method's own.


def test_a_method_has_settings_of_its_own_and_a_user_may_change_them(federation: dffl.Federation) -> None:
    assert METHODS["crossfit-turned"].settings["schedule"] == "cosine"
    own = dffl.fit(federation, "crossfit-turned", **SMALL)
    assert own.settings.aggregate == Momentum(rate=0.7, momentum=0.5)
    given = dffl.fit(federation, "crossfit-turned", aggregate="mean", learning_rate=1e-3, schedule="constant", **SMALL)
    assert given.settings == dffl.Settings(rounds=2, local_epochs=2, hidden=6, tau=20.0, split="draw")


def test_crossfit_is_the_default_with_the_usual_settings(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, **SMALL)
    usual = dffl.Settings(rounds=2, local_epochs=2, hidden=6, tau=20.0, split="draw")
    assert (fit.method, fit.settings) == ("crossfit", usual)


def test_methods_with_other_settings_train_in_runs_of_their_own(federation: dffl.Federation) -> None:
    small = {"rounds": 2, "local_epochs": 2, "hidden": 6}
    options = {"epochs": (0, 3), "folds": 2}
    together = dffl.fit_all(federation, ["fedavg", ("crossfit-turned", options)], **small)
    assert list(together) == ["fedavg", "crossfit-turned", "local"]
    for method, own in (("fedavg", {}), ("crossfit-turned", options)):
        alone = dffl.fit(federation, method, **own, **small)
        assert together[method].settings == alone.settings
        for one in federation:
            np.testing.assert_array_equal(together[method].predict(one.name, one.x), alone.predict(one.name, one.x))


def test_settings_that_do_not_exist_are_refused_when_a_method_is_registered() -> None:
    with pytest.raises(ValueError, match="unknown setting 'learning_rat'"):
        dffl.method("wrong", settings={"learning_rat": 1.0})
    assert "wrong" not in METHODS


# Out-of-fold predictions, and what a fit took.


def test_out_of_fold_predictions_are_by_models_that_have_not_seen_the_sample(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "crossfit", dtype="float64", **SMALL)
    for one in federation:
        found, model = fit.out_of_fold(one.name), fit.members[one.name].predictor
        assert isinstance(model, MeanPredictor)
        assert found["predicted"].shape == one.c.shape
        for number in range(2):
            rows = fit.settings.splitting.folds(one, 2)[number]
            expected = predicted(model.models[number], one.x[rows])
            np.testing.assert_allclose(found["predicted"][rows], expected, rtol=1e-6)
            np.testing.assert_allclose(found["regret"][rows], regrets_at(one.rows(rows), expected), atol=1e-9)
        best = np.sum(one.c * one.w_star, axis=1)
        np.testing.assert_allclose(found["objective"], best + one.sense * found["regret"], rtol=1e-9)
        assert fit.members[one.name].choices["out_of_fold_regret"] == pytest.approx(found["regret"].mean())


def test_a_method_without_folds_keeps_none(federation: dffl.Federation) -> None:
    fit = dffl.fit(federation, "fedavg", rounds=1)
    with pytest.raises(ValueError, match="method 'fedavg' keeps no out-of-fold predictions; crossfit and local-tuned do"):
        fit.out_of_fold("a")


def test_what_a_fit_took(federation: dffl.Federation) -> None:
    size = (2 + 1) * 6 + (6 + 1) * federation.dim if federation.features == 2 else None
    fit = dffl.fit(federation, "fedavg", rounds=3, local_epochs=2, hidden=6)
    vector = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(fit.shared, eqx.is_inexact_array))])
    numbers = vector.size - sum(np.size(part) for part in _units(fit)) - 1
    assert size is None or numbers == size
    assert fit.effort == {"passes": 6.0, "sent": 3 * 4 * numbers, "answered": 3 * 4 * numbers}
    assert dffl.fit(federation, "mean-cost").effort == {"passes": 0.0, "sent": 0.0, "answered": 0.0}


def _units(fit: dffl.Fit) -> list[Any]:
    shared: Any = fit.shared
    unit: Normaliser = shared.normaliser
    return [unit.x_mean, unit.x_scale, unit.c_scale]
