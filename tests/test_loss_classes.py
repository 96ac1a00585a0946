"""Losses as values: what each computes, what a loss of one's own is given, and how losses are named, compared and saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import dffl
from dffl.losses import Loss, Rows
from dffl.losses.mse import MSE
from dffl.losses.spo_plus import SPOPlus, SPOPlusMSE
from dffl.training import ALL, FedAvg, Run, Settings
from dffl.training.aggregators.server import Momentum
from dffl.training.engines.base import gathered
from dffl.training.optimisers import SGD, Cosine, Linear
from dffl.training.update import NetworkForm, Recipe
from tests.federations import P, client
from tests.training.numpy_update import Site, cheapest, output

# What each computes. Sets {w in [0, 1]^4 : A w <= b}, with an oracle by linprog.

COEFFICIENTS = {
    "knapsack": (np.array([[0.5, 1.5, 1.0, 0.7]]), np.array([1.6])),
    "polytope": (np.array([[0.5, 1.5, 1.0, 0.7], [1.0, 0.2, 0.9, 0.4], [0.3, 0.3, 0.2, 1.1]]), np.array([1.6, 1.2, 0.8])),
}
SETS: dict[str, dffl.FeasibleSet] = {
    "knapsack": dffl.FractionalKnapsack(COEFFICIENTS["knapsack"][0][0], 1.6),
    "polytope": dffl.Polytope(A_ub=COEFFICIENTS["polytope"][0], b_ub=COEFFICIENTS["polytope"][1], lower=0, upper=1),
}
families = pytest.mark.parametrize("family", SETS)


def best(family: str, costs: np.ndarray) -> np.ndarray:
    """The decision of least cost, for each row."""
    a, b = COEFFICIENTS[family]
    return np.array([linprog(c, a, b, bounds=(0, 1)).x for c in costs])


def spo_plus(c_hat: np.ndarray, c: np.ndarray, family: str) -> np.ndarray:
    """max_w (c - 2 c_hat) w + 2 c_hat w*(c) - z*(c): Elmachtoub and Grigas, Definition 3."""
    worst, chosen = best(family, 2 * c_hat - c), best(family, c)
    return np.sum((c - 2 * c_hat) * worst, axis=1) + 2 * np.sum(c_hat * chosen, axis=1) - np.sum(c * chosen, axis=1)


def regret(c_hat: np.ndarray, c: np.ndarray, family: str) -> np.ndarray:
    return np.sum(c * best(family, c_hat), axis=1) - np.sum(c * best(family, c), axis=1)


def squares(c_hat: np.ndarray, c: np.ndarray, family: str) -> np.ndarray:
    return np.sum((c_hat - c) ** 2, axis=1) / c.shape[1]


def both(weight: float) -> Callable[..., np.ndarray]:
    return lambda c_hat, c, family: spo_plus(c_hat, c, family) + weight * squares(c_hat, c, family)


DEFINITIONS: dict[str, tuple[Loss, Callable[..., np.ndarray]]] = {
    "spo+": (Loss.of("spo+"), spo_plus),
    "mse": (Loss.of("mse"), squares),
    "spo+mse": (Loss.of("spo+mse"), both(0.1)),
    "spo+mse of another weight": (SPOPlusMSE(0.7), both(0.7)),
    "regret": (Loss.of("regret"), regret),
}


def drawn(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng.normal(size=(n, 4))


def rows(c: np.ndarray, family: str) -> Rows:
    return Rows(jnp.zeros((len(c), 2)), jnp.asarray(c), jnp.asarray(best(family, c)))


@families
@pytest.mark.parametrize("which", DEFINITIONS)
def test_a_loss_is_its_definition(which: str, family: str) -> None:
    loss, definition = DEFINITIONS[which]
    c_hat, c = drawn(0)
    with jax.enable_x64(True):
        found = np.asarray(loss(jnp.asarray(c_hat), rows(c, family), SETS[family], None))
    wanted = definition(c_hat, c, family)
    assert found.shape == (12,)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    assert (wanted >= -1e-12).all()
    assert len(np.unique(np.round(wanted, 6))) > 5  # enough different values to tell losses apart


@families
@pytest.mark.parametrize("which", [name for name, (loss, _) in DEFINITIONS.items() if loss.trains])
def test_the_gradient_is_that_of_finite_differences_away_from_kinks(which: str, family: str) -> None:
    loss, definition = DEFINITIONS[which]
    c_hat, c = drawn(1)
    with jax.enable_x64(True):
        of = rows(c, family)
        gradient = np.asarray(jax.grad(lambda p: loss(p, of, SETS[family], None).sum())(jnp.asarray(c_hat)))
    step, numeric = 1e-6, np.zeros_like(c_hat)
    reply = best(family, 2 * c_hat - c)
    for j in range(4):
        up, down = c_hat + step * np.eye(4)[j], c_hat - step * np.eye(4)[j]
        for moved in (up, down):  # no kink on the way
            np.testing.assert_allclose(best(family, 2 * moved - c), reply, atol=1e-9)
        numeric[:, j] = (definition(up, c, family) - definition(down, c, family)) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-7)
    assert np.abs(numeric).max() > 0.1


def test_regret_is_flat() -> None:
    c_hat, c = drawn(1)
    with jax.enable_x64(True):
        of = rows(c, "knapsack")
        gradient = jax.grad(lambda p: Loss.of("regret")(p, of, SETS["knapsack"], None).sum())(jnp.asarray(c_hat))
    np.testing.assert_array_equal(gradient, 0)


# A loss of one's own.

D = 4
FEDERATION = dffl.Federation(
    [
        client("c", dffl.TopK(D, 3), n=6, maximize=True),
        client("b", dffl.TopK(D, 1), n=5),
        client("a", dffl.TopK(D, 2), n=8),
    ]
)
SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 2, "batch_size": 4, "hidden": 6, "dtype": "float64", "optimiser": "sgd"}


def vector(fit: dffl.Fit) -> np.ndarray:
    network: Any = fit.shared.network  # type: ignore[union-attr]
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(network)])


class Noisy(dffl.Loss):
    """The squared error of a prediction with noise added."""

    name = "test-noisy"
    random = True
    keys: ClassVar[list[tuple[int, ...]]] = []

    def __init__(self, size: float = 0.5, watched: bool = False):
        self.size, self.watched = size, watched

    def __call__(self, c_hat: jax.Array, rows: Rows, s: dffl.FeasibleSet, key: jax.Array | None) -> jax.Array:
        assert key is not None
        if self.watched:
            jax.debug.callback(lambda words: Noisy.keys.append(tuple(words.tolist())), jax.random.key_data(key))
        return jnp.mean((c_hat + self.size * jax.random.normal(key, c_hat.shape, c_hat.dtype) - rows.c) ** 2, axis=-1)


def test_every_step_of_every_client_draws_from_a_key_of_its_own() -> None:
    Noisy.keys.clear()
    dffl.fit(FEDERATION, "fedavg", loss=Noisy(watched=True), **SMALL)
    jax.effects_barrier()
    steps = [len(Site(one, Settings(**SMALL)).minibatches(0, 1)) for one in FEDERATION]  # type: ignore[arg-type]
    assert len(set(Noisy.keys)) == SMALL["rounds"] * SMALL["local_epochs"] * sum(steps) == 2 * 2 * (2 + 2 + 2)


def test_the_same_seed_draws_the_same_noise_in_both_engines() -> None:
    fits = [
        dffl.fit(FEDERATION, "fedavg", loss=Noisy(0.25), seed=3, engine=engine, **SMALL)
        for engine in ("vector", "vector", "loop")
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(vector(fits[0]), vector(other))
    assert np.abs(vector(fits[0]) - vector(dffl.fit(FEDERATION, "fedavg", loss="mse", seed=3, **SMALL))).max() > 1e-5


def test_another_seed_draws_other_noise() -> None:
    """From one start, with one row, which has no order, a seed changes the noise and nothing else."""
    alone = dffl.Federation([client("a", dffl.TopK(D, 2), n=1)])

    def one_round(loss: Any, seed: int) -> np.ndarray:
        engine = Run(alone, Settings(**SMALL | {"loss": loss, "seed": seed})).engine(ALL)
        start = np.linspace(-1, 1, engine.initial.size)
        return gathered(engine.ask(FedAvg(), round=0, shared=start, rate=1.0), 1)["vector"]

    np.testing.assert_array_equal(one_round("mse", 0), one_round("mse", 1))
    first, again, other = (one_round(Noisy(0.25), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-5


def test_a_random_loss_can_judge() -> None:
    """Without noise it judges as the squared error does, in a run whose own loss draws nothing."""
    even = dffl.Federation([client(name, dffl.TopK(D, 2), n=10) for name in "ab"])
    fits = [dffl.fit(even, "interp-spo", judge=judge, **SMALL) for judge in (Noisy(0.0), "mse")]
    one, other = ([member.choices for member in fit.members.values()] for fit in fits)
    assert one == other


class OnTheBest(dffl.Loss):
    """The squared error of what the best decision buys, and nothing else."""

    name = "test-on-the-best"

    def __call__(self, c_hat: jax.Array, rows: Rows, s: dffl.FeasibleSet, key: jax.Array | None) -> jax.Array:
        assert key is None
        return jnp.sum(rows.w_star * (c_hat - rows.c) ** 2, axis=-1)


@pytest.mark.filterwarnings("ignore:training predictions are clipped")
def test_a_loss_is_given_the_best_decisions_in_scaled_units_as_for_a_minimiser() -> None:
    """The history's loss, before the model has moved, is the mean over the minibatches in NumPy."""
    fit = dffl.fit(FEDERATION, "local", epochs=2, loss=OnTheBest(), **SMALL | {"learning_rate": 1e-15, "tau": 1.5})
    start = Run(FEDERATION, fit.settings).engine(ALL).initial
    for one in FEDERATION:
        site = Site(one, fit.settings)
        c_hat = one.sense * output(start, site.x, hidden=6, d=D, tau=1.5)
        of_rows = np.sum(cheapest(site.c, site.k) * (c_hat - site.c) ** 2, axis=1)
        batches = [batch for epoch in range(2) for batch in site.minibatches(epoch, 1)]  # type: ignore[arg-type]
        wanted = np.mean([of_rows[batch].mean() for batch in batches])
        [found] = fit.history[fit.history["client"] == one.name]["loss"]
        assert found == pytest.approx(wanted, abs=1e-11)


