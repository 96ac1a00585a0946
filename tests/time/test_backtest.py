"""`dffl.backtest`: rolling origins, nothing from the future, the shape of its answer, and bad input."""

from __future__ import annotations

import json
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

import dffl
from dffl.items import ItemFactory
from dffl.judging import regrets_at
from dffl.progress import Progress
from dffl.time.backtest import _forecasts
from dffl.time.bases import plain_mean
from dffl.time.mixtures import mixed, mixtures
from dffl.time.network import VectorFactory
from dffl.time.past import Past
from dffl.time.refits import Candidate, Prepared, relaxed_where_slow
from dffl.time.trainings import Ground
from tests.time.made import ITEMS, ROWS, federation, series

QUICK = {"rounds": 1, "local_epochs": 1}


@pytest.fixture(scope="module")
def found() -> dffl.Backtest:
    return dffl.backtest(federation(), ["fedavg"], refit=20, window=40, start="2021-05-04", **QUICK)


def test_the_answer_has_its_shape(found: dffl.Backtest) -> None:
    answer = json.loads(json.dumps(found.as_json()))
    assert list(answer) == ["from", "refits", "rules", "chosen", "ranges", "winner"]
    assert (answer["from"], answer["refits"]) == ("2021-05-04", 2)
    assert list(answer["rules"]) == ["steady", "mean-7", "mean-14", "mean-28", "fedavg", "fedavg+steady"]
    assert all(set(by) == {"a", "b"} for by in [*answer["rules"].values(), answer["chosen"]["by_client"], answer["ranges"]])
    assert [date for date, _ in answer["chosen"]["rules"]["a"]] == ["2021-05-04", "2021-05-24"]
    assert {rule for _, rule in answer["chosen"]["rules"]["a"]} <= set(answer["rules"])


def test_a_naive_rule_loses_what_it_loses(found: dffl.Backtest) -> None:
    one = federation()["a"]
    first = ROWS - 40
    lost = regrets_at(one, plain_mean("mean-7", one.c))[first:]
    assert found.relative("mean-7")["a"] == pytest.approx(lost.sum() / one.z_star_size[first:].sum())
    table = found.table
    mine = table[(table.client == "a") & (table.rule == "mean-7")]
    np.testing.assert_allclose(mine.regret, lost)
    assert str(mine.time.iloc[0].date()) == "2021-05-04"
    assert (table.groupby(["client", "time"]).chosen.sum() == 1).all()
    chosen = table[table.chosen & (table.client == "a")]
    assert found.relative("chosen")["a"] == pytest.approx(chosen.regret.sum() / chosen.best.sum())


def test_the_same_seed_gives_the_same_bits(found: dffl.Backtest) -> None:
    again = dffl.backtest(federation(), ["fedavg"], refit=20, window=40, start=np.datetime64("2021-05-04"), **QUICK)
    assert again.as_json() == found.as_json()


def test_trainings_side_by_side_give_the_same_bits_and_the_first_failure_ends_them(found: dffl.Backtest) -> None:
    several = ["fedavg", ("ridge", {"features": "both", "once": True})]
    given = {"refit": 10, "window": 40, "start": "2021-05-04", **QUICK}
    one, many = (dffl.backtest(federation(), several, jobs=jobs, **given) for jobs in (1, 3))
    assert one.as_json() == many.as_json()
    for rule, lost in one.lost.items():
        for mine, theirs in zip(lost, many.lost[rule], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ValueError, match="jobs must be a whole number >= 1, found 0"):
        dffl.backtest(federation(), several, jobs=0, **given)
    with pytest.raises(ValueError, match="dropout"):
        dffl.backtest(federation(), ["fedavg"], jobs=2, dropout=3.0, **given)


