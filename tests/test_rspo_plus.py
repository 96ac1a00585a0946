"""RSPO+: what it computes, against CVXPY and finite differences, and what smoothing a client gets in training."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.losses import Loss, Rows, rspo_plus
from dffl.losses.rspo_plus import RSPOPlus
from dffl.training import ALL, Run, Settings
from dffl.training.engines.site import Site
from dffl.training.units import own_smoothing
from tests.federations import client, feasible_sets
from tests.sets.test_projection import constraints, segment

D = 5
SETS = feasible_sets(D)
FAMILIES = ("knapsack", "topk", "entropy", "polytope", "ball")
families = pytest.mark.parametrize("family", FAMILIES)
L = 0.7


def drawn(seed: int, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), rng.normal(size=(n, D))


def least(s: dffl.FeasibleSet, u: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
    """The least of u . w + smoothing / 2 |w|^2 over the set, and where it is."""
    w = cp.Variable(s.dim)
    goal = cp.Minimize(u @ w + smoothing / 2 * cp.sum_squares(w))
    value = cp.Problem(goal, constraints(s, w)).solve(cp.CLARABEL)
    return float(value), np.asarray(w.value)


def evaluated(c_hat: np.ndarray, c: np.ndarray, s: dffl.FeasibleSet, smoothing: Any = L, **more: Any) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(rspo_plus(c_hat, c, s, smoothing, **more))


@families
def test_the_value_is_the_gap_of_two_smoothed_objectives(family: str) -> None:
    s = SETS[family]
    c_hat, c = drawn(0, 4)
    wanted = []
    for one, true in zip(c_hat, c, strict=True):
        u, held = 2 * one - true, least(s, true, L)[1]
        wanted.append(u @ held + L / 2 * held @ held - least(s, u, L)[0])
    found = evaluated(c_hat, c, s)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5)
    assert max(wanted) > 0.1
    np.testing.assert_allclose(evaluated(-c_hat, -c, s, maximize=True), found, rtol=1e-12)


@families
def test_it_is_never_negative_zero_at_the_truth_and_convex(family: str) -> None:
    s = SETS[family]
    c_hat, c = drawn(1, 40)
    values = evaluated(c_hat, c, s)
    assert (values >= -1e-12).all()
    np.testing.assert_allclose(evaluated(c, c, s), 0, atol=1e-15)
    other = np.random.default_rng(2).normal(size=c.shape)
    middle = evaluated((c_hat + other) / 2, c, s)
    assert (middle <= (values + evaluated(other, c, s)) / 2 + 1e-9).all()


@families
def test_the_gradient_is_that_of_finite_differences_everywhere(family: str) -> None:
    s = SETS[family]
    c_hat, c = drawn(3)
    c_hat[0] = c[0]  # also at the truth, where SPO+ has its kinks
    with jax.enable_x64(True):
        gradient = np.asarray(jax.grad(lambda p: rspo_plus(p, c, s, L).sum())(jnp.asarray(c_hat)))
    step, numeric = 1e-5, np.zeros_like(c_hat)
    for j in range(D):
        up, down = (evaluated(c_hat + side * step * np.eye(D)[j], c, s) for side in (1, -1))
        numeric[:, j] = (up - down) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=2e-4 if family == "polytope" else 2e-5)
    assert np.abs(numeric).max() > 0.1


@families
def test_without_smoothing_it_becomes_spo_plus(family: str) -> None:
    s = SETS[family]
    c_hat, c = drawn(4, 20)
    with jax.enable_x64(True):
        wanted = np.asarray(dffl.spo_plus(c_hat, c, s))
    errors = [np.abs(evaluated(c_hat, c, s, smoothing) - wanted).max() for smoothing in (1.0, 1e-2, 1e-5)]
    assert errors[0] > 1e-2
    assert errors[2] < 1e-4


def test_each_set_of_a_stack_may_have_its_own_smoothing() -> None:
    two = [dffl.TopK(D, 2), dffl.TopK(D, 3)]
    c_hat, c = (np.stack([one, one]) for one in drawn(5))
    together = evaluated(c_hat, c, dffl.sets.stack(two), np.array([0.3, 2.0]))
    apart = [evaluated(c_hat[0], c[0], s, smoothing) for s, smoothing in zip(two, (0.3, 2.0), strict=True)]
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_the_loss_uses_its_strength_and_the_rows_smoothing() -> None:
    c_hat, c = drawn(6)
    with jax.enable_x64(True):
        rows = Rows(jnp.zeros((6, 2)), jnp.asarray(c), jnp.zeros((6, D)), jnp.asarray(0.4))
        found = RSPOPlus(2.5)(jnp.asarray(c_hat), rows, SETS["topk"], None)
    np.testing.assert_allclose(found, evaluated(c_hat, c, SETS["topk"], 1.0), rtol=1e-12)
    with pytest.raises(ValueError, match=r"rows\.smoothing is missing"):
        RSPOPlus()(jnp.asarray(c_hat), rows._replace(smoothing=None), SETS["topk"], None)
    with pytest.raises(ValueError, match=r"rspo\+: strength must be > 0 and finite, found 0"):
        RSPOPlus(0)
    assert Loss.of("rspo+") == RSPOPlus(1.0) != RSPOPlus(2.0)


# In training.

FEDERATION = dffl.Federation(
    [client("b", dffl.TopK(D, 4), n=10), client("c", dffl.TopK(D, 1), n=12, maximize=True), client("a", SETS["knapsack"], n=11)]
)
SMALL: dict[str, Any] = {"rounds": 2, "local_epochs": 1, "batch_size": 6, "hidden": 6, "dtype": "float64"}


def test_a_clients_smoothing_is_the_size_of_its_costs_over_that_of_its_decisions() -> None:
    run = Run(FEDERATION, Settings(**SMALL))
    engine: Any = run.engine(ALL)
    found = {engine.names[m]: value for site in engine.sites() for m, value in zip(site.members, site.smoothing, strict=True)}
    for one, reach in zip(FEDERATION, (2.0, 1.0, SETS["knapsack"].largest_norm()), strict=True):
        scaled = one.c / np.abs(one.c).mean()
        assert found[one.name] == pytest.approx(np.linalg.norm(scaled, axis=1).mean() / reach, rel=1e-12)
    nothing = client("z", dffl.TopK(D, 0), n=4)
    assert np.isfinite(own_smoothing(nothing, Settings().units(nothing.x, nothing.c)))


def test_training_and_judging_use_each_clients_own_smoothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history's loss, before the model has moved, is that of the whole client; what judges says the same."""
    whole = SMALL | {"rounds": 1, "learning_rate": 1e-15, "batch_size": 64}
    run = Run(FEDERATION, Settings(loss="rspo+", **whole), validation=FEDERATION)
    seen = dffl.fit(FEDERATION, "local", loss="rspo+", **whole).history.set_index("client")["loss"]
    engine: Any = run.engine(ALL)
    for site in engine.sites():
        for member, smoothing in zip(site.members, site.smoothing, strict=True):
            one, unit = FEDERATION[int(member)], engine.units[member]
            with engine.precision():
                network = engine.template.network(jnp.asarray(engine.initial))
                c_hat = np.asarray(jax.vmap(network)(jnp.asarray(unit.features(one.x))))
            wanted = evaluated(one.sense * c_hat, one.sense * one.c / unit.c_scale, one.set, smoothing).mean()
            assert seen[one.name] == pytest.approx(wanted, abs=1e-11)
            models = np.broadcast_to(engine.initial, (len(site), 1, engine.initial.size))
            with engine.precision():
                [judged] = site.judge(models, np.ones((1, 1)), [Loss.of("rspo+")])
                [other] = site.judge(models, np.ones((1, 1)), [Loss.of("rspo+")], smoothing=2 * site.smoothing)
                [double] = site.judge(models, np.ones((1, 1)), [RSPOPlus(2.0)])
            place = site.members.tolist().index(member)
            assert judged[place, 0] == pytest.approx(wanted, abs=1e-11)
            assert other[place, 0] == double[place, 0] != judged[place, 0]


