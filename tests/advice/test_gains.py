"""From held-out regrets to gains: literal numbers, shrinkage against the textbook, and coverage where the model holds."""

import numpy as np
import pytest

from dffl.advice import gains
from dffl.advice.advising import recommend
from dffl.advice.evidence import Evidence
from dffl.advice.gains import CROSSFIT, FEDERATED, LOCAL, TYPICAL, Curve, Gains, shrink, shrink_at

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
    if blocks:
        return gains._error_in_time(one.federated, one.local, np.arange(one.n))
    return gains._bootstrap(one.federated, one.local, 0)


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


def test_shrinkage_is_the_textbooks_where_the_spread_of_clients_is_known():
    # Normal-normal with a common level: the mean is -.1, the trust .4 / (.4 + .1) = .8, and the level's variance .5 / 4.
    ratio, level = np.array([-1.0, -0.2, 0.1, 0.7]), np.ones((4, 1))
    found = shrink_at(0.4, ratio, 0.1 * np.eye(4), level)
    np.testing.assert_allclose(found.middle, [-0.82, -0.18, 0.06, 0.54], rtol=1e-6)
    np.testing.assert_allclose(found.variance, 0.085, rtol=1e-6)  # .8 * .1 + .2^2 * .5 / 4
    # The restricted likelihood of a common variance: squares of 1.5 with 3 degrees of freedom, so 1.5 / 3 = .5 is most likely.
    fits = {between: shrink_at(between, ratio, 0.1 * np.eye(4), level).fit for between in (0.3, 0.4, 0.5)}
    assert max(fits, key=fits.get) == 0.4
    assert fits[0.3] - fits[0.4] == pytest.approx(-1.5 * np.log(0.4 / 0.5) - 0.75 / 0.4 + 0.75 / 0.5, abs=1e-6)


def test_the_spread_of_clients_is_averaged_over():
    # Against a fine sum over spreads from 0 to 2, each weighed by its likelihood.
    ratio, v = np.array([-1.0, -0.2, 0.1, 0.7]), 0.1
    spreads = (np.arange(4000) + 0.5) / 2000
    weight = (spreads**2 + v) ** -1.5 * np.exp(-0.75 / (spreads**2 + v))
    trust = spreads**2 / (spreads**2 + v)
    mean = np.average(trust, weights=weight)
    middle, variance = shrink(ratio, v * np.eye(4), np.full(4, 50.0))
    np.testing.assert_allclose(middle, -0.1 + mean * (ratio + 0.1), atol=2e-3)
    within = trust * v + (1 - trust) ** 2 * (spreads**2 + v) / 4
    expected = np.average(within, weights=weight) + np.average((trust - mean) ** 2, weights=weight) * (ratio + 0.1) ** 2
    np.testing.assert_allclose(variance, expected, rtol=0.03)


def test_clients_that_err_together_are_no_surer_than_one():
    # Four copies: one error of variance .04 for all, and no difference between them.
    _, together = shrink(np.full(4, -0.3), np.full((4, 4), 0.04), np.full(4, 50.0))
    _, apart = shrink(np.full(4, -0.3), 0.04 * np.eye(4), np.full(4, 50.0))
    assert (together > 0.04 - 1e-6).all()
    assert (apart < 0.03).all()


def test_a_noisy_client_follows_the_fleet_and_a_sure_one_itself():
    ratio = np.array([-0.5, -0.52, -0.48, -0.5, 1.0, 1.0])
    variance = np.array([1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 4.0])
    middle, _ = shrink(ratio, np.diag(variance), np.full(6, 50.0))
    assert middle[4] == pytest.approx(1.0, abs=0.01)
    assert middle[5] < 0.2


def test_clients_are_drawn_to_others_of_their_size():
    rng = np.random.default_rng(0)
    counts = np.array([30.0, 60, 120, 240] * 3)
    truth = 0.5 * np.log(counts / 100)
    middle, _ = shrink(truth + 0.2 * rng.normal(size=12), 0.04 * np.eye(12), counts)
    assert np.abs(middle - truth).mean() < 0.12


