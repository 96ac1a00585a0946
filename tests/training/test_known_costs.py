"""Known costs in training: equal to costs that are shifted by hand, the same in every engine, and in every loss."""

from __future__ import annotations

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from tests.federations import P, client, feasible_sets

D = 3
KNOWN = np.array([0.5, -1.0, 2.0])
ROWS = {"A_ub": [[1.0, 2.0, 1.5]], "b_ub": [2.5]}
FAST = {"rounds": 3, "local_epochs": 2, "progress": False}


class Shifted(eqx.Module):
    """A linear model whose outputs begin at ``shift``."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.weight @ x + self.bias


def factory(shift: np.ndarray):  # type: ignore[no-untyped-def]
    return lambda key, p, d: Shifted(0.1 * jax.random.normal(key, (d, p)), jnp.asarray(shift, jnp.float32))


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("how", ["on the decisions", "on helpers"])
def test_training_sees_predicted_plus_known_costs(how: str, maximize: bool) -> None:
    plain = dffl.Polytope(**ROWS, lower=np.zeros(D), upper=np.ones(D))
    if how == "on the decisions":
        known = dffl.Polytope(**ROWS, lower=np.zeros(D), upper=np.ones(D), known_cost=KNOWN)
    else:  # a helper that equals each decision
        known = dffl.Polytope(
            A_ub=np.hstack([ROWS["A_ub"], np.zeros((1, D))]), b_ub=ROWS["b_ub"], A_eq=np.hstack([np.eye(D), -np.eye(D)]),
            b_eq=np.zeros(D), lower=np.zeros(2 * D), upper=np.ones(2 * D), helpers=D, known_cost=KNOWN,
        )  # fmt: skip
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, P))
    c = x @ rng.normal(size=(P, D)) + rng.normal(size=(30, D))
    with_known = dffl.Federation([dffl.Client("a", x, c, known, maximize)])
    by_hand = dffl.Federation([dffl.Client("a", x, c + KNOWN, plain, maximize)])
    same = {"scale_costs": False, "tau": 1e6, "dtype": "float64", **FAST}
    fits = [
        dffl.fit(fed, "fedavg", network=factory(shift), **same) for fed, shift in ((with_known, np.zeros(D)), (by_hand, KNOWN))
    ]
    ours, theirs = (fit.predict("a", x) for fit in fits)
    assert np.abs(ours - x[:, :1]).max() > 0.1  # it has learned something of its own
    np.testing.assert_allclose(ours + KNOWN, theirs, atol=1e-6)
    np.testing.assert_allclose(
        fits[0].evaluate(with_known)["relative_regret"], fits[1].evaluate(by_hand)["relative_regret"], atol=1e-9
    )
    np.testing.assert_allclose(with_known["a"].best_objective, by_hand["a"].best_objective, atol=1e-9)
    np.testing.assert_allclose(fits[0].decide("a", x)[:, :D], fits[1].decide("a", x), atol=1e-9)


def known_set() -> dffl.MixedInteger:
    d = 5
    rows = np.hstack([np.ones((1, d)), [[1.0]]])
    return dffl.MixedInteger(A_eq=rows, b_eq=[3.0], lower=np.zeros(d + 1), upper=[1] * d + [3], helpers=1, known_cost=[2.0])


def federation(n: int = 12) -> dffl.Federation:
    """Sets with and without known costs, integer ones among them, both senses."""
    sets = feasible_sets()
    known, integer = known_set(), dffl.MixedInteger(A_ub=[[1.0, 2, 3, 2, 1]], b_ub=[4], lower=np.zeros(5), upper=np.ones(5))
    return dffl.Federation(
        [
            client("known", known, n), client("known too", known, n + 5), client("integer", integer, n),
            client("topk", sets["topk"], n), client("sells", known, n, maximize=True),
            client("items", sets["items"], n, maximize=True),
        ]
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", ["finetune", "crossfit"])
def test_engines_agree_bit_for_bit(method: str) -> None:
    fed = federation()
    found = {}
    for engine in ("vector", "loop"):
        fit = dffl.fit(fed, method, engine=engine, rounds=2, local_epochs=1, progress=False)
        found[engine] = np.concatenate([fit.predict(one.name, one.x) for one in fed])
    for other in found.values():
        np.testing.assert_array_equal(other, found["vector"])


@pytest.mark.parametrize("loss", ["mse", "spo+mse", "fenchel-young", "dpo"])
def test_other_losses_look_at_predicted_costs_alone(loss: str) -> None:
    s = dffl.Polytope(A_eq=[[1.0, 1, 1, 1]], b_eq=[2.0], lower=0, upper=[1, 1, 1, 2], helpers=1, known_cost=[3.0])
    fed = dffl.Federation([client("a", s)])
    fit = dffl.fit(fed, "local", loss=loss, **FAST)
    assert np.isfinite(fit.predict("a", fed["a"].x)).all()
    if loss == "mse":
        other = dffl.Federation([dffl.Client("a", fed["a"].x, fed["a"].c, dffl.TopK(3, 2))])
        np.testing.assert_array_equal(
            fit.predict("a", fed["a"].x), dffl.fit(other, "local", loss=loss, **FAST).predict("a", fed["a"].x)
        )


def test_a_loss_that_smooths_refuses_integer_sets_and_known_costs() -> None:
    fed = dffl.Federation([client("a", known_set())])
    with pytest.raises(ValueError, match="client 'a': loss 'rspo\\+' needs sets that can project"):
        dffl.fit(fed, "local", loss="rspo+", **FAST)


def test_relax_trains_on_relaxations_and_decides_on_whole_numbers() -> None:
    fed = federation()
    relaxed, exact = dffl.fit(fed, "local", relax=True, **FAST), dffl.fit(fed.relaxed(), "local", **FAST)
    for one in fed:
        np.testing.assert_array_equal(relaxed.predict(one.name, one.x), exact.predict(one.name, one.x))
        assert relaxed.members[one.name].set is one.set
    whole = relaxed.decide("known", fed["known"].x)
    np.testing.assert_array_equal(whole, np.round(whole))
    assert whole.shape == (12, 6)
    assert (relaxed.evaluate(fed)["relative_regret"] >= -1e-12).all()
    with pytest.raises(ValueError, match="relax must be True or False, found 1"):
        dffl.fit(fed, "local", relax=1, **FAST)


def test_a_limit_in_training_regrets_or_decisions_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(20, 100, size=(2, 14)).astype(float)
    s = dffl.MixedInteger(A_ub=a, b_ub=0.4 * a.sum(axis=1), lower=np.zeros(14), upper=np.ones(14), nodes=1)
    x = rng.normal(size=(6, P))
    fed = dffl.Federation([dffl.Client("hard", x, a.mean(axis=0) + rng.uniform(0, 5, size=(6, 14)), s, maximize=True)])
    with pytest.warns(
        UserWarning, match="solves of training ended at a limit \\(client 'hard': .*gap up to .*: a better decision"
    ):
        fit = dffl.fit(fed, "local", **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dffl.fit(fed, "local", relax=True, **FAST)
    assert fit.decide("hard", x).shape == (6, 14)


def test_a_newcomer_with_known_costs_joins_and_is_evaluated() -> None:
    fed = federation()
    fit = dffl.fit(fed, "finetune", rounds=2, local_epochs=1, progress=False)
    joined = fit.joined_by(client("new", known_set(), 10), epochs=(0, 2), progress=False)
    assert joined.decide("new", fed["known"].x[:2]).shape == (2, 6)
    table = dffl.compare(fed, ["local", "fedavg"], test=federation(20), rounds=2, local_epochs=1, progress=False)
    assert np.isfinite(table["relative_regret"]).all()
