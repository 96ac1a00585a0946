"""Updates that change far more than those of the others are left out; honest ones never are."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.training import change_limit
from dffl.training.aggregators import Aggregator
from dffl.training.change_limit import MOST_STEPS, REACH, Change, _medians_of_others, left_out
from dffl.training.settings import Settings
from tests.federations import client, feasible_sets

SIZE = 100
MORE = ("scaffold", "clustered", "apfl", "fedrep", "ditto", "fedrspo", "crossfit")
STILL = {"learning_rate": 1e-12}
"""The optimiser reaches nothing: only the others' changes count."""


def changes(*lengths: float, samples: tuple[int, ...] = ()) -> list[Change]:
    counts = samples or (64,) * len(lengths)
    every = zip(lengths, counts, strict=True)
    return [Change(f"client-{place}", count, length, SIZE) for place, (length, count) in enumerate(every)]


def outside(*lengths: float, samples: tuple[int, ...] = (), rate: float = 1.0, **settings: Any) -> list[str]:
    return list(left_out(Settings(**settings), rate, changes(*lengths, samples=samples)))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_the_medians_of_the_others_are_those_of_numpy(count: int) -> None:
    for seed in range(5):
        values = np.random.default_rng(seed).integers(0, 4, count).astype(float)  # with ties
        plain = [np.median(np.delete(values, place)) for place in range(count)]
        np.testing.assert_array_equal(_medians_of_others(values), plain)


def test_an_update_above_the_limit_is_left_out_and_one_at_the_limit_is_not() -> None:
    assert outside(1, 1, 1, 1, 10, **STILL) == []
    assert outside(1, 1, 1, 1, 10.001, **STILL) == ["client-4"]
    assert outside(1, 1, 1, 1, 10.001, change_limit=11, **STILL) == []
    [why] = left_out(Settings(**STILL), 1.0, changes(1, 1, 1, 1, 1000)).values()
    assert why == "its vector changed by 1e+03, the median of the others is 1, at most 10 is allowed"


def test_it_needs_four_updates_and_can_be_switched_off() -> None:
    assert outside(1, 1, 1000, **STILL) == []
    assert outside(1, 1, 1, 1000, **STILL) == ["client-3"]
    assert outside(1, 1, 1, 1000, change_limit=0, **STILL) == []
    assert outside(1, 1, 1, 1000, privacy={"level": "client", "clip": 1.0, "noise": 1.0}, **STILL) == []


def test_missing_clients_are_replaced_by_their_last_changes_where_too_few_answer() -> None:
    still = Settings(**STILL)
    missing = [Change("gone", 64, 2.0, SIZE), Change("gone too", 64, 2.0, SIZE)]
    assert list(left_out(still, 1.0, changes(1, 1, 1000), missing[:1])) == ["client-2"]
    assert list(left_out(still, 1.0, changes(1, 1000), missing)) == ["client-1"]
    assert left_out(still, 1.0, changes(1, 1000), missing[:1]) == {}
    assert left_out(still, 1.0, changes(1, 1, 9.9), [Change("gone", 64, 1000.0, SIZE)]) == {}  # it is not judged itself
    # Where enough answer, those who are missing do not count.
    assert list(left_out(still, 1.0, changes(1, 1, 1, 15), [Change(f"gone-{k}", 64, 9.0, SIZE) for k in range(9)])) == [
        "client-3"
    ]


def test_two_liars_of_five_are_left_out_and_do_not_take_honest_clients_with_them() -> None:
    assert outside(1, 2, 3, 1000, 2000, **STILL) == ["client-3", "client-4"]


