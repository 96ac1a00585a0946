"""`chosen` without an order: out-of-fold regret on the same folds, and the best method as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dffl
from dffl import choosing
from dffl.fitting import Fit
from dffl.judging import judged, regrets_at
from dffl.tables.reading import words_of

SHORT = {"rounds": 1, "local_epochs": 1, "hidden": 2}


def federation(error: float | None = None) -> dffl.Federation:
    """Costs that are linear in the features, and a forecast with an error."""
    clients, rng = [], np.random.default_rng(0)
    for name in ("north", "south"):
        x = rng.normal(size=(40, 2))
        c = x @ rng.normal(size=(2, 3)) + 5 + rng.normal(0, 0.05, (40, 3))
        forecast = None if error is None else c + rng.normal(0, error, c.shape)
        clients.append(dffl.Client(name, x, c, dffl.TopK(3, 1), forecast=forecast))
    return dffl.Federation(clients)


def test_the_best_on_unseen_samples_is_chosen_and_stays_as_it_is(tmp_path: Any) -> None:
    fed = federation()
    best = choosing.fit_best(fed, ["mean-cost", "ridge"], progress=False, **SHORT)
    found = best.about["chosen"]
    assert (best.method, found["rule"], [name for name, _ in found["means"]]) == ("ridge", "ridge", ["ridge", "mean-cost"])
    alone = dffl.fit(fed, "ridge", **SHORT)
    np.testing.assert_array_equal(best.predict("north", fed["north"].x), alone.predict("north", fed["north"].x))
    best.save(tmp_path / "m.dffl")
    loaded = dffl.load(tmp_path / "m.dffl")
    assert loaded.about["chosen"] == found


def test_every_sample_is_judged_by_a_fit_that_has_not_seen_it() -> None:
    fed = federation()
    lost = choosing.held_out("mean-cost", dffl.fit(fed, "mean-cost"), fed, {})  # type: ignore[arg-type]
    how = dffl.Settings().for_clients(fed).splitting
    one = fed["north"]
    mine = np.zeros(one.n)
    for held in how.folds(one, 5):
        mean = np.delete(one.c, held, axis=0).mean(axis=0)
        mine[held] = regrets_at(one.rows(held), np.tile(mean, (len(held), 1)))
    assert lost["north"]["relative_regret"] == pytest.approx(judged(mine, one)["relative_regret"])


def test_the_users_forecast_is_chosen_where_it_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "CANDIDATES", ("mean-cost",))
    found = dffl.fit(federation(0.01), "chosen", **SHORT)
    assert isinstance(found, Fit)
    assert found.method == "forecast"


def test_a_best_objective_of_zero_is_no_reason_for_the_first_method() -> None:
    """One of the items costs nothing in each row: every relative regret is infinite, and the regrets decide."""
    rng, clients = np.random.default_rng(0), []
    for name in ("north", "south"):
        x = rng.normal(size=(40, 2))
        c = x @ rng.normal(size=(2, 3))
        clients.append(dffl.Client(name, x, c - c.min(axis=1, keepdims=True), dffl.TopK(3, 1)))
    fed = dffl.Federation(clients)
    best = choosing.fit_best(fed, ["mean-cost", "ridge"], progress=False, **SHORT)
    assert best.method == "ridge"
    said = words_of(best.about["chosen"])
    assert said.endswith("had not seen. The best possible objective of all clients is zero: no relative regret can be given.")


def test_methods_are_judged_with_their_options() -> None:
    """They were judged with the usual ones; a method that was asked for twice was left out."""
    rng, clients = np.random.default_rng(0), []
    for name in ("north", "south"):
        x = rng.normal(size=(60, 1))
        c = 5 + np.hstack([x**2, np.ones((60, 1)), 2 - x**2])
        clients.append(dffl.Client(name, x, c, dffl.TopK(3, 1)))
    degrees = [("ridge", {"degree": 1}), ("ridge", {"degree": 2})]
    best = choosing.fit_best(dffl.Federation(clients), degrees, progress=False, **SHORT)  # type: ignore[arg-type]
    first, second = best.about["chosen"]["means"]
    assert (first[0], second[0]) == ("ridge(degree=2)", "ridge(degree=1)")
    assert first[1] < 1e-3 < second[1]
