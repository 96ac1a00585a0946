"""A fit predicts, decides and evaluates, also for clients that took no part."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import dffl
from tests.federations import client, feasible_sets, mixed

QUICK = {"rounds": 2, "local_epochs": 2}


@pytest.fixture(scope="module")
def fitted() -> dffl.Fit:
    return dffl.fit(mixed(), "fedavg", **QUICK)


def test_decisions_are_feasible_and_best_for_the_prediction(fitted: dffl.Fit) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    for name, member in fitted.members.items():
        costs, decisions = fitted.predict(name, x), fitted.decide(name, x)
        assert costs.shape == decisions.shape == (6, 5)
        with jax.enable_x64(True):
            assert np.asarray(member.set.contains(decisions, 1e-8)).all()
            best = member.set.support(costs if member.maximize else -costs)
            value = np.sum(costs * decisions, axis=-1) * (1 if member.maximize else -1)
            np.testing.assert_allclose(value, best, rtol=1e-9)
    assert fitted.decide("topk-0", x[0]).shape == (5,)


def test_evaluate_is_the_definition(fitted: dffl.Fit) -> None:
    test = mixed(n=20, seed=0)
    table = fitted.evaluate(test).set_index("client")
    assert list(table.index) == test.names
    for one in test:
        with jax.enable_x64(True):
            lost = np.asarray(dffl.regret(fitted.predict(one.name, one.x), one.c, one.set, one.maximize))
            relative = dffl.relative_regret(fitted.predict(one.name, one.x), one.c, one.set, one.maximize)
        assert table.loc[one.name, "regret"] == pytest.approx(lost.mean(), rel=1e-9)
        assert table.loc[one.name, "relative_regret"] == pytest.approx(float(relative), rel=1e-9)
        assert table.loc[one.name, "took_part"]


def test_regret_against_realised_and_against_mean_costs_are_both_there_and_named() -> None:
    noisy = {"seed": 1, "clients": 3, "dim": 6, "noise": 1.0, "samples": 50, "eta_constr": 0.0}
    fed, test = dffl.synthetic.knapsack(**noisy), dffl.synthetic.knapsack(split="test", **noisy)  # type: ignore[arg-type]
    row = dffl.fit(fed, "local", rounds=20).evaluate(test).iloc[0]
    assert row["relative_regret"] > 2 * row["expected_relative_regret"] > 0


def test_a_client_that_took_no_part_gets_the_shared_model(fitted: dffl.Fit) -> None:
    newcomer = client("newcomer", dffl.TopK(5, 1), n=30)
    row = fitted.evaluate(dffl.Federation([newcomer])).iloc[0]
    assert (row["took_part"], row["n"]) == (False, 0)
    assert fitted.decide(newcomer, newcomer.x).sum(axis=1) == pytest.approx(1)
    assert fitted.shared is not None
    counts = np.array([m.n for m in fitted.members.values()])
    pooled = np.concatenate([c.x for c in mixed()])
    np.testing.assert_allclose(fitted.shared.normaliser.x_mean, pooled.mean(axis=0))  # type: ignore[attr-defined]
    np.testing.assert_allclose(fitted.shared.normaliser.x_scale, pooled.std(axis=0))  # type: ignore[attr-defined]
    assert counts.sum() == len(pooled)
    with pytest.raises(ValueError, match=r"no client 'newcomer' in this fit .*pass a dffl.Client"):
        fitted.predict("newcomer", newcomer.x)
    local = dffl.fit(mixed(), "mean-cost")
    with pytest.raises(ValueError, match="client 'newcomer' took no part, and method 'mean-cost' has no shared model"):
        local.evaluate(dffl.Federation([newcomer]))


def test_bad_features_are_refused(fitted: dffl.Fit) -> None:
    with pytest.raises(ValueError, match="x must have 3 columns, as in training, found shape"):
        fitted.predict("topk-0", np.ones((2, 4)))
    with pytest.raises(ValueError, match="x must be finite, found nan"):
        fitted.decide("topk-0", [np.nan, 0, 0])
    wider = dffl.Federation([dffl.Client("topk-0", np.ones((2, 4)), np.ones((2, 5)), dffl.TopK(5, 1))])
    with pytest.raises(ValueError, match="test: features must be 3, as in training, found 4"):
        fitted.evaluate(wider)


def test_no_rows_are_no_predictions_and_no_decisions(fitted: dffl.Fit) -> None:
    for shape in ((0, 3), (2, 0, 3)):
        for name in ("topk-0", "polytope-1"):
            assert fitted.predict(name, np.zeros(shape)).shape == (*shape[:-1], 5)
            assert fitted.decide(name, np.zeros(shape)).shape == (*shape[:-1], 5)


@pytest.mark.parametrize("value", [1e99, -1e100, 1e12])
def test_features_out_of_all_proportion_are_refused(fitted: dffl.Fit, value: float) -> None:
    x = np.zeros((3, 3))
    x[2, 1] = value
    found = re.escape(f"found {value:g} in column 1; check its units")
    for ask in (fitted.predict, fitted.decide):
        with pytest.raises(ValueError, match=r"client 'topk-0': x must be in \[-.*\], as far as its .*, " + found):
            ask("topk-0", x)
    test = dffl.Federation([dffl.Client("topk-0", x, np.ones((3, 5)), dffl.TopK(5, 1))])
    with pytest.raises(ValueError, match="client 'topk-0': x must be in"):
        fitted.evaluate(test)
    newcomer = dffl.Client("new", x, np.ones((3, 5)), dffl.TopK(5, 1))
    with pytest.raises(ValueError, match="client 'new': x must be in"):
        fitted.decide(newcomer, x)


def test_drift_is_never_refused() -> None:
    rng = np.random.default_rng(0)
    # A feature that never moved in training, in millions or at zero, and one that hardly did.
    x = np.column_stack([np.full(30, 8e6), np.zeros(30), 1 + 1e-9 * rng.normal(size=30)])
    fed = dffl.Federation([dffl.Client("a", x, rng.normal(size=(30, 4)), dffl.TopK(4, 1))])
    drifted = np.array([[9.5e6, 2e7, 1.5], [0.0, -1e6, 0.0], [8e9, 5.0, 100.0]])
    for method in ("local", "interp-spo"):
        fit = dffl.fit(fed, method, **QUICK)
        assert np.isfinite(fit.predict("a", drifted)).all()
        with pytest.raises(ValueError, match="found 1e\\+30 in column 2"):
            fit.predict("a", [8e6, 0, 1e30])
    raw = dffl.fit(fed, "local", scale_features=False, **QUICK)  # features as they are have no scale to compare with
    assert np.isfinite(raw.predict("a", [8e15, 1e90, 1])).all()
    with pytest.raises(ValueError, match=r"in \[-1e\+100, 1e\+100\], .*, found 1e\+200 in column 0"):
        raw.predict("a", [1e200, 0, 1])
    assert dffl.fit(fed, "mean-cost").predict("a", [1e200, 0, 1]).shape == (4,)


def test_history_has_a_row_a_round_and_client(fitted: dffl.Fit) -> None:
    history = fitted.history
    assert list(history.columns) == ["job", "round", "client", "loss", "clipped", "norm"]
    assert len(history) == 2 * len(fitted.members)
    assert (history["loss"] >= -1e-5).all()
    assert history["clipped"].between(0, 1).all()
    assert (history["norm"] > 0).all()


def test_the_clip_shows_in_the_history_and_bounds_predictions() -> None:
    fed = dffl.Federation([client("a", dffl.TopK(5, 2), n=40)])
    with pytest.warns(UserWarning, match=r"clipped at norm tau \(client 'a': 100%\): try a larger tau"):
        fit = dffl.fit(fed, "local", rounds=5, tau=0.05)
    assert fit.history["clipped"].iloc[-1] > 0.5
    scaled = fit.predict("a", fed[0].x) / np.abs(fed[0].c).mean()
    assert np.linalg.norm(scaled, axis=1).max() <= 0.05 * (1 + 1e-6)


def test_predictions_are_in_raw_units_and_decisions_do_not_depend_on_the_unit_of_money() -> None:
    s = feasible_sets()["knapsack"]
    euro = client("a", s, n=40)
    cents = dffl.Client("a", euro.x * 1000 + 5, euro.c * 100, s)
    fits = [dffl.fit(dffl.Federation([c]), "local", rounds=10, dtype="float64") for c in (euro, cents)]
    np.testing.assert_allclose(100 * fits[0].predict("a", euro.x), fits[1].predict("a", cents.x), rtol=1e-6)
    np.testing.assert_allclose(fits[0].decide("a", euro.x), fits[1].decide("a", cents.x), atol=1e-6)


def test_constant_features_and_zero_costs_are_harmless() -> None:
    flat = dffl.Client("a", np.full((10, 2), 0.1), np.zeros((10, 3)), dffl.TopK(3, 1))
    fit = dffl.fit(dffl.Federation([flat]), "fedavg", **QUICK)
    assert np.isfinite(fit.predict("a", [0.1, 0.1])).all()
    assert fit.evaluate(dffl.Federation([flat]))["relative_regret"].item() == 0


def test_a_client_that_is_handed_in_decides_on_the_set_that_it_brings(fitted: dffl.Fit) -> None:
    known = client("topk-0", dffl.TopK(5, 4.0))
    assert fitted.decide("topk-0", known.x).sum(axis=1) == pytest.approx(2.5)
    assert fitted.decide(known, known.x).sum(axis=1) == pytest.approx(4.0)
    turned = client("topk-0", dffl.TopK(5, 4.0), maximize=True)
    with pytest.raises(ValueError, match="client 'topk-0': maximize must be False, as in training"):
        fitted.decide(turned, turned.x)
    with pytest.raises(ValueError, match=r"test must be a dffl.Federation, found list"):
        fitted.evaluate([known])  # type: ignore[arg-type]


def test_columns_of_a_data_frame_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("pqr"))
    fed = dffl.Federation([dffl.Client("a", frame, frame.to_numpy() @ rng.normal(size=(3, 4)), dffl.TopK(4, 1))])
    fit = dffl.fit(fed, "local", **QUICK)
    fit.save(tmp_path / "named.dffl")
    for one in (fit, dffl.load(tmp_path / "named.dffl")):
        shuffled = frame[["r", "p", "q"]].assign(extra=1)
        np.testing.assert_array_equal(one.predict("a", shuffled), one.predict("a", frame.to_numpy()))
        with pytest.raises(ValueError, match="x must have the columns of training, found none named 'q'"):
            one.predict("a", frame[["p", "r"]])
    costs = pd.DataFrame(fed[0].c, columns=list("stuv"))
    named = dffl.fit(dffl.Federation([dffl.Client("a", frame, costs, dffl.TopK(4, 1))]), "local", **QUICK)
    named.save(tmp_path / "costs.dffl")
    turned = dffl.Federation([dffl.Client("a", frame, costs[list("vuts")], dffl.TopK(4, 1))])
    for one in (named, dffl.load(tmp_path / "costs.dffl")):
        assert one.cost_names == tuple("stuv")
        with pytest.raises(
            ValueError, match=r"test: c must have the columns of training, \('s', .*\), found \('v', 'u', 't', 's'\)"
        ):
            one.evaluate(turned)
    assert fit.evaluate(turned) is not None  # nobody named the costs that it was trained on
    renamed = dffl.Client("a", frame.rename(columns={"p": "z"}), fed[0].c, dffl.TopK(4, 1))
    with pytest.raises(ValueError, match=r"columns of training, \('p', 'q', 'r'\), found \('z', 'q', 'r'\)"):
        fit.evaluate(dffl.Federation([renamed]))
    with pytest.raises(ValueError, match="x must be numbers"):
        fit.predict("a", [["x", "y", "z"]])
