"""The choice among rules, and adaptive ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dffl.time.choice import choose, choose_rules, day_scaled, margins
from dffl.time.ranges import AdaptiveRange, adaptive_ranges, inside


def scaled(*rules: list[float], rows: int = 90) -> np.ndarray:
    """Each rule's constant loss at each client."""
    return np.repeat(np.array(rules)[:, :, None], rows, axis=2)


def test_fleet_and_shrunk_choices() -> None:
    # Rule 0 is better at a and b, rule 1 at c.
    lost = scaled([1.0, 1.0, 3.0], [2.0, 2.0, 2.0])
    assert choose(lost, "fleet").tolist() == [0, 0, 0]
    assert choose(lost, "shrunk").tolist() == [0, 0, 1]
    assert choose(lost[:, :, :3], "shrunk").tolist() == [0, 0, 0]  # three rows say little
    assert choose(lost, "shrunk", strength=1e9).tolist() == [0, 0, 0]


def test_literal_shrinkage() -> None:
    # Scores of rule 0: 2/3, 6/5; of rule 1: 4/3, 4/5. Fleet: 14/15, 16/15. Client b: (n 6/5 + 60 14/15) / (n + 60) against
    # (n 4/5 + 60 16/15) / (n + 60): equal at n = 20.
    lost = scaled([1.0, 3.0], [2.0, 2.0])
    assert choose(lost[:, :, :19]).tolist() == [0, 0]
    assert choose(lost[:, :, :21]).tolist() == [0, 1]


