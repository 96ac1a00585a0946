"""From held-out regrets to gains: literal numbers, shrinkage against the textbook, and coverage where the model holds."""

import numpy as np
import pytest

from dffl.advice import gains
from dffl.advice.advising import recommend
from dffl.advice.evidence import Evidence
from dffl.advice.gains import CROSSFIT, FEDERATED, LOCAL, TYPICAL, Curve, Gains, shrink

NAN = float("nan")


def estimate(fleet, tested=FEDERATED, reference=LOCAL, **how) -> Gains:
    return gains.estimate(fleet, tested, reference, **how)


def evidence(local, federated, half=None, name="a", mean_cost=None) -> Evidence:
    local, federated = np.asarray(local, float), np.asarray(federated, float)
    less = (local, federated) if half is None else half.T
    naive = np.ones_like(local) if mean_cost is None else mean_cost
    return Evidence(
        name, len(local), naive, local=local, local_tuned=local, federated=federated, crossfit=federated,
        half_local=less[0], half_federated=less[1],
    )  # fmt: skip


def bootstrap(one: Evidence, blocks: bool) -> float:
    return gains._bootstrap(one.federated, one.local, blocks, 0)


def test_the_gain_of_a_lone_pair_is_the_ratio_of_means():
    found = estimate([evidence([0.2] * 40, [0.1] * 40, name=name) for name in "ab"])
    np.testing.assert_allclose(found.gain, 0.5, atol=1e-6)
    np.testing.assert_allclose(found.raw, np.log(0.5), atol=1e-6)
    assert (found.error < 1e-6).all()  # no sample differs from another
    low, high = found.interval(0.9)
    assert (low < 0.5).all()
    assert (high > 0.5).all()
    np.testing.assert_allclose(np.log((1 - low) / 0.5), -np.log((1 - high) / 0.5), rtol=1e-4)  # even around it, in logs
    assert (found.probability > 0.99).all()


def test_learning_curves_carry_both_models_on_to_all_the_data():
    # With half the data the own model loses twice as much, the shared one half as much again.
    half = np.column_stack([np.full(50, 0.4), np.full(50, 0.15)])
    found = estimate([evidence([0.2] * 50, [0.1] * 50, half, name) for name in "ab"])
    assert found.curve.own == pytest.approx(np.log(2), abs=1e-6)
    assert found.curve.shared == pytest.approx(np.log(1.5), abs=1e-6)
    # log .5 + .4 log 2 - .2 log 1.5 = -.693147 + .277259 - .081093.
    np.testing.assert_allclose(found.ratio, -0.496981, atol=1e-6)


def test_a_client_that_loses_nothing_has_nothing_to_gain():
    none, some = evidence([0.0] * 20, [0.3] * 20), evidence([0.2] * 20, [0.1] * 20, name="b")
    naive = evidence([0.2] * 20, [0.3] * 20, name="c", mean_cost=np.zeros(20))
    found = estimate([none, some, naive])
    assert found.nothing.tolist() == [True, False, True]
    assert found.gain[0] == 0
    assert found.gain[1] == pytest.approx(0.5, abs=0.01)


def test_shrinkage_is_the_textbooks_where_variances_are_equal():
    # Normal-normal with a common level: the mean is -.1, s^2 = (.81 + .01 + .04 + .64) / 3 = .5 and the trust 1 - .1 / .5 = .8.
    middle, variance = shrink(np.array([-1.0, -0.2, 0.1, 0.7]), np.full(4, 0.1), np.full(4, 50.0))
    np.testing.assert_allclose(middle, [-0.82, -0.18, 0.06, 0.54], rtol=1e-4)
    np.testing.assert_allclose(variance, 0.085, rtol=1e-3)  # .8 * .1 + .2^2 * .5 / 4


def test_a_noisy_client_follows_the_fleet_and_a_sure_one_itself():
    ratio = np.array([-0.5, -0.52, -0.48, -0.5, 1.0, 1.0])
    variance = np.array([1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 4.0])
    middle, _ = shrink(ratio, variance, np.full(6, 50.0))
    assert middle[4] == pytest.approx(1.0, abs=0.01)
    assert middle[5] < 0.2


def test_clients_are_drawn_to_others_of_their_size():
    rng = np.random.default_rng(0)
    counts = np.array([30.0, 60, 120, 240] * 3)
    truth = 0.5 * np.log(counts / 100)
    middle, _ = shrink(truth + 0.2 * rng.normal(size=12), np.full(12, 0.04), counts)
    assert np.abs(middle - truth).mean() < 0.12


def test_intervals_cover_where_the_model_holds():
    rng, inside = np.random.default_rng(1), []
    for _ in range(300):
        v = rng.uniform(0.01, 0.2, size=12)
        truth = -0.3 + 0.4 * rng.normal(size=12)
        middle, variance = shrink(truth + np.sqrt(v) * rng.normal(size=12), v, np.full(12, 50.0))
        inside.append(np.abs(truth - middle) < 1.645 * np.sqrt(variance))
    assert np.mean(inside) == pytest.approx(0.87, abs=0.03)  # a little short of 90 %: the fleet's spread is estimated, too


def test_two_clients_are_left_as_they_are():
    ratio, variance = shrink(np.array([-1.0, 1.0]), np.array([0.1, 0.2]), np.array([10.0, 20.0]))
    np.testing.assert_array_equal(ratio, [-1, 1])
    np.testing.assert_array_equal(variance, [0.1, 0.2])