@pytest.mark.parametrize(("clients", "common"), [(12, 0.0), (4, 0.0), (4, 0.9), (12, 0.9)])
def test_intervals_cover_where_the_model_holds(clients, common):
    # ``common``: the correlation of the clients' errors, near 1 where they hold the same rows.
    rng, inside = np.random.default_rng(1), []
    for _ in range(200):
        error = np.sqrt(rng.uniform(0.01, 0.1, clients))
        covariance = np.outer(error, error) * (common + (1 - common) * np.eye(clients))
        truth = -0.3 + 0.2 * rng.normal(size=clients)
        middle, variance = shrink(rng.multivariate_normal(truth, covariance), covariance, np.full(clients, 50.0))
        inside.append(np.abs(truth - middle) < 1.645 * np.sqrt(variance))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.035)


def test_two_clients_are_left_as_they_are():
    ratio, variance = shrink(np.array([-1.0, 1.0]), np.diag([0.1, 0.2]), np.array([10.0, 20.0]))
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


def copies(count: int, n: int = 60) -> list[Evidence]:
    rng = np.random.default_rng(0)
    local, federated = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, n)
    return [evidence(local, federated, name=str(place)) for place in range(count)]


def test_copies_of_one_table_are_the_evidence_of_one(monkeypatch):
    fleet, rows = copies(4), np.arange(60, dtype=np.uint64)
    alone = bootstrap(fleet[0], False)
    same, different = (
        gains._covariance(np.full(4, alone), [(one.federated, one.local) for one in fleet], keys, 0)
        for keys in ([rows] * 4, [rows + np.uint64(60 * place) for place in range(4)])
    )
    np.testing.assert_allclose(same, same[0, 0], rtol=1e-6)
    assert np.sqrt(same[0, 0]) == pytest.approx(alone, rel=0.1)
    np.testing.assert_allclose(different - np.diag(np.diag(different)), 0, atol=0.2 * alone**2)
    none = {"DOUBT": 0.0, "CHANCE_SMALL": 0.0, "CHANCE_ANY": 0.0}
    for name, value in none.items():
        monkeypatch.setattr(gains, name, value)
    variance = [estimate(fleet, keys=keys).spread[0] ** 2 for keys in ([rows] * 4, None)]
    assert variance[0] == pytest.approx(same[0, 0], rel=0.05)
    assert variance[1] < 0.6 * same[0, 0]


def test_a_row_that_a_client_holds_twice_counts_once():
    one, rows = copies(1)[0], np.arange(60, dtype=np.uint64)
    twice = (np.tile(one.federated, 2), np.tile(one.local, 2))
    single, double = (
        np.sqrt(gains._covariance(np.zeros(2), [pair] * 2, [keys, keys + np.uint64(1000)], 0)[0, 0])
        for pair, keys in (((one.federated, one.local), rows), (twice, np.tile(rows, 2)))
    )
    assert double == pytest.approx(single, rel=0.1)


def test_the_correction_to_what_decides_is_itself_in_doubt():
    half = np.column_stack([np.full(50, 0.4), np.full(50, 0.15)])
    found = estimate([evidence([0.2] * 50, [0.1] * 50, half, name) for name in "ab"])
    moved = np.array([gains.FALL_OWN * np.log(2), gains.FALL_SHARED * np.log(1.5)])
    chance = np.log(2) * (gains.CHANCE_SMALL / 50 + gains.CHANCE_ANY)
    np.testing.assert_allclose(found.spread**2, chance + gains.DOUBT**2 * (moved**2).sum(), rtol=1e-4)


def test_a_model_that_loses_more_than_the_mean_of_past_costs_is_less_repeatable():
    noisy, plain = ([evidence([0.2] * 50, [0.1] * 50, name=name, mean_cost=np.full(50, naive)) for name in "ab"]
                    for naive in (0.1, 0.2))  # fmt: skip
    per = gains.CHANCE_SMALL / 50 + gains.CHANCE_ANY
    wider = estimate(noisy).spread ** 2 - estimate(plain).spread ** 2
    np.testing.assert_allclose(wider, (np.log(2) - gains.STEEP) * per, rtol=1e-4)


def test_means_of_models_are_better_even_where_the_curve_is_flat():
    fleet = [evidence([0.2] * 50, [0.1] * 50, name=name) for name in "ab"]
    found = gains.estimate(fleet, CROSSFIT)
    assert found.curve == Curve(0, 0)
    shift = gains.MEAN_OWN * gains.FLAT.own - gains.MEAN_CROSSFIT * gains.FLAT.shared
    np.testing.assert_allclose(found.ratio, np.log(0.5) + shift, atol=1e-6)


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
    assert 0.8 * bootstrap(one, False) < bootstrap(one, True) <= gains.LARGEST_RATIO  # what few samples say, nobody knows


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
