"""Every method that can be deployed gives each site the model of `dffl.fit` on the same data, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.batched import predict_each
from dffl.deploy.ledger import ACCEPTED
from dffl.deploy.replay import replayed
from dffl.deploy.site_run import federated_jobs, placeholder_run
from dffl.fitting import Fit
from dffl.training.methods import METHODS
from tests.deploy.in_memory import deployed
from tests.deploy.made import DIM, INPUTS, a_plan
from tests.federations import client, feasible_sets

NAMES = ("north", "south", "west")
FOUR = ("east", *NAMES)
SOON = {"join_seconds": 300, "quorum_seconds": 2, "dead_seconds": 600}
"""A failure shows soon; these sites do not beat."""


def federation(names: tuple[str, ...] = NAMES) -> dffl.Federation:
    """Sites of different numbers of samples, but of shapes that need few programs: to compile them takes most of the time."""
    own = feasible_sets()["topk"]
    return dffl.Federation([client(name, own, n=17 + place, maximize=place == 1) for place, name in enumerate(names)])


QUICK: dict[str, Any] = {"rounds": 2, "local_epochs": 1, "batch_size": 8, "hidden": 4, "seed": 3}
CASES: dict[str, dict[str, Any]] = {
    "local": {"method": "local"},
    "mean-cost": {"method": "mean-cost"},
    "ridge": {"method": "ridge"},
    "fedavg": {"method": "fedavg"},
    "fedavg, sampled": {"method": "fedavg", "client_fraction": 0.7, "rounds": 4},
    "fedavg, float64": {"method": "fedavg", "dtype": "float64"},
    "fedavg, loop": {"method": "fedavg", "engine": "loop"},
    "fedavg, a schedule": {"method": "fedavg", "schedule": "cosine", "optimiser": "sgd"},
    "fedavg, momentum": {"method": "fedavg", "aggregate": "momentum", "rounds": 3},
    "fedavg, server-adam": {"method": "fedavg", "aggregate": "server-adam", "rounds": 3},
    "fedavg, median": {"method": "fedavg", "aggregate": "median"},
    "fedavg, trimmed-mean": {"method": "fedavg", "aggregate": {"name": "trimmed-mean", "share": 0.34}},
    "fedavg, pooled units": {"method": "fedavg", "pooled_units": True},
    "fedprox": {"method": "fedprox"},
    "scaffold": {"method": "scaffold", "rounds": 3},
    "scaffold, sampled": {"method": "scaffold", "client_fraction": 0.7, "rounds": 4},
    "ditto": {"method": "ditto"},
    "ditto, sampled": {"method": "ditto", "client_fraction": 0.7, "rounds": 4},
    "fedrep": {"method": "fedrep"},
    "apfl": {"method": "apfl", "rounds": 3},
    "clustered": {"method": "clustered", "clusters": 2},
    "clustered, tuned": {"method": "clustered", "clusters": 2, "epochs": [0, 1, 2]},
    "interp-spo": {"method": "interp-spo"},
    "interp-mse": {"method": "interp-mse"},
    "interp-refit": {"method": "interp-refit"},
    "finetune": {"method": "finetune", "epochs": [0, 1, 2]},
    "finetune, pooled units": {"method": "finetune", "epochs": [0, 1], "pooled_units": True},
    "finetune-mix": {"method": "finetune-mix", "epochs": [0, 1, 2]},
    "crossfit": {"method": "crossfit", "folds": 2, "epochs": [0, 1, 2]},
    "crossfit, pooled units": {"method": "crossfit", "folds": 2, "epochs": [0, 1], "pooled_units": True},
    "crossfit-turned": {"method": "crossfit-turned", "folds": 2, "epochs": [0, 1]},
    "local-tuned": {"method": "local-tuned", "folds": 2, "epochs": [0, 1]},
    "fedrspo": {"method": "fedrspo"},
    "trees": {"method": "trees"},
    "nearest": {"method": "nearest"},
}
CANNOT = {"ridge-pooled": "sends more than a model"}
NEED_OTHERS = {
    "oracle-interp-spo": "validation",
    "oracle-interp-mse": "validation",
    "forecast": "clients that bring a forecast",
}
"""Methods that need what this plan does not have: a validation federation, clients that bring a forecast."""


def planned(training: dict[str, Any], names: tuple[str, ...] = NAMES) -> Any:
    wire = {"statistics": "pooled"} if training.get("pooled_units") else {}
    return a_plan(names, federation={"seed": QUICK["seed"]}, training=QUICK | {"seed": None} | training, wire=wire, rounds=SOON)


def require_same(fits: dict[str, Fit], whole: Fit, data: dffl.Federation) -> None:
    assert list(fits) != []
    for one in data:
        own = fits[one.name]
        assert list(own.members) == [one.name]
        np.testing.assert_array_equal(own.predict(one.name, one.x), whole.predict(one.name, one.x))
        assert own.members[one.name].choices == whole.members[one.name].choices
        assert own.method == whole.method
        assert own.settings == whole.settings
        if whole.shared is not None and whole.settings.pooled_units:
            assert own.shared is not None
            [mine, theirs] = [predict_each([model], [one.x], data.dim)[0] for model in (own.shared, whole.shared)]
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("training", CASES.values(), ids=CASES.keys())
def test_a_deployment_gives_every_site_the_model_of_fit(training: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("sklearn") if training["method"] == "trees" else None
    data = federation()
    plan = planned(training)
    found = deployed(plan, data, tmp_path)
    assert set(found.fits) == set(NAMES)
    assert all(outcome == ACCEPTED for record in found.records for outcome in record.outcomes.values())
    keywords = {key: value for key, value in training.items() if key != "method"} | {"aggregate": plan.settings.aggregate}
    require_same(found.fits, dffl.fit(data, training["method"], progress=False, **QUICK | keywords), data)


@pytest.mark.parametrize("rule", ["row", "time"])
def test_equal_rows_and_days_are_held_out_together_at_sites_that_are_apart(rule: str, tmp_path: Path) -> None:
    """The sites hold rows of each other, of days that differ; none of them sees another's."""
    days, pool = np.arange(40.0), client("pool", feasible_sets()["topk"], n=40)
    data = dffl.Federation([
        dffl.Client(name, pool.x[first:last], pool.c[first:last], pool.set, times=days[first:last])
        for name, first, last in (("north", 0, 24), ("south", 8, 33), ("west", 16, 40))
    ])  # fmt: skip
    training = QUICK | {"seed": None, "method": "crossfit", "folds": 2, "epochs": [0, 1]}
    how = {"split": rule} | ({"order": "day", "train_from": 0, "test_from": 40} if rule == "time" else {})
    plan = a_plan(NAMES, federation={"seed": QUICK["seed"], **how}, training=training, rounds=SOON)
    fit = dffl.fit(data, progress=False, **QUICK, folds=2, epochs=[0, 1], split=rule, period=plan.settings.period)
    require_same(deployed(plan, data, tmp_path).fits, fit, data)
    parts = [fit.settings.splitting.folds(one, 2)[0] for one in data]
    held = [set(one.row_keys[part].tolist()) for one, part in zip(data, parts, strict=True)]
    kept = [set(np.delete(one.row_keys, part).tolist()) for one, part in zip(data, parts, strict=True)]
    assert not set.union(*held) & set.union(*kept)