def test_no_decision_sees_its_own_row_or_a_later_one(found: dffl.Backtest) -> None:
    """Costs from the last refit on are changed: all rows before, and the choice made then, stay as they were."""
    changed = []
    for client in federation():
        costs = client.c.copy()
        costs[ROWS - 20 :] = costs[ROWS - 20 :, ::-1] * 3
        changed.append(dffl.Client(client.name, client.x, costs, client.set, times=client.times))
    other = dffl.backtest(dffl.Federation(changed), ["fedavg"], refit=20, window=40, start="2021-05-04", **QUICK)
    assert [choice.rules for choice in other.choices] == [choice.rules for choice in found.choices]
    for rule, lost in found.lost.items():
        for mine, theirs in zip(lost, other.lost[rule], strict=True):
            np.testing.assert_array_equal(mine[:-20], theirs[:-20])
    for mine, theirs in zip(found.spans, other.spans, strict=True):
        np.testing.assert_array_equal(mine.ends[:-19], theirs.ends[:-19])


def test_no_forecast_inside_a_block_sees_its_own_row(found: dffl.Backtest) -> None:
    """Costs from the middle of the last block on are changed: what every rule expects of the rows until then stays."""
    row = ROWS - 10
    expected = []
    for change in (0.0, 40.0):
        clients = []
        for client in federation():
            costs = client.c.copy()
            costs[row:, ::2] += change
            clients.append(dffl.Client(client.name, client.x, costs, client.set, times=client.times))
        changed = dffl.Federation(clients)
        trained, past = [Candidate.of("fedavg")], Past(season=False)
        ground = Ground.of(changed.clients, found.timeline, "steady", past, QUICK)
        expected.append(_forecasts(ground, trained, Progress(False)))
    for rule, before in expected[0].items():
        for mine, theirs in zip(before, expected[1][rule], strict=True):
            one, other = np.concatenate(mine), np.concatenate(theirs)
            np.testing.assert_array_equal(one[:-9], other[:-9])  # the first changed row too
            assert (one[-9:] != other[-9:]).any()


def test_without_training_a_model_is_its_base() -> None:
    clients = federation().clients
    bases = [plain_mean("mean-7", client.c) for client in clients]
    prepared = Prepared(clients, [None, None], bases, Past())
    model = prepared.trained(Candidate.of("fedavg"), [100, 100], {**QUICK, "learning_rate": 1e-12})
    for base, table in zip(bases, prepared.predictions(model, [slice(100, 120)] * 2), strict=True):
        np.testing.assert_allclose(table, base[100:120], rtol=1e-4)


def test_an_item_network_shares_its_numbers_over_the_items() -> None:
    factory = ItemFactory(3)
    network = factory(jax.random.key(0), 4 * 3 + 2, 4)
    x = np.random.default_rng(0).normal(size=14)
    assert not np.asarray(network(x)).any()
    assert factory == ItemFactory(3)
    ones, linear = np.ones_like(network.last), np.array([1.0, -1.0, 2.0])
    alike = np.zeros_like(network.identity)  # without its identity, an item is what its features say
    moved = eqx.tree_at(lambda net: (net.last, net.linear, net.identity), network, (ones, linear, alike))
    order = [2, 0, 3, 1]
    other = np.concatenate([x[:12].reshape(4, 3)[order].ravel(), x[12:]])
    np.testing.assert_allclose(moved(other), np.asarray(moved(x))[order], rtol=1e-5)


def test_a_good_forecast_wins_and_is_named_first() -> None:
    found = dffl.backtest(federation(forecast_error=0.1), [], refit=28, window=28, start="2021-05-01")
    assert found.base == "forecast"
    assert found.verdict().startswith("Your own forecast loses least (")
    assert {rule for choice in found.choices for rule in choice.rules} == {"forecast"}
    assert "Keep using your forecast" in found.verdict()


def test_no_interval_says_that_more_than_the_whole_loss_is_saved() -> None:
    found = dffl.backtest(federation(forecast_error=5), [], refit=5, window=28, start="2021-05-31")
    mean, low, _ = found.difference("chosen", "forecast")
    assert -found.means["forecast"] == low < mean
    assert " to 100.0%)" in found.verdict()


def test_a_forecast_that_is_the_costs_is_not_recommended() -> None:
    """Rounded, and in another currency: `array_equal` would not see it."""
    honest = federation(forecast_error=1.0)
    clients = [replace(client, forecast=np.round(1.1 * client.c, 2), x=client.x[:, :1]) for client in honest]
    said = dffl.backtest(dffl.Federation(clients), [], refit=28, window=28, start="2021-05-01").verdict()
    assert said.endswith("But at 'a', 'b' it equals the costs themselves: is it known before the decision?")
    assert "Keep using" not in said