def test_neighbours_that_are_alike_count_for_less_in_blocks():
    rng = np.random.default_rng(0)
    week = np.repeat(rng.uniform(0.5, 1.5, size=(20, 2)), 7, axis=0)
    one = evidence(week[:, 0], week[:, 1])
    assert bootstrap(one, True) > 1.5 * bootstrap(one, False)


def test_the_bootstrap_agrees_with_the_delta_method():
    rng = np.random.default_rng(0)
    local, federated = rng.uniform(0.5, 1.5, 400), rng.uniform(0.5, 1.5, 400)
    exact = np.std(federated / federated.mean() - local / local.mean()) / np.sqrt(400)
    assert bootstrap(evidence(local, federated), False) == pytest.approx(exact, rel=0.15)


def test_the_interval_is_as_wide_as_its_confidence_asks():
    none = np.zeros(1, bool)
    found = Gains(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1), none, none, Curve(0, 0))
    low, high = found.interval(0.95)
    assert high[0] == pytest.approx(0.859136, abs=1e-5)  # 1 - exp(-1.959964)
    assert low[0] == pytest.approx(-6.099072, abs=1e-5)  # 1 - exp(1.959964)
    assert found.probability[0] == 0.5


def test_quick_answers_are_wider():
    plain = [evidence([0.2] * 40, [0.1] * 40, name=name) for name in "abc"]
    assert (estimate(plain, quick=True).spread > estimate(plain).spread).all()


def test_an_exact_regression_leaves_the_quick_answer_open():
    fleet = [evidence([0.01] * 40, [0.1] * 40, name="exact"), evidence([0.0] * 40, [0.1] * 40, name="zero")]
    fleet += [evidence([0.2] * 40, [0.1] * 40, name=name) for name in "abc"]
    found = estimate(fleet, quick=True)
    assert found.unknown.tolist() == [True, True, False, False, False]
    assert not found.nothing.any()
    assert [recommend(p, NAN, False) for p in found.probability[:2]] == ["cannot tell"] * 2
    np.testing.assert_allclose(found.gain[2:], 0.569646, atol=1e-6)  # 1 - .5 exp(-.15): the exact ones do not count
    assert recommend(estimate(fleet[:2]).probability[0], NAN, False) == "stay local"


def test_fewer_folds_leave_more_to_carry_on():
    half = np.column_stack([np.full(50, 0.4), np.full(50, 0.1)])
    fleet = [evidence([0.2] * 50, [0.1] * 50, half, name) for name in "ab"]
    moved = {folds: float(estimate(fleet, folds=folds).ratio[0] - np.log(0.5)) / np.log(2) for folds in (3, 5, 10)}
    # On a power law: .4 with 5 folds; with 3 folds, log 1.5 / log(4/3) = 1.409421 over log 1.25 / log 1.6 = .474770 times that.
    assert moved == pytest.approx({3: 1.187456, 5: 0.4, 10: 0.151020}, abs=1e-6)


@pytest.mark.parametrize("n", [6, 8, 14, 60])
def test_blocks_of_a_short_series_still_vary(n):
    rng = np.random.default_rng(n)
    one = evidence(rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, n))
    assert bootstrap(one, True) == pytest.approx(bootstrap(one, False), rel=0.5)


def test_a_mean_over_folds_falls_by_its_own_share_whatever_the_number_of_folds():
    half = np.column_stack([np.full(50, 0.4), np.full(50, 0.15)])
    fleet = [evidence([0.2] * 50, [0.1] * 50, half, name) for name in "ab"]
    moved = [gains.estimate(fleet, CROSSFIT, folds=folds).ratio[0] - np.log(0.5) for folds in (3, 5)]
    expected = gains.MEAN_OWN * np.log(2) - gains.MEAN_CROSSFIT * np.log(1.5)
    np.testing.assert_allclose(moved, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("shared", "crossfit", "advised"),
    [(0.1, 0.1, "federate"), (0.4, 0.1, "personalise"), (0.4, 0.4, "stay local"), (0.2, 0.2, "cannot tell")],
)
def test_both_comparisons_are_with_the_tuned_own_model(shared, crossfit, advised):
    # `local` loses more than all of them, and does not count.
    rng, fleet = np.random.default_rng(0), []
    for name in "abc":
        regrets = {"federated": shared, "crossfit": crossfit, "local_tuned": 0.2, "local": 0.9}
        known = {model: level * rng.uniform(0.5, 1.5, 60) for model, level in regrets.items()}
        fleet.append(Evidence(name, 60, np.ones(60), **known, half_local=known["local"], half_federated=known["federated"]))
    found = [gains.estimate(fleet, tested).probability for tested in (FEDERATED, CROSSFIT)]
    assert [recommend(*pair, False) for pair in zip(*found, strict=True)] == [advised] * 3


def test_without_models_of_half_the_data_the_curve_is_a_typical_one():
    regrets = {"local_tuned": np.full(40, 0.2), "crossfit": np.full(40, 0.1)}
    found = gains.estimate([Evidence(name, 40, np.ones(40), **regrets) for name in "ab"], CROSSFIT)
    assert found.curve == TYPICAL
    shift = gains.MEAN_OWN * TYPICAL.own - gains.MEAN_CROSSFIT * TYPICAL.shared
    np.testing.assert_allclose(found.ratio, np.log(0.5) + shift, atol=1e-6)
