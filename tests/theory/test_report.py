"""`dffl.bounds`: what it reports holds on the federation itself, and is labelled for what it is."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import dffl
from dffl.theory import ascent, heterogeneity, risk
from dffl.theory.display import notes
from dffl.theory.heterogeneity import common_points, pairwise, to_mixture
from dffl.theory.scaled import InUnits, cost_functions, fit_ridge, scaled
from dffl.training import Settings
from tests.federations import client, mixed

STEPS = 40


@pytest.fixture(scope="module", params=["knapsack", "portfolio"])
def federation(request) -> dffl.Federation:
    make = getattr(dffl.synthetic, request.param)
    return make(seed=0, clients=4, dim=6, features=3, degree=2, samples=24, eta_obj=1.0)


@pytest.fixture(scope="module")
def report(federation) -> dffl.Bounds:
    return dffl.bounds(federation, search=STEPS, progress=False)


def test_pairs_are_bounded_and_parts_add_up(report):
    pairs = report.pairs
    assert len(pairs) == 6
    for column in ("best", "theorem1", "trivial"):
        assert (pairs["gap"] <= pairs[column] + 1e-9).all()
    parts = pairs["objective_part"] + pairs["constraint_part"] + pairs["decision_part"]
    np.testing.assert_allclose(parts, pairs["theorem1"], rtol=1e-9)
    assert (pairs["gap"] > 0).all()


def test_lower_ends_stay_below_upper_ends(report):
    table = report.clients
    assert (table["rademacher_low"] <= table["rademacher_high"]).all()
    assert (table["discrepancy_low"] <= table["discrepancy_high"]).all()
    for name in ("by_proposition", "by_trivial", "by_entropy"):
        assert (table["discrepancy_low"] <= table[name]).all()
    assert (table["oscillation_low"] <= 2 * table["discrepancy_high"]).all()
    assert (table["local_bound"] < table["local_bound_all"]).all()


def test_the_searches_find_something(report):
    table = report.clients
    assert (table["discrepancy_low"] > 0.01 * table["discrepancy_high"]).all()
    assert (table["rademacher_low"] > 0.2 * table["rademacher_high"]).all()


def test_small_federations_are_vacuous_and_say_so(report):
    assert report.clients["local_vacuous"].all()
    assert report.clients["federated_vacuous"].all()
    assert report.clients["condition_vacuous"].all()


def test_known_costs_are_exact_and_modelled_ones_are_not(federation, report):
    assert report.exact
    assert report.label == "certified at known costs"
    hidden = dffl.Federation([replace(one, cost_at=None, c_mean=None) for one in federation])
    estimated = dffl.bounds(hidden, search=False, progress=False)
    assert not estimated.exact
    assert "not certified" in estimated.label
    assert estimated.as_json()["estimated"]
    table = estimated.clients  # at modelled costs the proposition proves nothing
    assert (table["discrepancy_high"] == np.minimum(table["by_trivial"], table["by_entropy"])).all()
    noisy = dffl.synthetic.knapsack(seed=0, clients=2, dim=4, features=3, samples=10, noise=0.5)
    assert not dffl.bounds(noisy, search=False, progress=False).exact


def test_the_matrix_is_symmetric_with_nothing_on_the_diagonal(report, federation):
    for column in ("best", "objective_part", "constraint_part"):
        full = report.matrix(column).to_numpy()
        np.testing.assert_array_equal(full, full.T)
        assert (np.diag(full) == 0).all()
    with pytest.raises(ValueError, match="matrix: column must be one of gap, best"):
        report.matrix("nothing")
    shares = risk.mixture_weights(federation.counts)
    np.testing.assert_allclose(report.clients["to_mixture"], report.matrix("best").to_numpy() @ shares)


def test_json_is_plain(report):
    answer = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert answer["units"] == "scaled"
    assert len(answer["pairs"]) == 6


def test_identical_clients_have_no_gap_though_theorem_1_leaves_one():
    one = client("a", dffl.TopK(5, 2), n=20)
    twins = dffl.Federation([one, replace(one, name="b")])
    pairs = dffl.bounds(twins, search=False, progress=False).pairs
    assert pairs["gap"][0] == 0
    assert pairs["objective_part"][0] == 0
    assert pairs["constraint_part"][0] == 0
    assert pairs["theorem1"][0] == pairs["decision_part"][0] > 0


def test_pure_constraint_heterogeneity_has_no_objective_part():
    fed = dffl.synthetic.knapsack(seed=0, clients=3, dim=6, features=3, eta_obj=0.0, eta_constr=1.0, samples=30)
    settings = Settings(scale_features=False, scale_costs=False)
    found = pairwise(scaled(fed, settings), common_points(scaled(fed, settings), 1e9))
    assert found["objective_part"].max() < 1e-9
    assert found["constraint_part"].max() > 0
    # The shared prediction is every client's own cost: nobody loses anything, whatever its constraint.
    assert found["gap"].max() < 1e-9


def test_a_minimiser_and_a_maximiser_are_not_compared():
    members = [client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2)), client("c", dffl.TopK(5, 2), maximize=True)]
    found = dffl.bounds(dffl.Federation(members), search=False, progress=False)
    assert found.pairs[["client", "other"]].to_numpy().tolist() == [["a", "b"]]
    assert np.isnan(found.matrix().loc["a", "c"])
    assert found.clients["to_mixture"].isna().all()  # every client has a pair that is left out
    assert any("opposite signs" in line for line in notes(found))
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["clients"][0]["to_mixture"] is None


def test_any_mix_of_families_is_reported():
    fed = dffl.Federation(
        [
            one
            for one in mixed(n=6, families=("entropy", "ball", "polytope"))
            if one.name in ("entropy-0", "ball-0", "polytope-0", "ball-1")
        ]
    )
    found = dffl.bounds(fed, search=2, progress=False)
    assert (found.pairs["gap"] <= found.pairs["best"] + 1e-9).all()
    assert (found.clients["discrepancy_low"] <= found.clients["discrepancy_high"]).all()


def test_the_discrepancy_found_is_attained_on_the_samples(federation):
    clients, settings = scaled(federation, Settings()), Settings()
    found = ascent.discrepancies(clients, settings, steps=STEPS)
    more = ascent.discrepancies(clients, settings, steps=4 * STEPS)
    assert (found.size > 0).all()
    assert more.size.sum() > 0.9 * found.size.sum()
    largest = np.array(
        [risk.loss_bound(one.diameter, one.norms(one.c).max(), settings.clip(federation.dim)) for one in clients]
    )
    assert (found.size <= heterogeneity.by_largest_losses(largest, clients.shares)).all()


def test_the_trivial_discrepancy_leaves_the_client_itself_out():
    found = heterogeneity.by_largest_losses(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(found, [0.25 * 2 + 0.25 * 4, 0.5 * 2 + 0.25 * 4, 0.5 * 4 + 0.25 * 4])


def test_complexity_falls_with_samples_but_never_exceeds_its_ceiling():
    settings = Settings(hidden=8)
    rng = np.random.default_rng(0)
    few, many = (ascent.rademacher_lower(rng.normal(size=(n, 3)), 4, settings, steps=200) for n in (8, 512))
    assert many < few <= risk.rademacher_upper(settings.clip(4), 4) + 1e-6


def test_the_distance_to_the_mixture_leaves_the_client_itself_out():
    one = client("a", dffl.TopK(5, 2), n=10)
    fed = dffl.Federation([one, replace(one, name="b"), client("c", dffl.TopK(5, 4), n=20)])
    clients = scaled(fed, Settings())
    pairs = pairwise(clients, common_points(clients, 20.0))
    full = to_mixture(pairs, clients)
    ac = pairs.query("client == 'a' and other == 'c'")["best"].item()
    ab = pairs.query("client == 'a' and other == 'b'")["best"].item()
    assert full[0] == pytest.approx(0.25 * ab + 0.5 * ac)


def test_refusals():
    lone = dffl.Federation([client("a", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match="bounds: a federation of one client has no pairs"):
        dffl.bounds(lone)
    two = dffl.Federation([client("a", dffl.TopK(5, 2)), client("b", dffl.TopK(5, 2))])
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\), found 1"):
        dffl.bounds(two, delta=1)
    with pytest.raises(ValueError, match="search must be a whole number >= 0, found -3"):
        dffl.bounds(two, search=-3)
    with pytest.raises(ValueError, match=r"federation must be a dffl\.Federation"):
        dffl.bounds("demo")


# The models of costs


def test_a_ridge_learns_a_smooth_function_and_judges_itself():
    rng = np.random.default_rng(0)
    z, loading = rng.normal(size=(300, 3)), rng.normal(size=(3, 2))
    c = (1 + 0.5 * z @ loading) ** 2 + 0.1 * rng.normal(size=(300, 2))
    fitted = fit_ridge(z, c)
    fresh = rng.normal(size=(500, 3))
    truth = (1 + 0.5 * fresh @ loading) ** 2
    error = np.mean((fitted(fresh) - truth) ** 2) / np.mean((truth - truth.mean(axis=0)) ** 2)
    assert error < 0.1
    assert fitted.error == pytest.approx(error, abs=0.05)
    assert fit_ridge(z, np.ones((300, 2))).error == 0.0


def test_leave_one_out_is_what_leaving_out_gives():
    rng = np.random.default_rng(1)
    z, c = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    fitted = fit_ridge(z, c, units=0)
    # The chosen penalty is the largest or an inner one; with it, refit without each sample in turn.
    errors = []
    for penalty in 10.0 ** np.arange(-4, 5):
        lost = []
        for i in range(30):
            rest = np.arange(30) != i
            x, y = z[rest], c[rest]
            mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
            slope = np.linalg.solve((x - mean_x).T @ (x - mean_x) + penalty * np.eye(2), (x - mean_x).T @ (y - mean_y))
            lost.append((c[i] - mean_y - (z[i] - mean_x) @ slope) ** 2)
        errors.append(np.mean(lost) / np.mean((c - c.mean()) ** 2))
    assert fitted.error == pytest.approx(min(errors), rel=0.02)


def test_synthetic_costs_are_known_at_any_features():
    fed = dffl.synthetic.portfolio(seed=3, clients=2, dim=4, features=3, samples=7)
    units = [dffl.predictor.Normaliser.fit(one.x, one.c) for one in fed]
    functions, exact = cost_functions(fed, units)
    assert exact
    for one, unit, costs in zip(fed, units, functions, strict=True):
        assert isinstance(costs, InUnits)
        np.testing.assert_allclose(costs(unit.features(one.x)) * unit.c_scale, one.c, rtol=1e-12)


def test_losses_of_the_report_are_the_losses_of_training(federation):
    clients = scaled(federation, Settings())
    common = common_points(clients, 20.0)
    pairs = pairwise(clients, common)
    one, other = clients[0], clients[1]
    with jax.enable_x64(True):
        lost = [
            np.asarray(dffl.spo_plus(who.sense * common.shared, common.costs[place], who.set))
            for place, who in enumerate((one, other))
        ]
    assert pairs["gap"][0] == pytest.approx(np.abs(lost[0] - lost[1]).mean())


def test_bounds_know_known_costs_and_convex_hulls() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))

    def member(name: str, s: dffl.FeasibleSet) -> dffl.Client:
        return dffl.Client(name, x, 5 + x @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(30, 3)), s)

    bounded = {"A_eq": [[1.0, 1, 1, 1]], "b_eq": [3.0], "lower": 0, "helpers": 1, "known_cost": [6.0]}
    fed = dffl.Federation(
        [
            member(
                "whole",
                dffl.MixedInteger(A_ub=[[2.0, 3, 1, 0]], b_ub=[4], lower=0, upper=[2, 2, 2, 1], helpers=1, known_cost=[1.0]),
            ),
            member("known", dffl.Polytope(**bounded, upper=[2, 2, 2, 3])),
            member("top", dffl.TopK(3, 2)),
        ]
    )
    found = dffl.bounds(fed, search=5, progress=False)
    assert found.hulls == ("whole",)
    assert found.as_json()["convex_hulls"] == ["whole"]
    assert (found.pairs["gap"] <= found.pairs["best"] + 1e-9).all()
    assert np.isfinite(found.pairs["theorem1"]).all()
    assert any("convex hull" in line for line in notes(found))
    # In one more coordinate: a set without known costs has zero there, and its diameter is its own.
    diameters = dict(zip(found.clients["client"], found.clients["diameter"], strict=True))
    assert diameters["top"] == pytest.approx(np.sqrt(2))
    assert diameters["known"] > fed["known"].set.diameter().lower
    endless = dffl.Polytope(
        A_ub=[[-1.0, -1, -1, -1]], b_ub=[-3.0], lower=0, upper=[2, 2, 2, np.inf], helpers=1, known_cost=[6.0]
    )
    found = dffl.bounds(
        dffl.Federation([member("endless", endless), member("top", dffl.TopK(3, 2))]), search=False, progress=False
    )
    assert np.isinf(found.pairs["best"]).all()
    assert found.clients["federated_vacuous"].all()
    assert not found.clients.isna().any(axis=None)