# Losses that end a training.


class Undefined(dffl.Loss):
    """The squared error, but not a number for a client whose best decision buys as much as this."""

    name = "test-undefined"

    def __init__(self, bought: float):
        self.bought = bought

    def __call__(self, c_hat: jax.Array, rows: Rows, s: dffl.FeasibleSet, key: jax.Array | None) -> jax.Array:
        bad = jnp.sum(rows.w_star, axis=-1) == self.bought
        return jnp.where(bad, jnp.nan, jnp.mean((c_hat - rows.c) ** 2, axis=-1))


@pytest.mark.parametrize("engine", ["vector", "loop"])
def test_a_loss_that_is_not_a_number_names_the_client_and_the_round(engine: str) -> None:
    """And no other client: not `b`, which comes earlier in the order of names and whose minibatches have empty places."""
    assert FEDERATION[0].name == "c"  # its rows come first in the table: they must not fill the empty places of others
    with pytest.raises(dffl.DivergenceError, match=r"client 'c': training \(fedavg/all\) diverged in round 0"):
        dffl.fit(FEDERATION, "fedavg", loss=Undefined(3.0), engine=engine, **SMALL)


class Same(eqx.Module):
    """A network that answers the same numbers, whatever the features."""

    numbers: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.numbers


class Upwards(dffl.Loss):
    """Pushes the first prediction up by the rate in each step; not a number above ``most``."""

    name = "test-upwards"

    def __init__(self, most: float):
        self.most = most

    def __call__(self, c_hat: jax.Array, rows: Rows, s: dffl.FeasibleSet, key: jax.Array | None) -> jax.Array:
        first = c_hat[..., 0]
        return jnp.where(first > self.most, jnp.nan, -first)


