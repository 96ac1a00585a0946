"""What decisions will cost: ranges hold the share that they state, and follow the features where these matter."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.federation import Federation
from dffl.tables.cost_range import CostRange, HeldOut, cost_range, ends, known, learned
from dffl.tables.decisions import Decided, _fitting

REPEATS = 60


def rows(seed: int, n: int, effect: float, features: int = 6) -> HeldOut:
    """Costs whose level follows the first feature and whose noise follows the second one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features))
    noise = np.exp(0.4 * effect * x[:, 1]) * rng.standard_t(6, n)
    return HeldOut(x, 100 + 3 * effect * x[:, 0] + noise)


def inside(found: CostRange, fresh: HeldOut) -> float:
    low, _, high = found.at(fresh.known).T
    return float(np.mean((fresh.cost >= low) & (fresh.cost <= high)))


def width(found: CostRange, fresh: HeldOut) -> float:
    low, _, high = found.at(fresh.known).T
    return float(np.mean(high - low))


@pytest.mark.parametrize(("n", "effect"), [(40, 0.0), (40, 1.0), (120, 0.0), (120, 1.0), (400, 1.0)])
@pytest.mark.parametrize("ordered", [False, True])
def test_eight_in_ten_fresh_rows_lie_inside(n: int, effect: float, ordered: bool) -> None:
    shares = []
    for seed in range(REPEATS):
        found = learned(rows(seed, n, effect), rows(1000 + seed, 2 * n, effect), ordered)
        shares.append(inside(found, rows(2000 + seed, 400, effect)))
    assert 0.78 <= np.mean(shares) <= 0.84  # over 60 repeats the mean is known to about 0.01


def test_the_range_follows_features_that_matter() -> None:
    for seed in range(5):
        found, fresh = learned(rows(seed, 150, 1.0), None, False), rows(50 + seed, 1000, 1.0)
        assert found.guide is not None
        assert not found.why
        assert width(found, fresh) < 0.7 * (found.high - found.low)
        low, median, high = found.at(fresh.known).T
        assert (low <= median).all()
        assert (median <= high).all()
        assert np.corrcoef(median, fresh.known[:, 0])[0, 1] > 0.95
        assert np.corrcoef(np.log(high - low), fresh.known[:, 1])[0, 1] > 0.6
        apart = fresh.known[:, 0] > 1  # conditional too: rows with a high level are not missed more often
        assert 0.65 < inside(found, HeldOut(fresh.known[apart], fresh.cost[apart])) < 0.95


def test_features_that_do_not_matter_leave_one_range_for_all_rows() -> None:
    found = [learned(rows(seed, 100, 0.0), None, False) for seed in range(20)]
    plain = [one for one in found if one.guide is None]
    assert len(plain) >= 18
    assert all("no better" in one.why for one in plain)
    np.testing.assert_array_equal(plain[0].at(np.zeros((2, 6))), [[plain[0].low, plain[0].median, plain[0].high]] * 2)


def test_few_rows_give_one_range_and_say_so() -> None:
    few = learned(rows(0, 20, 2.0), None, False)
    assert few.guide is None
    assert few.why == "20 held-out rows are too few for a range that follows the features (30 are needed)"
    wide = learned(rows(0, 50, 2.0, features=40), None, False)
    assert wide.why.startswith("50 held-out rows are too few")
    assert "too few" not in learned(rows(0, 30, 2.0), None, False).why


def test_with_an_order_the_latest_rows_alone_give_the_ends() -> None:
    before, latest = rows(0, 200, 1.0), rows(1, 40, 1.0)
    assert learned(latest, before, ordered=False).rows == 240
    assert learned(latest, before, ordered=True).rows == 40
    few = HeldOut(latest.known[:10], latest.cost[:10])
    assert learned(few, before, ordered=True).rows == 210
    moved = HeldOut(latest.known, latest.cost + 50)  # the level has moved: the range is at the new one
    fresh = rows(2, 500, 1.0)
    assert inside(learned(moved, before, ordered=True), HeldOut(fresh.known, fresh.cost + 50)) > 0.7


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 10, 15, 33, 200])
def test_ends_hold_their_share_whatever_the_distribution(n: int) -> None:
    rng = np.random.default_rng(n)
    held, wanted = [], 0.0
    for _ in range(4000):
        sample = rng.exponential(size=n + 1)
        low, median, high, wanted = ends(sample[:-1])
        assert low <= median <= high
        held.append(low <= sample[-1] <= high)
    assert np.mean(held) == pytest.approx(wanted, abs=0.025)
    assert (0.8 <= wanted < 0.8 + 2 / (n + 1)) if n >= 9 else wanted == (n - 1) / (n + 1)


def test_it_comes_back_from_json_and_stays_level_far_away() -> None:
    found = learned(rows(3, 100, 1.0), None, False)
    again = CostRange.from_json(json.loads(json.dumps(found.as_json())))
    assert again == found
    far = np.full((1, 6), 1e9)
    np.testing.assert_array_equal(again.at(far), again.at(rows(3, 100, 1.0).known.max(axis=0)[None]))
    np.testing.assert_array_equal(found.at(far), again.at(far))


def test_costs_that_never_change() -> None:
    found = learned(HeldOut(rows(0, 50, 1.0).known, np.full(50, 7.0)), None, False)
    np.testing.assert_array_equal(found.at(np.zeros((1, 6))), [[7, 7, 7]])


def test_ranges_of_a_model_hold_on_fresh_rows() -> None:
    train = dffl.synthetic.knapsack(seed=1, clients=4, dim=6, samples=80)
    test = dffl.synthetic.knapsack(seed=1, split="validation", clients=4, dim=6, samples=40)
    fresh = dffl.synthetic.knapsack(seed=1, split="test", clients=4, dim=6, samples=1000)
    fit = dffl.fit(Federation(train), "crossfit", rounds=5, local_epochs=2, hidden=16, progress=False)
    shares, widths = [], []
    for client in fresh:
        found = cost_range(fit, test[client.name], train[client.name], ordered=False)
        assert found.rows == 120
        predicted = fit.predict(client.name, client.x)
        decided = fit.decide_at(client.name, predicted)
        new = HeldOut(known(client.x, predicted, decided), np.sum(client.c * decided, axis=1))
        shares.append(inside(found, new))
        widths.append(width(found, new) / (found.high - found.low))
    assert 0.74 <= np.mean(shares) <= 0.9
    assert np.mean(widths) < 0.9


def test_a_variable_may_have_the_name_of_a_column_of_ranges() -> None:
    frame = pd.DataFrame({"expected_low": [1.0], "x": [0.0]})
    found = Decided("a", frame, np.array([[1.0, 2.0, 3.0]]), CostRange(9, 1, 2, 3, 0.8, why="few"), None, False)
    assert list(found.table) == ["expected_low", "x", "_expected_low", "expected_median", "expected_high"]


@pytest.mark.parametrize(("width", "columns"), [(200, 12), (80, 6), (20, 4)])
def test_the_table_on_the_screen_has_as_many_columns_as_fit(width: int, columns: int) -> None:
    text = _fitting(pd.DataFrame([{f"column_{i}": 1 for i in range(30)}]), width)
    assert len(text.splitlines()[0].replace(" ... ", " ").split()) == columns
    assert width == 20 or len(text.splitlines()[0]) <= width