@pytest.mark.parametrize(("signal", "told"), [(0.0, False), (3.0, True)])
def test_what_may_be_noise_is_called_so(signal: float, told: bool) -> None:
    """On pure noise the choice among rules is better than the base by chance; where rules differ, it is better."""
    claims = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        level = signal * np.sin(np.arange(ITEMS) + np.arange(ROWS)[:, None] / 3)
        costs = 30 + level + rng.normal(size=(ROWS, ITEMS))
        bad = 30 + rng.normal(0, 10 if told else 1, costs.shape)
        one = dffl.Client("a", np.zeros((ROWS, 1)), costs, dffl.TopK(ITEMS, 2), times=np.arange(ROWS), forecast=bad)
        found = dffl.backtest(dffl.Federation([one]), [], refit=20, window=40, start=80, clock="numbers")
        said = found.verdict()
        mean, low, high = found.difference("chosen", "forecast")
        assert mean == pytest.approx(found.means["chosen"] - found.means["forecast"])
        assert low <= mean <= high
        better = "better than your own forecast" in said
        claims.append(better and "do not distinguish from noise" not in said)
        assert ("Keep using your forecast." in said) is not claims[-1]
    assert sum(claims) >= 5 if told else sum(claims) <= 1


def test_a_bad_forecast_is_left() -> None:
    found = dffl.backtest(federation(forecast_error=50), [], refit=28, window=28, start="2021-05-01")
    assert found.winner != "forecast"
    assert "forecast" not in found.choices[-1].rules
    assert found.means["chosen"] < found.means["forecast"]


def test_known_after_delays_training_features_and_choice() -> None:
    past = Past(known_after=5)
    changed = []
    for client in federation():
        costs = client.c.copy()
        costs[ROWS - 25 :] = 1.0  # known five rows later: at the last refit not yet
        changed.append(dffl.Client(client.name, client.x, costs, client.set, times=client.times))
    keywords = {"refit": 20, "window": 40, "start": "2021-05-04", "past": past}
    one, other = (dffl.backtest(fed, [], **keywords) for fed in (federation(), dffl.Federation(changed)))
    assert one.choices[-1].rules == other.choices[-1].rules