def test_a_later_round_is_named_too() -> None:
    """Four steps of 0.1 in a round: round r sees 0.4 r, ..., 0.4 r + 0.3, so round 1 ends below 0.95 and round 2 above."""
    alone = dffl.Federation([FEDERATION["b"]])
    settings = SMALL | {"rounds": 5, "learning_rate": 0.1, "network": lambda key, p, d: Same(jnp.zeros(d))}
    dffl.fit(alone, "fedavg", loss=Upwards(0.95), **settings | {"rounds": 2})
    with pytest.raises(dffl.DivergenceError, match=r"client 'b': training \(fedavg/all\) diverged in round 2"):
        dffl.fit(alone, "fedavg", loss=Upwards(0.95), **settings)


def test_regret_judges_but_does_not_train() -> None:
    with pytest.raises(ValueError, match="loss 'regret' has no useful gradient: it can judge candidates, but not train"):
        dffl.fit(FEDERATION, "fedavg", loss="regret", **SMALL)
    with pytest.raises(ValueError, match="loss 'regret' has no useful gradient"):
        Run(FEDERATION, Settings(**SMALL)).trained(FedAvg(loss="regret"))
    with pytest.raises(ValueError, match=r"unknown loss 'spo'; did you mean 'spo\+'"):
        Settings(loss="spo")
    with pytest.raises(ValueError, match=r"spo\+mse: weight must be >= 0 and finite, found -1"):
        SPOPlusMSE(-1)


