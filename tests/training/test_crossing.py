"""Rows that another client has on another side are counted, in each of the ways in which rows can be equal."""

from collections.abc import Callable

import numpy as np
import pytest

import dffl
from dffl.splitting import Splitting
from dffl.training.crossing import (
    FEWEST_MATCHED,
    Crossing,
    SidedSamples,
    crossing,
    crossing_of,
    fix,
    sides_of,
    varying_features,
)
from dffl.training.settings import Settings
from dffl.training.sharing import seen_in_training, settled, sharing
from dffl.training.telling import telling_costs

RNG = np.random.default_rng(8)
N, D = 100, 5
X = RNG.normal(size=(N, 3))
C = 10 + X @ RNG.normal(size=(3, D)) + RNG.normal(size=(N, D))
ORDERS = [np.random.default_rng(seed).permutation(N) for seed in (1, 2)]


def pair(change: Callable[[np.ndarray], np.ndarray], own_x: bool = False, **more: object) -> dffl.Federation:
    """Two clients with the rows of one table, each in its own order; the costs of the second are changed."""
    x = RNG.normal(size=(N, 3)) if own_x else X
    first, second = ORDERS
    kind = dffl.TopK(D, 2)
    return dffl.Federation(
        [dffl.Client("a", X[first], C[first], kind, **more), dffl.Client("b", x[second], change(C[second]), kind, **more)]
    )


def expected() -> list[int]:
    """Counted row by row: how many rows of each client the other one has in another fold."""
    sides = sides_of(pair(lambda c: c).clients, Splitting(0))
    fold = [dict(zip(own.tolist(), side.tolist(), strict=True)) for own, side in zip(ORDERS, sides, strict=True)]
    return [sum(fold[0][row] != fold[1][row] for row in range(N))] * 2


@pytest.mark.parametrize(
    ("change", "own_x", "way"),
    [
        (lambda c: 1.1 * c, False, "rows"),
        (lambda c: c, True, "costs"),
        (lambda c: c + 3.5, False, "features"),
        (lambda c: c + np.linspace(1, 9, len(c))[:, None], False, "features"),
        (lambda c: c * np.linspace(0.9, 1.1, D), False, "features"),
        (lambda c: (1.083 * c).round(1), False, "features"),
        (lambda c: -c * np.linspace(0.9, 1.1, D), False, "features"),
        (lambda c: c[:, ::-1], False, "features"),
        (lambda c: c + 3.5, True, "fees"),
    ],
    ids=["currency", "zone", "fee", "fee of each day", "factors", "cents", "sign", "permuted", "fee and own weather"],
)
def test_copies_in_two_orders_are_counted_as_a_loop_over_rows_counts_them(change, own_x, way):
    found = crossing_of(pair(change, own_x), Splitting(0))
    assert [one.rows for one in found] == expected()
    assert [(one.client, one.of, one.others, one.way) for one in found] == [("a", N, ("b",), way), ("b", N, ("a",), way)]
    assert all(one.many for one in found)


def test_equal_rows_on_one_side_do_not_cross():
    assert crossing_of(pair(lambda c: c), Splitting(0, "row")) == []
    assert crossing_of(pair(lambda c: c, own_x=True), Splitting(0, "cost")) == []
    assert crossing_of(pair(lambda c: c), Splitting(0)) != []


def test_a_calendar_is_no_copy_and_a_few_values_of_features_accuse_nobody():
    """Equal features say nothing where costs are independent, or where rows have few different features."""
    calendar = np.column_stack([np.sin(np.arange(N)), np.cos(np.arange(N)), np.full(N, 3.0)])
    profile = 100 * np.arange(D)  # a dear hour is dear at all sites
    for x in (calendar, np.eye(7)[np.arange(N) % 7]):
        sites = [dffl.Client(name, x, profile + RNG.normal(size=(N, D)), dffl.TopK(D, 2)) for name in "abc"]
        assert crossing_of(dffl.Federation(sites), Splitting(0)) == []
    month = np.eye(12)[np.arange(N) % 12]
    related = [dffl.Client(name, month, c, dffl.TopK(D, 2)) for name, c in (("a", C), ("b", C * np.linspace(0.9, 1.1, D)))]
    assert crossing_of(dffl.Federation(related), Splitting(0)) == []


