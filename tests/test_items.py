"""Items with features of their own: their place in x, their units, and the network that is shared over them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.items import ItemNetwork
from dffl.predictor import Normaliser, Template
from dffl.training import Settings
from dffl.training.units import UnitPrior

DIM, WIDTH, KNOWN = 4, 2, 1
KEEP: dict[str, Any] = {"progress": False, "rounds": 2, "local_epochs": 1, "loss": "mse"}


def client(name: str = "a", n: int = 12, seed: int = 0, forecast: bool = False, **more: Any) -> dffl.Client:
    """Costs follow from the features of each item by one function, the same for all items and clients."""
    rng = np.random.default_rng(seed)
    items, known = rng.normal(3, 2, (n, DIM, WIDTH)), rng.uniform(1, 2, (DIM, KNOWN))
    c = 5 + items[..., 0] - 0.5 * items[..., 1] * known[:, 0] + rng.normal(0, 0.05, (n, DIM))
    given: dict[str, Any] = {"x": rng.normal(size=(n, 3)), "c": c, "set": dffl.TopK(DIM, 1), "items": items, "known": known}
    if forecast:
        given["forecast"] = c + rng.normal(0, 1, c.shape)
    return dffl.Client(name, **(given | more))


def federation(n: int = 12, **more: Any) -> dffl.Federation:
    return dffl.Federation([client("a", n, 0, **more), client("b", n, 1, **more)])


@pytest.fixture(scope="module")
def fitted() -> dffl.Fit:
    return dffl.fit(federation(), "fedavg", **KEEP)


@pytest.mark.parametrize("forecast", [False, True])
def test_features_of_items_are_behind_the_others_and_before_a_forecast(forecast: bool) -> None:
    one = client(forecast=forecast)
    assert one.items.shape == (12, DIM, WIDTH + KNOWN)
    assert one.x.shape[1] == 3 + DIM * (WIDTH + KNOWN) + DIM * forecast
    np.testing.assert_array_equal(one.x[:, 3 : 3 + DIM * 3].reshape(12, DIM, 3), one.items)
    assert (np.ptp(one.items[..., 2], axis=0) == 0).all(), "known features stand in every row"
    if forecast:
        np.testing.assert_array_equal(one.x[:, -DIM:], one.forecast)
    part = one.rows(slice(2, 5))
    np.testing.assert_array_equal(part.items, one.items[2:5])
    again = one.with_set(dffl.TopK(DIM, 2))
    np.testing.assert_array_equal(again.x, one.x)
    np.testing.assert_array_equal(again.items, one.items)
    np.testing.assert_array_equal(one.row_features, one.x[:, :3])
    assert not one.x.flags.writeable
    later = one.with_rows(one.x[1:], one.c[1:], np.arange(11))
    np.testing.assert_array_equal(later.items, one.items[1:])


def test_columns_of_items_have_names_where_the_others_have() -> None:
    x = pd.DataFrame({"temp": np.arange(12.0)})
    c = pd.DataFrame(np.ones((12, 2)), columns=["p1", "p2"])
    one = dffl.Client("a", x, c, dffl.TopK(2, 1), items=np.ones((12, 2, 1)), forecast=np.zeros((12, 2)))
    assert one.feature_names is not None
    assert one.feature_names[:3] == ("temp", "item feature 0 of p1", "item feature 0 of p2")
    assert len(one.feature_names) == one.x.shape[1] == 5
    nothing_else = dffl.Client("a", None, c, dffl.TopK(2, 1), items=np.ones((12, 2, 1)))
    assert nothing_else.x.shape == (12, 2)


WRONG = {
    "items": ({"items": np.ones((12, 3, 2))}, r"items: must have one item for each of the 4 costs, found 3"),
    "axes": ({"items": np.ones((12, 4))}, r"items: must have the axes row, item and feature"),
    "rows": ({"items": np.ones((11, 4, 1))}, r"items: must have a table for each row of x \(12,\), found \(11,\)"),
    "nan": ({"items": np.full((12, 4, 1), np.nan)}, r"items: must be finite .* found nan at \[0, 0, 0\]"),
    "text": ({"items": [["a"]]}, r"items: must be numbers"),
    "dates": ({"items": np.zeros((12, 4, 1), "M8[s]")}, r"items: must be numbers, found datetime64"),
    "known": ({"known": np.ones((5, 1))}, r"known: must have one item for each of the 4 costs, found 5"),
    "known axes": ({"known": np.ones(4)}, r"known: must have the axes item and feature"),
    "known nan": ({"known": np.full((4, 1), np.inf)}, r"known: must be finite .* found inf at \[0, 0\]"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_items_are_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^client 'a': {message}") as error:
        client(**given)
    assert "\n" not in str(error.value)


def test_clients_must_agree() -> None:
    with pytest.raises(
        ValueError, match="client 'b': items: each item must have 3 features, as those of client 'a' have, found 2"
    ):
        dffl.Federation([client("a"), client("b", known=None)])
    with pytest.raises(ValueError, match="found 0; known ones count too"):
        dffl.Federation([client("a"), client("b", items=None, known=None)])


def test_a_feature_of_items_has_one_mean_and_one_scale() -> None:
    one = client(forecast=True)
    unit = Settings(item_features=3).for_clients(dffl.Federation([one])).units(one.x, one.c)
    for number in range(3):
        columns = [3 + item * 3 + number for item in range(DIM)]
        values = one.items[..., number]
        np.testing.assert_allclose(unit.x_mean[columns], values.mean(), rtol=1e-12)
        np.testing.assert_allclose(unit.x_scale[columns], values.std(), rtol=1e-12)
    plain = Normaliser.fit(one.x, one.c, forecasts=DIM)
    np.testing.assert_array_equal(unit.x_mean[:3], plain.x_mean[:3])
    np.testing.assert_array_equal(unit.x_mean[-DIM:], 0)


def test_a_newcomer_trusts_the_spread_of_a_known_feature() -> None:
    """A known feature is constant in each column, and yet varies from item to item."""
    fed = federation()
    settings = Settings().for_clients(fed)
    units = [settings.units(one.x, one.c) for one in fed]
    prior = UnitPrior.of(units, [10**6, 10**6])
    met = prior.met_by(fed[0].x, fed[0].c, settings)
    known = [3 + item * 3 + 2 for item in range(DIM)]
    own = np.sqrt(
        (share := 12 / (12 + np.array(prior.x_worth)[known])) * units[0].x_scale[known] ** 2
        + (1 - share) * np.array(prior.x_scale)[known] ** 2
    )
    np.testing.assert_allclose(met.x_scale[known], own, rtol=1e-12)


def test_the_network_is_one_function_of_each_item() -> None:
    network = ItemNetwork(jax.random.key(0), DIM, WIDTH, 3, 5, behind=True)
    network = jax.tree.map(lambda leaf: jnp.asarray(np.random.default_rng(leaf.size).normal(size=leaf.shape)), network)
    rng = np.random.default_rng(3)
    row, items = rng.normal(size=3), rng.normal(size=(DIM, WIDTH))
    expected = np.array(
        [
            np.tanh(items[i] @ network.item + row @ network.row + network.identity[i]) @ network.last
            + items[i] @ network.linear
            + network.offset[i]
            for i in range(DIM)
        ]
    )
    np.testing.assert_allclose(network(jnp.asarray(np.concatenate([row, items.ravel()]))), expected, rtol=1e-4)
    first = ItemNetwork(jax.random.key(0), DIM, WIDTH, 3, 5)
    assert (first(jnp.ones(11)) == 0).all(), "nothing is learnt yet"


@pytest.mark.parametrize("network", ["items", "vector"])
def test_without_units_a_network_is_linear(network: str) -> None:
    settings, bent = (replace(Settings(network=network, hidden=hidden), item_features=WIDTH) for hidden in (0, 5))
    x = np.random.default_rng(0).normal(size=11)
    for how, linear in ((settings, True), (bent, False)):
        made = how.factory(jax.random.key(0), 11, DIM)
        noise = np.random.default_rng(1)
        made = jax.tree.map(lambda leaf, noise=noise: jnp.asarray(noise.normal(size=leaf.shape)), made)
        low, middle, high = (np.asarray(made(jnp.asarray(x + step))) for step in (-5.0, 0.0, 5.0))
        assert np.allclose(high - middle, middle - low, atol=1e-3) == linear
        assert np.abs(middle - low).min() > 1e-3


def test_items_are_shared_by_default_and_by_name() -> None:
    fed = federation()
    without = dffl.Federation([dffl.Client(one.name, one.x, one.c, one.set) for one in fed])
    kinds = {
        (clients is fed, network): type(
            Settings(network=network).for_clients(clients).factory(jax.random.key(0), fed.features, DIM)
        ).__name__
        for clients in (fed, without)
        for network in (None, "vector", *(["items"] if clients is fed else []))
    }
    assert kinds == {
        (True, None): "ItemNetwork",
        (True, "items"): "ItemNetwork",
        (True, "vector"): "Network",
        (False, None): "Network",
        (False, "vector"): "Network",
    }
    with pytest.raises(ValueError, match="network 'items' needs clients whose items have features"):
        dffl.fit(without, "fedavg", network="items", **KEEP)
    with pytest.raises(ValueError, match="network must be one of items, vector, or a function, found 'item'"):
        dffl.fit(fed, "fedavg", network="item", **KEEP)


@pytest.mark.parametrize(("forecast", "hidden"), [(False, 0), (True, 8)])
def test_engines_agree_and_a_saved_fit_decides_the_same(forecast: bool, hidden: int, tmp_path: Path) -> None:
    fed = federation(forecast=forecast)
    one, other = (dffl.fit(fed, "fedavg", hidden=hidden, engine=engine, **KEEP) for engine in ("vector", "loop"))
    one.save(tmp_path / "m.dffl")
    again = dffl.load(tmp_path / "m.dffl")
    for member in fed:
        expected = one.predict(member.name, member.x)
        np.testing.assert_array_equal(other.predict(member.name, member.x), expected)
        np.testing.assert_array_equal(again.predict(member.name, member.x), expected)
    assert again.item_features == 3


def test_a_method_that_turns_features_says_which_network_it_needs() -> None:
    with pytest.raises(ValueError, match=r"ItemNetwork needs a list of weights .* network='vector' is one"):
        dffl.fit(federation(), "crossfit-turned", **KEEP)


def test_the_last_layer_of_a_shared_network_has_a_name() -> None:
    template = Template(ItemNetwork(jax.random.key(0), DIM, WIDTH, 3, 5))
    assert template.layers("last").names == ("last",)


def test_a_network_by_name_needs_no_factory_to_load(tmp_path: Path) -> None:
    fed = federation()
    fit = dffl.fit(fed, "fedavg", network="vector", **KEEP)
    fit.save(tmp_path / "m.dffl")
    np.testing.assert_array_equal(dffl.load(tmp_path / "m.dffl").predict("a", fed["a"].x), fit.predict("a", fed["a"].x))


def test_new_rows_bring_features_of_items_as_clients_do(fitted: dffl.Fit) -> None:
    fit, one = fitted, federation()["a"]
    items, known = one.items[..., :2], one.items[0, :, 2:]
    expected = fit.predict("a", one.x)
    np.testing.assert_array_equal(fit.predict("a", one.x[:, :3], items=items, known=known), expected)
    np.testing.assert_array_equal(fit.predict("a", one.x[:, :3], items=one.items), expected)
    np.testing.assert_array_equal(fit.decide("a", one.x[0, :3], items=one.items[0]), fit.decide("a", one.x)[0])
    with pytest.raises(ValueError, match="items must have 3 features each, as in training, found 2; known ones count too"):
        fit.predict("a", one.x[:, :3], items=items)
    with pytest.raises(ValueError, match="columns 3 to 14 are features of items: hand them in as items="):
        fit.predict("a", one.x[:, :3])
    with pytest.raises(ValueError, match="test: items must have 3 features each"):
        fit.evaluate(dffl.Federation([dffl.Client(one.name, one.x, one.c, one.set)]))
    plain = dffl.fit(dffl.Federation([dffl.Client("a", one.x, one.c, one.set)]), "mean-cost", progress=False)
    with pytest.raises(ValueError, match="items: those of training had no features"):
        plain.predict("a", one.x, items=items)


def test_items_and_a_forecast_come_together() -> None:
    fed = federation(forecast=True)
    fit, one = dffl.fit(fed, "forecast", progress=False), fed["a"]
    found = fit.predict("a", one.x[:, :3], forecast=one.forecast, items=one.items)
    np.testing.assert_array_equal(found, one.forecast)
    unordered = fit._features(one.x[:, :3], one.forecast, one.items[..., :2], one.items[0, :, 2:])
    np.testing.assert_array_equal(unordered, one.x)


def test_few_rows_are_enough_where_items_share_one_function() -> None:
    train = federation(n=20)
    test = dffl.Federation([client("a", 200, 5), client("b", 200, 6)])
    how: dict[str, Any] = {"progress": False, "rounds": 30, "local_epochs": 2, "learning_rate": 0.01, "loss": "mse"}
    shared, vector = (
        dffl.fit(train, "fedavg", network=network, **how).evaluate(test)["relative_regret"].mean()
        for network in ("items", "vector")
    )
    assert shared < 0.5 * vector