# Training on the squared error.


def errors(fit: dffl.Fit) -> float:
    """The mean squared error in scaled units, over all training samples."""
    scaled = [(fit.predict(one.name, one.x) - one.c) / np.abs(one.c).mean() for one in FEDERATION]
    return float(np.mean(np.concatenate(scaled) ** 2))


def test_training_on_the_squared_error_makes_it_smaller_than_training_on_decisions_does() -> None:
    settings = SMALL | {"rounds": 30, "optimiser": "adam", "learning_rate": 1e-2}
    by_decisions, by_errors = (errors(dffl.fit(FEDERATION, "fedavg", loss=loss, **settings)) for loss in ("spo+", "mse"))
    assert by_errors < 0.5 * by_decisions
    assert by_errors < 0.5 * errors(dffl.fit(FEDERATION, "mean-cost"))


def test_a_linear_model_trained_on_the_squared_error_is_least_squares() -> None:
    one = client("a", dffl.TopK(D, 2), n=40, maximize=True)
    settings = {
        "rounds": 1, "local_epochs": 400, "batch_size": 40, "dtype": "float64", "optimiser": "sgd", "learning_rate": 0.8,
        "gradient_clip": 1e6, "tau": 1e6, "network": lambda key, p, d: eqx.nn.Linear(p, d, key=key),
    }  # fmt: skip
    fit = dffl.fit(dffl.Federation([one]), "fedavg", loss="mse", **settings)
    design = np.column_stack([one.x, np.ones(40)])
    wanted = design @ np.linalg.lstsq(design, one.c, rcond=None)[0]
    np.testing.assert_allclose(fit.predict("a", one.x), wanted, rtol=0, atol=1e-9)
    assert P == 3


# Names, equality and saving.


def test_losses_are_equal_by_content() -> None:
    assert Loss.of("spo+mse") == SPOPlusMSE() == SPOPlusMSE(0.1) == SPOPlusMSE(weight=0.1)
    assert SPOPlusMSE(0.2) != SPOPlusMSE(0.1)
    assert SPOPlusMSE() != SPOPlus()
    assert MSE() != SPOPlus()
    assert MSE() == Loss.of("mse")
    assert len({SPOPlusMSE(), SPOPlusMSE(0.1), SPOPlusMSE(0.2), MSE(), Loss.of("mse"), SPOPlus()}) == 4
    assert hash(SPOPlusMSE(0.2)) == hash(SPOPlusMSE(0.2))
    assert repr(SPOPlusMSE(0.2)) == "SPOPlusMSE(weight=0.2)"
    assert Loss.of(MSE()) == MSE()