def test_costs_of_a_few_digits_are_not_equal_up_to_a_fee():
    rng = np.random.default_rng(4)
    costs = [rng.integers(0, 8, size=(N, 4)).astype(float) for _ in range(4)]
    sites = [dffl.Client(str(place), rng.normal(size=(N, 3)), c, dffl.TopK(4, 2)) for place, c in enumerate(costs)]
    parts = [SidedSamples(site, np.zeros(N), np.ones(3, bool)) for site in sites]
    assert min(len(np.intersect1d(parts[3].fees, other.fees)) for other in parts[:3]) >= FEWEST_MATCHED  # by chance
    assert [one for one in crossing_of(dffl.Federation(sites), Splitting(0)) if one.way == "fees"] == []


def test_columns_that_are_constant_at_each_client_are_left_out():
    """The place of a site differs between sites and says nothing about rows; a column that moves somewhere counts."""
    federation = pair(lambda c: c + 3.5)
    placed = [
        dffl.Client(one.name, np.column_stack([one.x, np.full(N, place)]), one.c, one.set)
        for place, one in enumerate(federation)
    ]
    assert [one.way for one in crossing(placed, sides_of(placed, Splitting(0)))] == ["features"] * 2
    moved = [placed[0], dffl.Client("b", np.column_stack([federation[1].x, np.arange(N)]), federation[1].c, federation[1].set)]
    assert [one.way for one in crossing(moved, sides_of(moved, Splitting(0)))] == ["fees"] * 2


def test_a_third_client_is_not_accused_and_few_rows_are_not_many():
    other = dffl.Client("c", RNG.normal(size=(N, 3)), 10 + RNG.normal(size=(N, D)), dffl.TopK(D, 2))
    found = crossing([*pair(lambda c: c + 3.5), other], sides_of([*pair(lambda c: c), other], Splitting(0)))
    assert [one.client for one in found] == ["a", "b"]
    some = dffl.Client("s", np.r_[X[:4], RNG.normal(size=(N - 4, 3))], np.r_[C[:4], RNG.normal(size=(N - 4, D))], other.set)
    few = crossing([dffl.Client("a", X, C, other.set), some], [np.zeros(N), np.ones(N)])
    assert few == [Crossing("a", 4, N, ("s",), "rows"), Crossing("s", 4, N, ("a",), "rows")]
    assert not few[0].many


def test_test_rows_that_train_elsewhere_with_a_fee_are_seen():
    a, b = pair(lambda c: c + 3.5)
    train, test = (dffl.Federation([one.rows(rows) for one in (a, b)]) for rows in (slice(0, 80), slice(80, N)))
    truth = [len(set(mine[80:]) & set(theirs[:80])) for mine, theirs in (ORDERS, ORDERS[::-1])]
    assert [(one.rows, one.of, one.way) for one in seen_in_training(test, train)] == [(rows, 20, "features") for rows in truth]


@pytest.mark.parametrize(
    ("federation", "settings", "words"),
    [
        (
            pair(lambda c: c, keys=np.arange(N)),
            {},
            "are equal train 'b' .* give rows of one moment the same key",
        ),
        (
            pair(lambda c: c, times=np.arange(N)),
            {"split": "time"},
            "are equal train 'b' .* give rows of one moment the same time",
        ),
        (pair(lambda c: c, own_x=True), {"split": "row"}, r'equal costs train \'b\' .* write split = "cost", or give rows'),
        (pair(lambda c: c + 3.5), {}, "equal features and related costs train 'b' .* give rows of one moment the same key"),
        (pair(lambda c: c), {"split": "draw"}, r'are equal train \'b\' .* write split = "row"'),
    ],
    ids=["keys", "times", "zone", "fee", "draw"],
)
def test_a_rule_that_misses_copies_is_warned_of_once(federation, settings, words, recwarn):
    with pytest.warns(UserWarning, match=r"^\d+ of the 100 rows of 'a' are held out while rows .*" + words):
        settled(federation, Settings(**settings))
    recwarn.clear()
    settled(federation, Settings(**settings))
    assert not recwarn.list