def test_a_client_among_others_that_do_not_change_may_go_as_far_as_its_optimiser() -> None:
    """Sites whose decisions are right already have gradients of zero: who still learns is not left out."""
    steps = Settings().local_epochs
    reach = REACH * Settings().learning_rate * steps * math.sqrt(SIZE)
    assert outside(0, 0, 0, 0.99 * reach) == []
    assert outside(0, 0, 0, 1.01 * reach) == ["client-3"]
    assert outside(0, 0, 0, 0.99 * reach, rate=0.5) == ["client-3"]  # a schedule makes steps smaller
    plain = REACH * 0.1 * steps * Settings().gradient_clip
    for momentum, factor in ((0.0, 1), (0.9, 10)):
        sgd = {"optimiser": {"name": "sgd", "momentum": momentum}, "learning_rate": 0.1}
        assert outside(0, 0, 0, 0.99 * factor * plain, **sgd) == []
        assert outside(0, 0, 0, 1.01 * factor * plain, **sgd) == ["client-3"]


def test_more_steps_raise_the_limit_up_to_ten_times() -> None:
    assert outside(1, 1, 1, 79, samples=(64, 64, 64, 512), **STILL) == []
    assert outside(1, 1, 1, 81, samples=(64, 64, 64, 512), **STILL) == ["client-3"]
    claimed = (64, 64, 64, 6400)
    assert outside(1, 1, 1, 10 * MOST_STEPS - 1, samples=claimed, **STILL) == []
    assert outside(1, 1, 1, 10 * MOST_STEPS + 1, samples=claimed, **STILL) == ["client-3"]
    assert outside(8, 8, 8, 1, samples=(512, 512, 512, 8), **STILL) == []


def test_numbers_that_are_not_finite_are_left_to_the_check_for_divergence() -> None:
    assert outside(1, 1, 1, np.nan, **STILL) == []
    assert outside(1, np.nan, np.nan, 1000, **STILL) == []


def test_which_aggregators_have_a_limit_of_their_own() -> None:
    own = [name for name, kind in Aggregator.known.items() if kind.__module__.startswith("dffl.training")]
    without = {name for name in own if not Aggregator.of(name).limits_clients}
    assert without == {"mean", "momentum", "server-adam"}
    assert Aggregator.of({"name": "momentum", "inner": Aggregator.of("median")}).limits_clients


@pytest.mark.parametrize("wrong", [-1, 0.5, math.nan, math.inf, True, False, "ten"])
def test_a_wrong_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="change_limit must be 0, or >= 1 and finite"):
        Settings(change_limit=wrong)


@pytest.fixture(scope="module")
def unequal() -> dffl.Federation:
    """One client has eight times the samples of the others, as in the demo, in a small form."""
    own = feasible_sets()["topk"]
    return dffl.Federation([client(name, own, n=64 if name == "west" else 8) for name in ("east", "north", "south", "west")])


QUICK: dict[str, Any] = {"rounds": 3, "local_epochs": 2, "batch_size": 8, "hidden": 4, "progress": False}


@pytest.mark.parametrize("method", ["fedavg", *(pytest.param(one, marks=pytest.mark.slow) for one in MORE)])
def test_honest_clients_of_unequal_sizes_train_to_the_same_bits_as_without_it(unequal: dffl.Federation, method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, free = (dffl.fit(unequal, method, change_limit=limit, **QUICK) for limit in (10.0, 0))
    assert "unused_updates" not in found.about
    for one in unequal:
        np.testing.assert_array_equal(found.predict(one, one.x), free.predict(one, one.x))


def test_a_fit_names_the_client_that_it_leaves_out(unequal: dffl.Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_limit, "REACH", 0.0)
    monkeypatch.setattr(change_limit, "MOST_STEPS", 1.0)
    with pytest.warns(UserWarning, match="its update is left out") as told:
        found = dffl.fit(unequal, "fedavg", change_limit=3.0, **QUICK)
    assert found.about["unused_updates"]["west"] >= 1
    assert str(told[0].message).startswith("client 'west': training (fedavg/all), round 0: its update is left out: its vector")
    assert [str(one.message).split("'")[1] for one in told].count("west") == 1  # named once, not in every round
