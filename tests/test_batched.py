"""Many clients at once: few programs whatever their sizes, and to the last bit the numbers of each by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.batched import predict_each, regret_each, solve_each
from dffl.comparing import tabulate
from dffl.federation import optima
from dffl.judging import regrets_at
from dffl.predictor import ForecastPredictor, Normaliser
from dffl.sets import _highs
from tests.federations import client, feasible_sets, mixed

SIZES = range(50, 90)


def network(client: dffl.Client, seed: int = 0) -> dffl.NetworkPredictor:
    made = dffl.Network(jax.random.key(seed), client.x.shape[1], client.c.shape[1])
    return dffl.NetworkPredictor(made, Normaliser.fit(client.x, client.c), np.asarray(20.0))


def with_networks(federation: dffl.Federation) -> dffl.Fit:
    """A fit whose clients have networks that nobody trained."""
    fit = dffl.fit(federation, "mean-cost")
    members = {m.name: replace(m, predictor=network(federation[m.name], k)) for k, m in enumerate(fit.members.values())}
    return replace(fit, members=members)


def programs(caplog: pytest.LogCaptureFixture, work: Callable[[], object]) -> int:
    """How many programs JAX compiles for some work."""
    caplog.clear()
    with jax.log_compiles():
        work()
    return sum(record.getMessage().startswith("Compiling ") for record in caplog.records)


def test_forty_sizes_take_hardly_more_programs_than_one(caplog: pytest.LogCaptureFixture) -> None:
    found = {}
    for dim, sizes in ((49, [50] * 40), (51, list(SIZES))):  # of two dimensions, so that neither finds the other's programs
        fit = with_networks(dffl.synthetic.knapsack(clients=40, dim=dim, samples=20))
        test = dffl.synthetic.knapsack(split="test", clients=40, dim=dim, samples=sizes, noise=0.5)
        solving = programs(caplog, lambda test=test: optima(test.clients))
        found[dim] = solving, programs(caplog, lambda test=test, fit=fit: fit.evaluate(test))
    assert 1 <= found[49][0] <= 2  # the counter counts
    assert found[51][0] <= 3
    assert found[51][1] <= 8


def test_predictions_and_decisions_of_any_number_of_rows_share_programs(caplog: pytest.LogCaptureFixture) -> None:
    one = client("a", dffl.TopK(7, 2), n=30)
    fit, x = with_networks(dffl.Federation([one])), np.random.default_rng(0).normal(size=(500, 3))
    assert 4 <= programs(caplog, lambda: [fit.decide("a", x[:n]) for n in range(1, 500, 7)]) <= 2 * 11
    with jax.enable_x64(True):
        np.testing.assert_array_equal(fit.decide("a", x), one.set.solve(fit.predict("a", x)))


def test_clients_of_one_kind_are_judged_in_few_dispatches(monkeypatch: pytest.MonkeyPatch) -> None:
    test = dffl.synthetic.knapsack(split="test", clients=12, samples=200)
    fit, calls = with_networks(test), []
    for name in ("_mapped", "_regret"):
        whole = getattr(__import__("dffl.batched").batched, name)
        monkeypatch.setattr(f"dffl.batched.{name}", lambda *a, f=whole, n=name: (calls.append(n), f(*a))[1])
    tabulate({"local": fit, "other": replace(fit, method="other")}, test)
    assert calls.count("_mapped") == calls.count("_regret") <= 2 * 2


@pytest.mark.parametrize("family", feasible_sets())
def test_every_family_is_solved_and_judged_as_each_client_by_itself(family: str) -> None:
    # Sizes on both sides of where XLA adds up in another order.
    clients = [client(f"c{n}", feasible_sets()[family], n, n % 2 == 0) for n in (16, 40, 104, 824, 1000)]
    if family == "polytope":
        clients = clients[:3]
    optima(clients)
    guesses = [1.3 * one.c - 1 for one in clients]
    signed = [(one.sense * g, one.sense * one.c) for one, g in zip(clients, guesses, strict=True)]
    lost = regret_each([one.set for one in clients], *zip(*signed, strict=True), [one.w_star for one in clients])
    for one, guess, mine in zip(clients, guesses, lost, strict=True):
        with jax.enable_x64(True):
            w = np.asarray(one.set.solve(one.sense * one.c))
            alone = np.asarray(jax.jit(dffl.regret)(guess, one.c, one.set, one.maximize, w))
        np.testing.assert_array_equal(one.w_star, w)
        np.testing.assert_array_equal(mine, alone)
        np.testing.assert_array_equal(regrets_at(one, guess), mine)


@pytest.mark.parametrize("s", [dffl.EntropySimplex(50, 1.7), dffl.Ball(np.ones(50), 2.0), feasible_sets(50)["ellipsoid"]])
def test_who_else_is_there_changes_no_bit(s: dffl.FeasibleSet) -> None:
    rng = np.random.default_rng(0)
    costs = [rng.normal(size=(n, 50)) for n in (1, 7, 60, 81, 82, 300, 2000)]
    together = solve_each([s] * len(costs), costs)
    crowd = solve_each([s] * (3 * len(costs)), [*costs, *(c[::-1] for c in costs), *costs])
    for c, one, same in zip(costs, together, crowd, strict=False):
        np.testing.assert_array_equal(solve_each([s], [c])[0], one)
        np.testing.assert_array_equal(same, one)


def test_predictions_are_those_of_each_predictor_by_itself() -> None:
    clients = [client(f"c{n}", dffl.TopK(5, 2), n) for n in (2, 30, 900)]
    pairs = [(network(one), one.x) for one in clients]
    pairs += [(dffl.ConstantPredictor(np.arange(5.0)), one.x) for one in clients]
    pairs += [(dffl.MixedPredictor(network(one), network(one, 9), np.asarray(0.3)), one.x) for one in clients]
    pairs += [(ForecastPredictor(5), np.random.default_rng(n).normal(size=(n, 8))) for n in (3, 50)]
    for (predictor, x), found in zip(pairs, predict_each(*zip(*pairs, strict=True), 5), strict=True):
        with jax.enable_x64(True):
            arrays = jax.tree.map(lambda leaf: leaf if isinstance(leaf, int) else jnp.asarray(leaf), predictor)
            np.testing.assert_array_equal(found, eqx.filter_jit(lambda p, x: p(x))(arrays, x))


def test_a_solver_on_the_host_is_asked_once_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = _highs.WarmLP.run
    s = feasible_sets()["polytope"]
    monkeypatch.setattr(_highs.WarmLP, "run", lambda self, cost: (asked.append(1), run(self, cost))[1])
    clients = [client(f"c{n}", s, n) for n in (1, 9, 30)]
    optima(clients)
    assert len(asked) == 40
    asked.clear()
    lost = [regrets_at(one, -one.c) for one in clients]
    assert len(asked) == 40
    assert all((values >= 0).all() for values in lost)


def test_parts_bound_the_memory_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    test = mixed(n=20)
    fit = with_networks(mixed())
    whole = fit.evaluate(test)
    monkeypatch.setattr("dffl.batched.MOST", 200)
    np.testing.assert_array_equal(fit.evaluate(test)["regret"], whole["regret"])