def test_a_client_that_cannot_be_divided_accuses_nobody():
    """Two rows that fall into one fold are refused where folds are needed, and are on no side before."""
    whole = dffl.Client("whole", X, C, dffl.TopK(D, 2))
    fold = sides_of([whole], Splitting(0, "row"))[0]
    two = np.flatnonzero(fold == 3)[:2]
    small = dffl.Client("small", X[two], C[two], dffl.TopK(D, 2))
    assert crossing_of(dffl.Federation([whole, small]), Splitting(0, "row")) == []


def test_each_way_and_rule_has_a_remedy():
    assert 'split = "row"' in fix("rows", "draw")
    assert 'split = "cost"' not in fix("fees", "row")


def zone(kind: str) -> dffl.Federation:
    """Three sites of one price zone, with the zone's weather and their own; prices are noise."""
    rng = np.random.default_rng(1)
    weather, prices = rng.normal(size=(60, 3)), rng.uniform(10, 100, (60, D))
    sites = []
    for site in range(3):
        x, c = np.column_stack([weather, rng.normal(size=60)]), prices
        if kind == "each row three times":
            x, c = np.tile(x, (3, 1)), np.tile(c, (3, 1))
        elif kind == "some rows twice":
            x, c = np.vstack([x, x[:13]]), np.vstack([c, c[:13]])
        elif kind == "a fee, each row three times":
            x, c = np.tile(rng.normal(size=(60, 4)), (3, 1)), np.tile(c + 3.7 * site, (3, 1))
        elif kind == "a flat tariff beside it":
            x, c = np.vstack([x, rng.normal(size=(90, 4))]), np.vstack([c, np.full((90, D), 50.0)])
        elif kind == "three orders of a day":
            x = np.column_stack([np.tile(weather, (3, 1)), rng.normal(size=180)])
            c = np.tile(c, (3, 1))
        sites.append(dffl.Client(f"s{site}", x, c, dffl.TopK(D, 2)))
    return dffl.Federation(sites)


@pytest.mark.parametrize(
    ("kind", "way", "rule"),
    [
        ("each row three times", "costs", "cost"),
        ("some rows twice", "costs", "cost"),
        ("a fee, each row three times", "fees", "draw"),
        ("a flat tariff beside it", "costs", "cost"),
        ("three orders of a day", "costs", "cost"),
    ],
)
def test_rows_that_a_client_repeats_hide_no_copies(kind, way, rule):
    federation = zone(kind)
    found = crossing_of(federation, Splitting(0, "row"))
    assert [one.way for one in found] == [way] * 3
    assert all(one.many for one in found)
    assert sharing(federation.clients).rule == rule


def test_rows_of_a_moment_are_held_out_together_also_at_a_single_client():
    alone = dffl.Federation([zone("three orders of a day")[0]])
    with pytest.warns(UserWarning, match="client 's0' has several rows of a moment, with equal costs; rows of equal costs are"):
        assert settled(alone, Settings()).split == "cost"
    both = dffl.Federation([alone[0], dffl.Client("b", RNG.normal(size=(40, 4)), RNG.normal(size=(40, D)), dffl.TopK(D, 2))])
    (found,) = crossing_of(both, Splitting(0, "row"))
    assert (found.client, found.others, found.way) == ("s0", ("s0",), "costs")
    assert not crossing_of(both, Splitting(0, "cost"))


def test_a_few_tariffs_are_no_moments_and_chance_accuses_nobody():
    rng = np.random.default_rng(2)

    def client(costs: np.ndarray, *more: np.ndarray) -> dffl.Client:
        x = np.column_stack([*more, rng.normal(size=(len(costs), 2))])
        return dffl.Client("a", x, costs, dffl.Box(np.zeros(costs.shape[1]), np.ones(costs.shape[1])))

    for number, rows in ((1, 60), (12, 120), (12, 360), (24, 100), (24, 240)):  # flat, by month, by hour
        which = np.arange(rows) % number
        tariffs = client(rng.uniform(1, 9, (number, D)).round(2)[which], which)
        assert tells(tariffs) == [False]
        assert settled(dffl.Federation([tariffs]), Settings()).split == "draw"
    for most, d in ((100, 1), (1000, 1), (10, 4), (3, 8), (100, 2), (3, D)):
        assert tells(client(rng.integers(1, most + 1, (150, d)).astype(float))) == [False], (most, d)