def test_rules_that_were_not_judged_are_not_chosen() -> None:
    lost = scaled([1.0, 1.0], [2.0, 2.0])
    lost[0, 1, 5] = np.nan
    assert choose(lost).tolist() == [1, 1]
    lost[:, 1] = np.nan  # client b has no rows: it follows the others
    assert choose(lost).tolist() == [0, 0]
    assert choose(np.full((2, 2, 4), np.nan)).tolist() == [0, 0]
    assert choose(np.empty((2, 2, 0))).tolist() == [0, 0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_a_choice_ignores_the_size_of_a_client_and_obeys_dominance(seed: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    lost = rng.uniform(0.1, 1, (4, 3, 30))
    larger = lost * np.array([rate, 1.0, 1.0])[:, None]
    for how in ("fleet", "shrunk"):
        assert choose(lost, how).tolist() == choose(larger, how).tolist()
        best = np.concatenate([lost, lost.min(axis=0, keepdims=True) * 0.9])
        assert choose(best, how).tolist() == [4, 4, 4]


RULES = ["steady", "mean-7", "a", "b", "a+steady", "b+steady", "a+b", "mix"]


def record(rows: int, **lost: float) -> np.ndarray:
    """Two clients; each rule loses 1 in every row unless said otherwise; each row adds one number to all."""
    level = np.tile([0.0, 0.4], rows // 2)
    each = [np.full(rows, lost.get(rule.replace("+", "_").replace("-", "_"), 1.0)) + level for rule in RULES]
    return np.repeat(np.stack(each)[:, None], 2, axis=1)


def chosen(scaled: np.ndarray, window: int = 20, **how: Any) -> list[str]:
    return choose_rules(RULES, scaled, ("a", "b"), "steady", window, **how)


def test_the_mix_is_chosen_unless_another_rule_is_better_by_more_than_noise() -> None:
    assert chosen(record(40)) == ["mix", "mix"]
    better = record(40, a_steady=0.99)
    assert chosen(better) == ["a+steady", "a+steady"]  # by the same in every row: no noise
    # In turn 0.4 better and 0.38 worse: 0.01 on average, with a standard error of 0.39 / sqrt(20) before scaling.
    better[4] = record(40, mix=1.0)[7] + np.tile([-0.4, 0.38], 20)
    assert chosen(better) == ["mix", "mix"]
    # 0.1 better on average with a deviation of 0.4 is more than 0.4 / sqrt(20) = 0.089 but less than 0.4 / sqrt(10).
    better[4] = record(40)[7] + np.tile([-0.5, 0.3], 20)
    assert chosen(better) == ["a+steady", "a+steady"]
    assert chosen(better, window=10) == ["mix", "mix"]
    assert chosen(better, how="shrunk") == ["a+steady", "a+steady"]


def test_of_several_methods_one_alone_needs_four_standard_errors_and_a_lone_one_does_not() -> None:
    assert chosen(record(40, a=0.5)) == ["a", "a"]  # by the same in every row: no noise
    better = record(40, a_b=0.9)
    # In turn 0.4 better and 0.2 worse than the average of both: 0.1, with a standard error of 0.3 / sqrt(n).
    better[2] = better[6] + np.tile([-0.4, 0.2], 20)
    for how in ("fleet", "shrunk"):
        assert chosen(np.tile(better, 3), how=how) == ["a+b", "a+b"]  # 3.7 of them
        assert chosen(np.tile(better, 4), how=how) == ["a", "a"]  # 4.2
    rules = ["steady", "a", "a+steady"]
    lost = record(40, a=0.5)[[0, 2, 4]]
    assert choose_rules(rules, lost, ("a",), "steady", 20) == ["a", "a"]


def test_the_base_needs_no_more_than_a_better_record_and_all_of_it_counts() -> None:
    base = record(40)
    base[0] += np.tile([-0.5, 0.48], 20)
    assert chosen(base) == ["steady", "steady"]
    early = record(40, steady=1.001)
    early[0, :, :20] = 0.5  # better long ago
    assert chosen(early, window=20) == ["steady", "steady"]
    late = record(40, steady=0.999)
    late[0, :, :20] += 1
    assert chosen(late, window=20) == ["mix", "mix"]


def test_a_forecast_is_not_left_for_good() -> None:
    alone = record(40, a_b=0.5, b_steady=0.9)
    assert chosen(alone) == ["a+b", "a+b"]
    assert chosen(alone, brought=True) == ["b+steady", "b+steady"]
    assert chosen(record(40, a_b=0.5, mean_7=0.8), brought=True) == ["mean-7", "mean-7"]


def test_a_forecast_is_left_only_where_another_rule_was_clearly_better_in_all_rows() -> None:
    assert chosen(record(40), brought=True) == ["steady", "steady"]  # not the mix, which is as good
    # In turn 0.5 better and 0.3 worse: 0.1 on average, with a standard error of 0.4 / sqrt(40) = 0.063: 1.6 of them.
    better = record(40)
    better[7] += np.tile([-0.5, 0.3], 20)
    assert chosen(better, window=40) == ["mix", "mix"]  # where the base is not a forecast
    assert chosen(np.tile(better, 2), window=40, brought=True) == ["mix", "mix"]  # 0.4 / sqrt(80): 2.2 of them
    assert chosen(better, window=40, brought=True) == ["steady", "steady"]
    early = record(40, mix=1.01)
    early[7, :, :20] -= 0.5  # better long ago: the window does not count
    assert chosen(early, window=20, brought=True) == ["mix", "mix"]


def test_a_light_correction_of_a_forecast_needs_one_standard_error_and_any_other_two() -> None:
    names = ["forecast", "a", "a+forecast", "mix-25"]
    lost = np.ones((4, 2, 40))
    for place, picked in ((2, "forecast"), (3, "mix-25")):  # 1.6 standard errors, as above
        better = lost.copy()
        better[place] += np.tile([-0.5, 0.3], 20)
        assert choose_rules(names, better, ("a",), "forecast", 20, brought=True) == [picked] * 2
        numbers = margins(names[:1] + names[2:], better[[0, 2, 3], 0], "forecast", "forecast", 20, True)
        assert (numbers < 0).tolist() == [False, False, place == 3]
    lost[3] += np.tile([-0.5, 0.4], 20)  # 0.7 of them
    assert choose_rules(names, lost, ("a",), "forecast", 20, brought=True) == ["forecast"] * 2


def test_where_nothing_is_known_or_trained() -> None:
    assert chosen(record(40)[:, :, :0]) == ["steady", "steady"]
    assert choose_rules(RULES[:2], record(40, mean_7=0.99)[:2], (), "steady", 20) == ["mean-7", "mean-7"]
    gone = record(40, a_b=0.5)
    gone[:, 1] = np.nan  # a client without a row follows the others
    assert chosen(gone) == ["a+b", "a+b"]


def test_one_storm_does_not_decide() -> None:
    costs = np.tile([1.0, 2.0, 3.0], (50, 1))
    costs[10] *= 1000
    calm, storm = np.full(50, 0.2), np.full(50, 0.1)
    storm[10] = 200.0  # one storm costs the second rule more than all else
    assert storm.sum() > calm.sum()
    assert day_scaled(storm, costs).sum() < day_scaled(calm, costs).sum()


def test_bad_input_is_one_line() -> None:
    with pytest.raises(ValueError, match="choose must be one of fleet, shrunk, found 'each'"):
        choose(scaled([1.0]), "each")
    with pytest.raises(ValueError, match="share must be"):
        AdaptiveRange(share=1.0)


def test_literal_ends() -> None:
    state = AdaptiveRange(errors=[float(number) for number in range(1, 10)])
    assert state.ends(100.0, 2.0) == (102.0, 118.0)  # of nine errors, the first and the last
    state.low_rate, state.high_rate = 0.0, 0.3
    assert state.ends(0.0, 1.0) == (1 - 0.25 * 8, 7.0)
    state.observe(20.0, 0.0, 1.0, (-1.0, 7.0))
    assert (state.low_rate, state.high_rate) == (pytest.approx(0.005), pytest.approx(0.3 + 0.05 * (0.1 - 1)))
    assert state.errors[-1] == 20.0
    assert AdaptiveRange(errors=[1.0]).ends(0.0, 1.0) == (-np.inf, np.inf)


@pytest.mark.parametrize("kind", ["constant", "two values", "growing spread", "weekly"])
def test_ranges_of_many_kinds_of_costs(kind: str) -> None:
    """Where costs repeat, a range may hold more than it states, never less."""
    rng, n = np.random.default_rng(1), 320
    cost = {
        "constant": np.full(n, 12.1),  # expected 3.3 in spreads of 1.7, which does not give back 12.1 to the last bit
        "two values": rng.choice([0.1, 0.3], n),
        "growing spread": rng.standard_t(3, n) * np.exp(np.cumsum(rng.normal(0, 0.08, n))),
        "weekly": 0.3 * rng.normal(size=n) + 3.0 * (np.arange(n) % 7 > 4),
    }[kind]
    ends = adaptive_ranges(cost, np.full(n, 3.3), np.full(n, 1.7))
    held = inside(cost[140:], ends[140:])
    assert held >= 0.77
    if kind not in ("constant", "two values"):
        assert held <= 0.83
    assert np.isinf(ends[:8]).all()
    assert np.isfinite(ends[8:]).all()
    assert np.isnan(inside(cost[:5], ends[:5]))


@pytest.mark.parametrize("drift", [0.0, 0.02])
@pytest.mark.parametrize("known_after", [0, 2])
def test_ranges_hold_what_they_state_under_drift(drift: float, known_after: int) -> None:
    rng = np.random.default_rng(4)
    n = 1500
    cost = drift * np.arange(n) + np.exp(0.001 * np.arange(n)) * rng.standard_t(4, n)
    ends = adaptive_ranges(cost, np.zeros(n), np.ones(n), known_after)
    assert inside(cost, ends) == pytest.approx(0.8, abs=0.03)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 79), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_no_range_knows_the_cost_of_its_own_row(row: int, known_after: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost, other = rng.normal(size=80), rng.normal(5, 9, 80)
    first = max(row - known_after, 0)
    other[:first] = cost[:first]
    ends, changed = (adaptive_ranges(values, np.zeros(80), np.ones(80), known_after) for values in (cost, other))
    np.testing.assert_array_equal(ends[: row + 1], changed[: row + 1])