def test_equal_losses_train_once_and_share_a_program() -> None:
    run = Run(FEDERATION, Settings(**SMALL))
    assert run.trained(FedAvg(loss=SPOPlusMSE(0.7))) is run.trained(FedAvg(loss=SPOPlusMSE(0.7)))
    form: NetworkForm = run.engine(ALL)._layout.recipe.form  # type: ignore[attr-defined]
    assert Recipe(form, 3, SPOPlusMSE(0.2)) == Recipe(form, 3, SPOPlusMSE(0.2))
    assert Recipe(form, 3, SPOPlusMSE(0.2)) != Recipe(form, 3, SPOPlusMSE(0.3))
    assert np.abs(run.trained(FedAvg(loss=SPOPlusMSE(0.2))) - run.trained(FedAvg(loss=SPOPlusMSE(0.7)))).max() > 1e-6


def test_a_name_belongs_to_one_class() -> None:
    with pytest.raises(ValueError, match=r"loss 'mse' is there already \(dffl.losses.mse.MSE\); choose another name"):

        class Other(dffl.Loss):
            name = "mse"

    assert type(Loss.of("mse")) is MSE

    def cell() -> type[Loss]:
        class Own(dffl.Loss):
            name = "test-own"

            def __call__(self, c_hat: jax.Array, rows: Rows, s: dffl.FeasibleSet, key: jax.Array | None) -> jax.Array:
                return jnp.zeros(len(c_hat))

        return Own

    def another_place() -> type[Loss]:
        class Own(dffl.Loss):
            name = "test-own"

        return Own

    try:
        first, second = cell(), cell()  # a notebook's cell that is run twice
        assert first is not second
        assert type(Loss.of("test-own")) is second
        with pytest.raises(ValueError, match=r"loss 'test-own' is there already \(tests.test_loss_classes.*cell.*Own\)"):
            another_place()
        assert type(Loss.of("test-own")) is second
    finally:
        del Loss.known["test-own"]


def test_a_loss_that_needs_arguments_is_not_made_from_its_name() -> None:
    with pytest.raises(
        ValueError, match=r"loss 'test-undefined' cannot be made from its name alone .*bought.*; pass the object"
    ):
        Settings(loss="test-undefined")
    with pytest.raises(ValueError, match="loss must be a name or a loss object, found SGD"):
        Settings(loss=SGD())  # type: ignore[arg-type]


def test_a_fit_is_saved_and_loaded_with_its_loss(tmp_path: Any) -> None:
    fit = dffl.fit(FEDERATION, "fedavg", loss=SPOPlusMSE(0.7), **SMALL)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl")
    assert again.settings == fit.settings
    assert again.settings.loss == SPOPlusMSE(0.7)
    np.testing.assert_array_equal(again.predict("a", FEDERATION["a"].x), fit.predict("a", FEDERATION["a"].x))


@pytest.mark.parametrize("loss", [SPOPlusMSE(0.7), SPOPlusMSE(), Noisy(0.25, watched=True), Noisy(), Undefined(2.0), "mse"])
def test_every_named_value_among_the_settings_is_saved(loss: Any, tmp_path: Any) -> None:
    """With values inside values, of the same kind and of another one. Nothing trains here."""
    aggregate = Momentum(0.5, inner=Momentum(inner="median", schedule=Cosine(0.25)), schedule=Linear(0.5))
    more = {"loss": loss, "aggregate": aggregate, "optimiser": SGD(0.5), "schedule": Linear(0.1)}
    fit = dffl.fit(FEDERATION, "mean-cost", **SMALL | more)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl").settings
    settled = {"tau": Settings().clip(FEDERATION.dim), "split": "draw"}
    assert again == fit.settings == Settings(**SMALL | more | settled)
    assert (again.loss, again.aggregate, again.optimiser) == (Loss.of(loss), aggregate, SGD(0.5))
    assert again != Settings(**SMALL | more | {"loss": SPOPlusMSE(0.3)})


def test_a_saved_fit_whose_loss_is_not_there_says_so(tmp_path: Any) -> None:
    dffl.fit(FEDERATION, "mean-cost", loss=Noisy(0.25), **SMALL).save(tmp_path / "fit.dffl")
    kind = Loss.known.pop("test-noisy")
    try:
        fix = "install the package that brings it, or import the module that defines it first"
        with pytest.raises(ValueError, match=f"loss 'test-noisy' is not known here; {fix}"):
            dffl.load(tmp_path / "fit.dffl")
    finally:
        Loss.known["test-noisy"] = kind
    assert dffl.load(tmp_path / "fit.dffl").settings.loss == Noisy(0.25)