def tells(*clients: dffl.Client) -> list[bool]:
    """Of which clients costs identify the rows."""
    return [keys is not None for keys in telling_costs(clients, varying_features(clients))]


def sites_with(prices: list[np.ndarray], rng: np.random.Generator, *common: np.ndarray) -> list[dffl.Client]:
    """Sites with these prices, the common features and one of their own."""
    d = prices[0].shape[1]
    made = [np.column_stack([*common, rng.normal(size=len(c))]) for c in prices]
    return [dffl.Client(f"s{i}", x, c, dffl.TopK(d, 1)) for i, (x, c) in enumerate(zip(made, prices, strict=True))]


COARSE = {
    "two decimals, one column": lambda rng, n: rng.uniform(1, 20, (n, 1)).round(2),
    "whole cents, two columns": lambda rng, n: rng.integers(1, 21, (n, 2)).astype(float),
    "whole cents, three columns": lambda rng, n: rng.integers(1, 21, (n, 3)).astype(float),
    "five values, six columns": lambda rng, n: rng.integers(1, 6, (n, 6)).astype(float),
    "three columns that move together": lambda rng, n: (
        10 + 3 * (rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 3)))
    ).round(),
}


@pytest.mark.parametrize("kind", COARSE)
@pytest.mark.parametrize("n", [40, 60, 150])
def test_coarse_costs_are_recognised_where_sites_share_them_and_accuse_nobody_else(kind, n):
    """As many as chance explains are no copies; all of them are. Two of 150 honest federations may be accused."""
    accused = 0
    for seed in range(50):
        rng = np.random.default_rng([seed, n])
        calendar = np.arange(float(n))
        accused += any(tells(*sites_with([COARSE[kind](rng, n) for _ in range(3)], rng, calendar)))
        weather, prices = rng.normal(size=(n, 3)), COARSE[kind](rng, n)
        shared = sites_with([prices] * 3, rng, weather)
        assert tells(*shared) == [True] * 3, seed
        assert sharing(shared).rule == "cost"
    assert accused <= 2


def test_coarse_costs_of_an_honest_client_are_not_held_against_it():
    """Of two sites that share costs and a third one, the third is not accused."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        prices = COARSE["whole cents, three columns"](rng, 80)
        sites = sites_with([prices, prices, COARSE["whole cents, three columns"](rng, 80)], rng)
        assert tells(*sites) == [True, True, False]


def test_one_site_of_few_rows_is_compared_with_a_large_one():
    rng = np.random.default_rng(3)
    prices = rng.integers(1, 101, (1000, 3)).astype(float)
    large, small = sites_with([prices, prices[rng.permutation(1000)[:20]]], rng)
    assert tells(large, small) == [True, True]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("orders", [(1, 11, 11), (12, 12, 12), (1, 3, 3), (1, 12, 1)])
def test_many_orders_of_a_day_hide_nothing(orders, coarse):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        prices = rng.normal(40, 8, (40, 6))
        weather = rng.integers(0, 15, (40, 3)) if coarse else rng.normal(size=(40, 3))
        sites = []
        for place, number in enumerate(orders):
            day = np.repeat(np.arange(40), number)
            x = np.column_stack([weather[day], rng.normal(size=len(day))])
            sites.append(dffl.Client(f"s{place}", x, prices[day], dffl.TopK(6, 2)))
        federation = dffl.Federation(sites)
        assert sharing(federation.clients).rule == "cost"
        assert [one.many for one in crossing_of(federation, Splitting(0, "row"))] == [True] * 3


def test_a_client_that_costs_cannot_divide_keeps_the_rule_and_is_warned_of():
    moments = zone("three orders of a day")[0]
    flat = dffl.Client("flat", RNG.normal(size=(60, 4)), np.tile(C[0], (60, 1)), dffl.TopK(D, 2))
    with pytest.warns(UserWarning, match="of the 180 rows of 's0' are held out while rows of equal costs train 's0'"):
        assert settled(dffl.Federation([moments, flat]), Settings()).split == "draw"
    assert settled(dffl.Federation([moments]), Settings(validation_blocks=True)).split == "draw", "the user asked for blocks"
