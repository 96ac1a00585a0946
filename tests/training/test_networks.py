"""Networks of a user's own: convolutions, dropout, named layers, both precisions; and the clip of their outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.judging import clipped_shares
from dffl.networks import draws, outputs, quiet
from dffl.predictor import ConstantPredictor, Correction, MeanPredictor, Network, NetworkPredictor, Normaliser, Template
from dffl.training import Run, Settings
from dffl.training.checkpoint import run_fingerprint
from tests.federations import client
from tests.training.test_seam import _interrupt_after

SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 1, "batch_size": 8, "progress": False}
P, D = 3, 5


class Dense(eqx.Module):
    """Layers with names, and dropout between them."""

    body: eqx.nn.Linear
    drop: eqx.nn.Dropout
    head: eqx.nn.Linear

    def __init__(self, key: Any, p: int, d: int, rate: float = 0.4):
        one, two = jax.random.split(key)
        self.body, self.head = eqx.nn.Linear(p, 6, key=one), eqx.nn.Linear(6, d, key=two)
        self.drop = eqx.nn.Dropout(rate)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        return self.head(self.drop(jax.nn.relu(self.body(x)), key=key))


class Forgetful(Dense):
    """Dropout that no key reaches."""

    def __call__(self, x: Any) -> Any:  # type: ignore[override]
        return super().__call__(x)


class Convolved(eqx.Module):
    convolution: eqx.nn.Conv1d
    head: eqx.nn.Linear

    def __init__(self, key: Any, p: int, d: int):
        one, two = jax.random.split(key)
        self.convolution = eqx.nn.Conv1d(1, 2, 3, padding=1, key=one)
        self.head = eqx.nn.Linear(2 * p, d, key=two)

    def __call__(self, x: Any) -> Any:
        return self.head(jax.nn.relu(self.convolution(x[None])).reshape(-1))


@pytest.fixture(scope="module")
def federation() -> dffl.Federation:
    return dffl.Federation([client(name, dffl.TopK(D, 2), n, seed=n) for name, n in (("a", 13), ("b", 14))])


def vectors(fit: dffl.Fit) -> np.ndarray:
    networks = [member.predictor.network for member in fit.members.values()]  # type: ignore[attr-defined]
    return np.stack([np.asarray(Template(one).vector(one)) for one in networks])


# Precision


@pytest.mark.parametrize(("method", "dtype"), [("fedrep", "float32"), ("local", "float64")])
def test_convolutions_predict_in_their_own_precision(federation: dffl.Federation, method: str, dtype: str) -> None:
    fit = dffl.fit(federation, method, network=Convolved, dtype=dtype, **SMALL)
    member = fit.members["a"].predictor
    assert member.network.head.weight.dtype == dtype  # type: ignore[attr-defined]
    x = federation["a"].x
    with jax.enable_x64(dtype == "float64"):
        z = jnp.asarray(member.normaliser.features(x), dtype)  # type: ignore[attr-defined]
        wanted = np.asarray(jax.vmap(member.network)(z)) * float(member.normaliser.c_scale)  # type: ignore[attr-defined]
    found = fit.predict("a", x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-12)
    assert fit.decide("a", x).sum() == 2 * len(x)


def test_a_network_without_numbers_to_train_is_refused(federation: dffl.Federation) -> None:
    class Nothing(eqx.Module):
        def __call__(self, x: Any) -> Any:
            return jnp.zeros(D)

    for made in (Nothing(), eqx.nn.Linear(P, D, dtype=jnp.complex64, key=jax.random.key(0))):
        with pytest.raises(ValueError, match=r"^network must be an Equinox module with arrays of real numbers to train$"):
            dffl.fit(federation, "fedavg", network=lambda *_, made=made: made, **SMALL)


# Dropout


def test_dropout_gives_the_same_bits_in_every_engine_and_when_it_is_resumed(
    federation: dffl.Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dffl.fit(federation, "fedavg", network=Dense, **SMALL)
    loop = dffl.fit(federation, "fedavg", network=Dense, engine="loop", **SMALL)
    np.testing.assert_array_equal(vectors(whole), vectors(loop))
    path = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        _interrupt_after(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(federation, "fedavg", network=Dense, checkpoint=path, **SMALL)
    resumed = dffl.fit(federation, "fedavg", network=Dense, checkpoint=path, **SMALL)
    np.testing.assert_array_equal(vectors(whole), vectors(resumed))
    # It does drop in training: without, and with another seed, the numbers differ. Prediction never draws.
    still = dffl.fit(federation, "fedavg", network=lambda key, p, d: Dense(key, p, d, 0.0), **SMALL)
    assert np.abs(vectors(still) - vectors(whole)).max() > 1e-6
    x = federation["a"].x
    np.testing.assert_array_equal(whole.predict("a", x), whole.predict("a", x))
    whole.save(tmp_path / "fit.dffl")
    np.testing.assert_array_equal(dffl.load(tmp_path / "fit.dffl", network=Dense).predict("a", x), whole.predict("a", x))


def test_a_step_draws_by_its_epoch_and_minibatch_alone(federation: dffl.Federation) -> None:
    """Two epochs in one call, or in two: so a tuning with several stops is the same training as one without."""
    made = []
    for epochs in (1, 2):
        run = Run(federation, Settings(network=Dense, rounds=2, local_epochs=epochs, batch_size=8))
        [site, *_] = run.engine().sites()
        made.append(site.train(site.initial, 2).vectors)
    np.testing.assert_array_equal(*made)


def test_dropout_that_no_key_reaches_is_refused(federation: dffl.Federation) -> None:
    with pytest.raises(
        ValueError, match=r"in training \(Dropout requires a key .*\); its __call__ must take key and pass it on"
    ):
        dffl.fit(federation, "fedavg", network=Forgetful, **SMALL)


def test_which_networks_draw() -> None:
    key, x = jax.random.key(0), jnp.ones(P)
    mlp = eqx.nn.MLP(P, D, 4, 1, key=key)  # takes a key, and does not look at it
    dense = Dense(key, P, D)
    for network, wanted in ((Network(key, P, D), False), (mlp, False), (dense, True), (quiet(dense), False)):
        assert draws(network, x) is wanted
    forecast = Correction(dense, D), Correction(Network(key, P, D), D)
    assert [draws(one, jnp.ones(P + D)) for one in forecast] == [True, False]
    rows = jnp.ones((200, P))
    dropped = outputs(dense, rows, jax.random.key(1))
    assert len(np.unique(np.asarray(dropped)[:, 0])) > 3  # every row draws for itself
    np.testing.assert_array_equal(outputs(dense, rows)[0], jax.vmap(quiet(dense))(rows)[0])


def test_another_rate_of_dropout_is_another_run(federation: dffl.Federation) -> None:
    def factory(rate: float) -> Any:
        return lambda key, p, d: Dense(key, p, d, rate)

    found = [run_fingerprint(federation, None, Settings(network=factory(rate))) for rate in (0.1, 0.5, 0.1)]
    assert found[0] == found[2] != found[1]


# Layers


class Mixed(eqx.Module):
    """Numbered layers in front of a named one."""

    blocks: list[eqx.nn.MLP]
    out: eqx.nn.Linear
    scale: Any


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        (Network(jax.random.key(0), P, D, (4, 4)), ("weights.2", "biases.2")),
        (Correction(Network(jax.random.key(0), P, D), D), ("network.weights.1", "network.biases.1")),
        (eqx.nn.MLP(P, D, 4, 11, key=jax.random.key(0)), ("layers.11.weight", "layers.11.bias")),
        (Dense(jax.random.key(0), P, D), ("head.weight", "head.bias")),
        (
            Mixed(
                [eqx.nn.MLP(P, P, 4, 1, key=jax.random.key(0))] * 2, eqx.nn.Linear(P, D, key=jax.random.key(0)), jnp.ones(())
            ),
            ("out.weight", "out.bias"),
        ),
        (
            eqx.nn.Sequential([eqx.nn.MLP(P, D, 4, 1, key=jax.random.key(0))] * 2),
            ("layers.1.layers.1.weight", "layers.1.layers.1.bias"),
        ),
    ],
)
def test_the_last_layer_is_the_one_declared_last(network: Any, wanted: tuple[str, ...]) -> None:
    template = Template(network)
    assert template.layers("last").names == wanted
    assert template.layers(wanted).mask.sum() == template.layers("last").mask.sum()


def test_arrays_without_layers_have_no_last_one() -> None:
    class Bare(eqx.Module):
        first: Any
        second: Any

    with pytest.raises(ValueError, match=r"'last' names no layer of the network \(it has first, second\)"):
        Template(Bare(jnp.ones(2), jnp.ones(2))).layers("last")


# The clip


@pytest.mark.parametrize(("costs", "wanted"), [(1, 20.0), (50, 20.0), (51, 20 * np.sqrt(51 / 50)), (800, 80.0)])
def test_the_clip_grows_with_the_number_of_costs(costs: int, wanted: float) -> None:
    assert Settings().clip(costs) == pytest.approx(wanted, rel=1e-15)
    assert Settings().at(costs).tau == Settings().clip(costs)
    assert Settings(tau=20.0).at(costs).tau == 20.0
    # Saved settings of 0.2.0 name it, and keep it.
    assert Settings.read(Settings(tau=20.0).described(), None).at(costs).tau == 20.0


def test_settings_for_few_costs_have_the_digest_of_version_0_2_0() -> None:
    assert Settings().at(50).digest() == "581f9ee44c6c391ac4be1752db3059a5"
    assert Settings(seed=3, rounds=7, privacy="client").at(24).digest() == "3dfcf5f59e15b8d3e75456c4c0ebda95"


def test_a_fit_of_many_costs_is_not_clipped_and_says_its_clip(tmp_path: Path) -> None:
    d = 200
    x, rng = np.linspace(-1, 1, 12)[:, None], np.random.default_rng(0)
    c = 3 + x * rng.normal(size=d)
    federation = dffl.Federation([dffl.Client("a", x, c, dffl.TopK(d, 2))])
    how: dict[str, Any] = {"loss": "mse", "rounds": 4, "learning_rate": 0.03, "progress": False, "hidden": 8}
    fit = dffl.fit(federation, "local", **how)
    assert fit.settings.tau == fit.members["a"].predictor.tau == 40.0  # type: ignore[attr-defined]
    assert fit.history["clipped"].max() == 0
    fit.save(tmp_path / "fit.dffl")
    assert dffl.load(tmp_path / "fit.dffl").settings.tau == 40.0
    with pytest.warns(
        UserWarning, match=r"^training predictions are clipped at norm tau \(client 'a': \d+%\): try a larger tau"
    ):
        dffl.fit(federation, "local", tau=5.0, **how)


def test_the_share_of_clipped_outputs_is_that_of_all_networks_inside_a_predictor() -> None:
    unit = Normaliser(np.zeros(1), np.ones(1), np.asarray(7.0))

    def predictor(slope: float) -> NetworkPredictor:
        network = eqx.nn.Linear(1, 2, use_bias=False, key=jax.random.key(0))
        return NetworkPredictor(eqx.tree_at(lambda n: n.weight, network, jnp.full((2, 1), slope)), unit, np.asarray(2.0))

    x = np.array([[0.5], [1.0], [2.0], [4.0]])
    mean = MeanPredictor((predictor(1.0), predictor(0.1)))  # norms sqrt(2) slope x: two of eight are above 2
    assert clipped_shares([mean, ConstantPredictor(np.zeros(2)), predictor(9.0)], [x] * 3, 2) == [0.25, 0.0, 1.0]