@pytest.mark.parametrize("method", ["forecast", "fedavg"])
def test_a_deployment_with_a_forecast_too(method: str, tmp_path: Path) -> None:
    brings = [
        dffl.Client(
            one.name, one.x, one.c, one.set, one.maximize, forecast=one.c + np.sin(np.arange(one.c.size)).reshape(-1, DIM)
        )
        for one in federation()
    ]
    data = dffl.Federation(brings)
    more = {"seed": QUICK["seed"], "forecast": "f*", "inputs": INPUTS + DIM}
    plan = a_plan(NAMES, federation=more, training=QUICK | {"seed": None, "method": method}, rounds=SOON)
    assert plan.settings.forecast
    require_same(deployed(plan, data, tmp_path).fits, dffl.fit(data, method, progress=False, **QUICK), data)


def test_a_deployment_with_features_of_items(tmp_path: Path) -> None:
    items = np.random.default_rng(5).normal(size=(40, DIM, 2))
    brings = [dffl.Client(one.name, one.x, one.c, one.set, one.maximize, items=items[: one.n]) for one in federation()]
    data = dffl.Federation(brings)
    more = {"seed": QUICK["seed"], "inputs": INPUTS + 2 * DIM}
    patterns = {"features": ["wind_*"], "known": {"weight": list(range(DIM))}}
    plan = a_plan(NAMES, federation=more, training=QUICK | {"seed": None}, rounds=SOON, items=patterns)
    assert plan.settings.item_features == 2
    require_same(deployed(plan, data, tmp_path).fits, dffl.fit(data, "fedavg", progress=False, **QUICK), data)


REFUSED = {"south": {(0, 1), (1, 0)}, "west": {(0, 0), (0, 1), (2, 1)}}
"""Rounds in which an update is refused: in the middle, at once, and in two rounds running."""
MISSING = [
    "fedavg", "fedavg, momentum", "scaffold", "ditto", "fedrep", "apfl", "clustered", "crossfit", "finetune-mix", "interp-spo",
]  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
def test_with_updates_missing_it_gives_the_models_of_the_same_participants(case: str, tmp_path: Path) -> None:
    training = {"rounds": 4} | CASES[case]
    training["rounds"] = max(training["rounds"], 4)
    data, plan = federation(FOUR), planned(training, FOUR)
    found = deployed(plan, data, tmp_path, REFUSED)
    missing = {(name, one.job, one.round) for one in found.records for name, what in one.outcomes.items() if what != ACCEPTED}
    jobs = {one.job for one in found.records}
    assert missing == {(name, *at) for name, places in REFUSED.items() for at in places if at[0] in jobs}
    require_same(found.fits, replayed(data, plan.settings, plan.one_method, found.records), data)


def test_a_method_that_sends_more_than_a_model_is_refused() -> None:
    for method, why in CANNOT.items():
        plan = planned({"method": method})
        with (
            placeholder_run(dict.fromkeys(NAMES, 100), plan.settings, INPUTS, DIM) as run,
            pytest.raises(ValueError, match=rf"method '{method}' cannot be deployed.*{why}"),
        ):
            federated_jobs(run, plan.one_method)


def test_all_methods_are_looked_at() -> None:
    assert {case["method"] for case in CASES.values()} | set(CANNOT) | set(NEED_OTHERS) == set(METHODS)
