"""The signals: they see different prices, different constraints, and the regret that no shared prediction avoids."""

from dataclasses import replace

import numpy as np
import pytest

import dffl
from dffl.advice.signals import signals
from dffl.advice.words import FAR, FARTHER
from dffl.training import Settings


def fleet(odd: float = 0.0, k: float = 3.0, n: int = 80) -> dffl.Federation:
    """Four alike and one whose prices move otherwise, or who buys another number."""
    rng = np.random.default_rng(0)
    loading, other = rng.normal(size=(2, 3, 8))
    members = []
    for number in range(5):
        x = rng.normal(size=(n, 3))
        mine = (1 - odd) * loading + odd * other if number == 4 else loading
        c = 6 + x @ mine + 0.3 * rng.normal(size=(n, 8))
        members.append(dffl.Client(f"c{number}", x, c, dffl.TopK(8, k if number == 4 else 3.0)))
    return dffl.Federation(members)


def test_alike_clients_are_not_distinguished():
    found = signals(fleet(), Settings())
    assert (found.cost_p_value > 0.01).all()
    assert (found.pooled_cost_regret < 0.02).all()
    assert np.allclose(found.decision_distance, 0)


@pytest.mark.parametrize("blocks", [False, True])
def test_prices_that_move_otherwise_are_seen(blocks):
    found = signals(fleet(odd=1.0), Settings(), blocks)
    assert found.cost_p_value[4] <= 0.01
    assert found.pooled_cost_regret[4] > 5 * found.pooled_cost_regret[:4].max()


def test_a_factor_on_all_prices_is_not_another_price():
    members = list(fleet())
    dear = dffl.Federation([*members[:4], replace(members[4], c=10 * members[4].c)])
    np.testing.assert_allclose(signals(dear, Settings()).cost_p_value[4], signals(fleet(), Settings()).cost_p_value[4])


def test_a_constraint_of_ones_own_shows_and_costs_nothing():
    found = signals(fleet(k=6.0), Settings())
    assert found.decision_distance[4] > 2 * found.decision_distance[:4].max() > 0
    assert found.pooled_cost_regret[4] < 0.02
    assert found.cost_p_value[4] > 0.01


def test_reversed_weights_are_a_constraint_and_no_other_prices():
    members = list(dffl.synthetic.knapsack(clients=6, dim=20, samples=60, eta_obj=0.0, eta_constr=0.0, degree=2, noise=0.3))
    weights = np.asarray(members[0].set.weights)
    turned = dffl.FractionalKnapsack(weights.max() + weights.min() - weights, float(members[0].set.budget))
    plain, odd = (
        signals(dffl.Federation(fleet), Settings()) for fleet in (members, [replace(members[0], set=turned), *members[1:]])
    )
    assert odd.decision_distance[0] > max(FAR, FARTHER * float(np.median(odd.decision_distance)))
    assert odd.cost_p_value[0] == plain.cost_p_value[0] > 0.05


@pytest.mark.parametrize("noise", [1.0, 0.2])
def test_the_test_holds_its_level(noise):
    # Under the null p-values are uniform: of 60 clients in 12 alike fleets few are below 5 %.
    low = []
    for seed in range(12):
        shuffled = []
        rng = np.random.default_rng(seed)
        loading = rng.normal(size=(3, 4))
        for number in range(5):
            x = rng.normal(size=(40, 3))
            shuffled.append(dffl.Client(f"c{number}", x, 5 + x @ loading + noise * rng.normal(size=(40, 4)), dffl.TopK(4, 2)))
        low += (signals(dffl.Federation(shuffled), Settings()).cost_p_value <= 0.05).tolist()
    assert np.mean(low) <= 0.1


def test_weeks_hold_the_level_where_neighbours_are_alike():
    # Swings of some days: exchanging days one by one sees differences that are none, exchanging weeks hardly.
    low = {True: [], False: []}
    for seed in range(10):
        rng, members = np.random.default_rng(seed), []
        loading = rng.normal(size=(2, 3))
        for number in range(3):
            noise = rng.normal(size=(140, 5))
            for day in range(1, 140):
                noise[day] += 0.7 * noise[day - 1]
            x, e = noise[:, :2], noise[:, 2:]
            members.append(dffl.Client(f"c{number}", x, 9 + x @ loading + e, dffl.TopK(3, 1)))
        for blocks, found in low.items():
            found += (signals(dffl.Federation(members), Settings(), blocks).cost_p_value <= 0.05).tolist()
    assert np.mean(low[True]) < 0.6 * np.mean(low[False])


def test_more_noise_is_not_another_price():
    low = []
    for seed in range(12):
        rng, members = np.random.default_rng(seed), []
        loading = rng.normal(size=(3, 4))
        for number in range(4):
            x = rng.normal(size=(60, 3))
            noise = 3.0 if number == 0 else 0.3
            members.append(dffl.Client(f"c{number}", x, 9 + x @ loading + noise * rng.normal(size=(60, 4)), dffl.TopK(4, 2)))
        low.append(signals(dffl.Federation(members), Settings()).cost_p_value[0] <= 0.05)
    assert np.mean(low) <= 0.25


def test_a_maximiser_is_read_with_its_own_sign():
    members = list(fleet(odd=1.0))
    flipped = dffl.Federation([replace(one, maximize=True) for one in members])
    assert (signals(flipped, Settings()).pooled_cost_regret >= 0).all()
    assert signals(flipped, Settings()).pooled_cost_regret[4] > 0.05