def test_a_rate_may_be_each_clients_own() -> None:
    run = Run(dffl.Federation([client("a", dffl.TopK(D, 2)), client("b", dffl.TopK(D, 2))]), Settings(**SMALL, optimiser="sgd"))
    engine: Any = run.engine(ALL)
    [site] = engine.sites()
    with engine.precision():
        moved = [site.train(engine.initial, 1, rate=rate).vectors - engine.initial for rate in (1.0, 0.0, [1.0, 0.0])]
    np.testing.assert_array_equal(moved[1], 0)
    np.testing.assert_array_equal(moved[2], [moved[0][0], moved[1][1]])
    assert (np.abs(moved[0]).max(axis=1) > 1e-4).all()


def test_a_set_that_cannot_project_is_refused_before_anything_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dffl.FeasibleSet, "families", dict(dffl.FeasibleSet.families))
    monkeypatch.setattr(Site, "train", lambda *_, **__: pytest.fail("it trains"))
    fed = dffl.Federation([client("a", dffl.TopK(2, 1)), client("bad", segment())])
    refusal = (
        r"client 'bad': loss 'rspo\+' needs sets that can project; Segment: it cannot project onto itself; define _project"
    )
    asked: list[tuple[Any, dict[str, Any]]] = [
        ("fedavg", {"loss": "rspo+"}),
        (("finetune", {"judge": "rspo+"}), {}),
        (("interp-spo", {"judge": "rspo+"}), {}),
        (("crossfit", {"judge": "rspo+"}), {}),
        ("fedrspo", {}),
    ]
    for method, settings in asked:
        with pytest.raises(ValueError, match=refusal):
            dffl.fit(fed, method, **SMALL | settings)