def test_clients_with_other_days() -> None:
    uneven = dffl.Federation([series("a", 1), series("b", 2, rows=140, shift=11)])
    found = dffl.backtest(uneven, [], refit=20, window=20)
    assert found.table[found.table.rule == "steady"].groupby("client").size().to_dict() == {"a": 80, "b": 71}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"refit": 500}, "refit must be at most 80, the 80 moments from 2021-03-25 on, found 500"),
        ({"start": "2021-01-20"}, "start must be 2021-03-01 or later, found 2021-01-20: 56 rows of each client come before"),
        ({"start": "2030-01-01"}, "start must be at most 2021-06-12, the last row, found 2030-01-01"),
        ({"start": 7}, "start must be a date such as 2024-09-01, found 7"),
        ({"base": "forecast"}, "base must be steady, as the clients bring no forecast, found 'forecast'"),
        ({"candidates": ["fedavg", "fedavg"]}, "candidates: 'fedavg' is there already; name each rule once"),
        ({"choice": "mine"}, "choose must be one of fleet, shrunk, found 'mine'"),
        ({"clock": "hours"}, "clock must be one of seconds, nanoseconds, numbers, found 'hours'"),
    ],
)
def test_bad_input_is_one_line(keywords: dict, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")) as caught:
        dffl.backtest(federation(), **{"candidates": [], **keywords})
    assert "\n" not in str(caught.value)


def test_bad_orders_are_one_line() -> None:
    one = series("a", 1)
    for times, message in [
        (None, "client 'a': a backtest needs an order of the rows, found none"),
        (np.repeat(one.times[::2], 2), "client 'a': rows 0 and 1 have the same moment in the order, 2021-01-04; a backtest"),
    ]:
        client = dffl.Client("a", one.x, one.c, one.set, times=times)
        with pytest.raises(ValueError, match=message):
            dffl.backtest(dffl.Federation([client]), [])
    with pytest.raises(ValueError, match="client 'a': a backtest needs more than 56 rows, found 40"):
        dffl.backtest(dffl.Federation([series("a", 1, rows=40)]), [])


def test_a_network_of_the_row_sees_the_first_features_of_all_items() -> None:
    factory = VectorFactory(3, 2)
    network = factory(jax.random.key(0), 4 * 3 + 2, 4)
    x = np.random.default_rng(0).normal(size=14)
    assert not np.asarray(network(x)).any()
    moved = eqx.tree_at(lambda net: net.last, network, np.ones((network.inner.shape[1], 4)))
    last = x.copy()
    last[2:12:3] += 1  # the third feature of each item is not used
    np.testing.assert_allclose(moved(last), moved(x))
    for place in (0, 1, 13):
        other = x.copy()
        other[place] += 1
        assert not np.allclose(moved(other), moved(x))


def test_mixtures() -> None:
    assert mixtures(["a"], "steady") == {"a": ("a",), "a+steady": ("a", "steady")}
    assert list(mixtures(["a", "b"], "steady")) == ["a", "b", "a+steady", "b+steady", "a+b", "mix"]
    tables = {"a": [np.ones((1, 2))], "b": [np.full((1, 2), 3.0)], "steady": [np.full((1, 2), 8.0)]}
    found = {rule: mixed(parts, tables)[0][0, 0] for rule, parts in mixtures(["a", "b"], "steady").items()}
    assert found == {"a": 1, "b": 3, "a+steady": 4.5, "b+steady": 5.5, "a+b": 2, "mix": 4}
    assert mixtures([], "steady") == mixtures([], "forecast") == {}


def test_models_are_trained_without_integer_conditions_where_a_solver_decides() -> None:
    whole = dffl.MixedInteger([[2.0] * ITEMS], [5.0], lower=np.zeros(ITEMS), upper=np.ones(ITEMS))
    slow = [client.with_set(whole) for client in federation()]
    assert relaxed_where_slow(slow, {"rounds": 1}) == {"relax": True, "rounds": 1}
    assert relaxed_where_slow(slow, {"relax": False}) == {"relax": False}
    assert relaxed_where_slow(federation().clients, {}) == {}


def test_a_forecast_has_lighter_corrections_too() -> None:
    tables = {"a": [np.ones((1, 2))], "b": [np.full((1, 2), 3.0)], "forecast": [np.full((1, 2), 10.0)]}
    both, one = mixtures(["a", "b"], "forecast"), mixtures(["a"], "forecast")
    assert list(both) == ["a", "b", "a+forecast", "b+forecast", "a+b", "mix", "mix-25", "mix-50"]
    assert {rule: mixed(both[rule], tables)[0][0, 0] for rule in ("mix-25", "mix-50")} == {"mix-25": 8.0, "mix-50": 6.0}
    assert list(one) == ["a", "a+forecast", "mix-25"]
    assert mixed(one["mix-25"], tables)[0][0, 0] == 7.75


def test_an_interval_is_in_the_unit_of_the_means_where_a_client_can_lose_nothing() -> None:
    """The second client's costs are 0 in the test: it counts as a regret of 0 in the means, and so in their difference."""
    one, other = federation().clients
    costs = other.c.copy()
    costs[130:] = 0.0
    idle = dffl.Client("b", other.x, costs, other.set, times=other.times)
    found = dffl.backtest(dffl.Federation([one, idle]), ["ridge"], start="2021-05-14", refit=15, **QUICK)
    more, low, high = found.difference("mean-7", "steady")
    assert more == pytest.approx(found.means["mean-7"] - found.means["steady"])
    assert low < more < high


def test_a_client_whose_best_objective_is_zero_is_named() -> None:
    """Two of its items, others on each day, cost nothing, so what it loses is no share of anything."""
    one, other = federation().clients
    costs = np.where(np.random.default_rng(0).random(other.c.shape).argsort(axis=1) < 2, 0.0, other.c)
    free = dffl.Client("b", other.x, costs, other.set, times=other.times)
    found = dffl.backtest(dffl.Federation([one, free]), ["ridge"], start="2021-05-14", refit=15, **QUICK)
    assert found.verdict().endswith(
        "Left out of these means: b; their best possible objective is zero, so their relative regret is infinite."
    )
