"""Writes the files of this folder. Run it in a checkout of version 0.2.0, which it is named after (see README.md)."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from machine import machine
from tests.deploy.in_memory import deployed
from tests.deploy.simulated import Stage, honest, simulated_time
from tests.deploy.test_resume import KilledError, killed_at
from tests.training.test_seam import _interrupt_after

import dffl
from dffl.cli import app
from dffl.deploy.credentials import make_request
from dffl.deploy.federation_plan import read_plan
from dffl.deploy.provisioning import create, sign_request
from dffl.tables.decisions import decide
from dffl.tables.model import OwnModel
from dffl.training import Settings

P, D = 3, 4
QUICK: dict[str, Any] = {"rounds": 1, "local_epochs": 1, "hidden": 4, "tau": 20.0, "progress": False}
LONGER = QUICK | {"rounds": 4, "local_epochs": 2}
MODEL = """\
NAME plant
ROWS
 N cost
 L most
 L switch_0
COLUMNS
    M1 'MARKER' 'INTORG'
    on_0 cost 1.5 switch_0 -2
    M2 'MARKER' 'INTEND'
    x_0 most 1 switch_0 1
    x_1 most 1
    x_2 most 1
    x_3 most 1
RHS
    RHS most 3.5
BOUNDS
 BV BND on_0
 UP BND x_0 2
 LO BND x_1 0.5
 UP BND x_1 1
 UP BND x_2 1
 UP BND x_3 1
ENDATA
"""
PLAN = """\
[federation]
name = "kept"
address = "localhost:8443"
sites = ["north", "south", "west"]
features = "x*"
costs = "c*"
inputs = 3
dimension = 4
min_rows = 4

[training]
method = "METHOD"
rounds = 4
local_epochs = 1
hidden = 4
batch_size = 8
seed = 3
OPTIONS

[rounds]
join_seconds = 300
dead_seconds = 600
quorum_seconds = 40
"""
OWN = """\
[federation]
features = FEATURES
costs = "price_*"
order = "date"
missing = "mean"
unit = "EUR"
seed = 0

[training]
method = "METHOD"
rounds = 2
local_epochs = 1
hidden = 4
OPTIONS

[[client]]
name = "north"
table = "north.csv"
set = { type = "top-k", k = 2 }

[[client]]
name = "south"
table = "south.csv"
sense = "max"
unit = "kWh"
set = { type = "zero-one-knapsack", weights = [1, 2, 3, 4], budget = 5 }
"""


def families() -> dict[str, Any]:
    """A set of every family that needs no function of the user."""
    rows = np.random.default_rng(3).uniform(0.2, 1, (3, D))
    return {
        "knapsack": dffl.FractionalKnapsack(np.linspace(0.5, 1.5, D), 0.4 * D),
        "topk": dffl.TopK(D, 2.5),
        "entropy": dffl.EntropySimplex(D, 0.8),
        "simplex": dffl.Simplex(D, 2.0),
        "box": dffl.Box(-np.ones(D), np.arange(1.0, D + 1)),
        "ball": dffl.Ball(np.ones(D), 2.0),
        "ellipsoid": dffl.Ellipsoid(np.zeros(D), np.diag(np.arange(1.0, D + 1))),
        "polytope": dffl.Polytope(A_ub=rows, b_ub=rows.sum(axis=1) / 2, lower=np.zeros(D), upper=np.ones(D)),
        "polytope with helpers": dffl.Polytope(
            A_ub=np.c_[rows, -np.ones(3)], b_ub=rows.sum(axis=1) / 2, lower=np.zeros(D + 1), upper=np.ones(D + 1),
            helpers=1, known_cost=[0.3],
        ),
        "items": dffl.ZeroOneKnapsack(np.arange(1.0, D + 1), 1.5 * D),
        "hours": dffl.ConsecutiveHours(D, 2),
        "path": dffl.ShortestPath(2, 2),
        "jobs": dffl.Assignment(2),
        "integer": dffl.MixedInteger(
            A_ub=[[1, 2, 3, 4, -2]], b_ub=[4], lower=np.zeros(D + 1), upper=np.array([2, 2, 2, 2, 3.0]),
            integer=[0, 1, 4], helpers=1, known_cost=[0.7], nodes=5000, seconds=20,
        ),
        "file": dffl.ModelFile(text=MODEL, format="mps", name="plant.mps", predicted="x_*"),
        "battery": dffl.Battery(D, capacity=2.0, charge=1.0, wear=0.1, initial=0.5),
    }  # fmt: skip


def client(name: str, s: Any, n: int = 8, maximize: bool = False, features: int = P) -> dffl.Client:
    """A client with costs that depend on its features."""
    rng = np.random.default_rng([1, *name.encode()])
    x = rng.normal(size=(n, features))
    loading = np.random.default_rng(1).normal(size=(features, D))
    return dffl.Client(name, x, 2 + x @ loading + 0.1 * rng.normal(size=(n, D)), s, maximize)


def rows(features: int = P) -> np.ndarray:
    """The rows that are decided for."""
    return np.random.default_rng(7).normal(size=(5, features))


def cheapest(c: np.ndarray) -> np.ndarray:
    """A user's own solver: all of the cheapest."""
    return np.eye(c.size)[np.argmin(c)]


def fits(out: Path) -> None:
    """Models of `dffl.fit`, and what each predicts and decides for each client."""
    expected = {}

    def keep(name: str, fit: Any, x: np.ndarray) -> None:
        fit.save(out / f"{name}.dffl")
        expected[f"{name}|x"] = x
        for who in fit.members:
            expected[f"{name}|{who}|predicted"] = fit.predict(who, x)
            expected[f"{name}|{who}|decided"] = fit.decide(who, x)

    sets = families()
    turned = {"knapsack", "topk", "items", "ball"}
    everyone = dffl.Federation([client(name, s, maximize=name in turned) for name, s in sets.items()])
    keep("families", dffl.fit(everyone, "fedavg", loss="mse", **QUICK), rows())
    two = dffl.Federation([client("a", sets["topk"]), client("b", sets["knapsack"], 11, maximize=True)])
    keep("crossfit", dffl.fit(two, "crossfit", folds=2, epochs=(0, 1), **QUICK), rows())
    keep("interp", dffl.fit(two, "interp-spo", dtype="float64", **QUICK), rows())
    keep("trees", dffl.fit(two, "trees", trees=5), rows())
    keep("nearest", dffl.fit(two, "nearest"), rows())
    forecasts = dffl.Federation([client("a", sets["topk"], features=D + 2), client("b", sets["box"], 11, features=D + 2)])
    keep("forecast", dffl.fit(forecasts, "fedavg", forecast=True, **LONGER), rows(D + 2))
    asked = dffl.Federation([client("a", dffl.Solver(cheapest, D, name="cheapest"))])
    keep("solver", dffl.fit(asked, "mean-cost"), rows())
    np.savez_compressed(out / "expected.npz", **expected)


def checkpoint(out: Path) -> None:
    """A fit that was interrupted in the middle, its data, and what the whole fit predicts."""
    sets = families()
    fed = dffl.Federation([client(name, sets["topk"]) for name in "abc"])
    whole = dffl.fit(fed, "fedavg", aggregate="momentum", **LONGER)
    with pytest.MonkeyPatch.context() as patch:
        _interrupt_after(patch, 2)  # of four rounds, each of one call
        with pytest.raises(KeyboardInterrupt):
            dffl.fit(fed, "fedavg", aggregate="momentum", checkpoint=out / "run.checkpoint", **LONGER)
    expected = {"rows": rows()}
    for one in fed:
        expected |= {f"{one.name}|x": one.x, f"{one.name}|c": one.c, f"{one.name}|predicted": whole.predict(one.name, rows())}
    np.savez_compressed(out / "expected.npz", **expected)
    changed = Settings(seed=3, forecast=True, aggregate="momentum", privacy="client")
    digests = {"defaults": Settings().digest(), "changed": changed.digest()}
    (out / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")


def site_table(name: str, days: int = 40) -> pd.DataFrame:
    """Days with a weather, a forecast of the prices, an empty cell, and prices."""
    rng = np.random.default_rng([2, *name.encode()])
    warm, kind = rng.normal(10, 5, days).round(1), rng.choice(["clear", "rain"], days)
    prices = (30 + warm[:, None] * np.linspace(-1, 1, D) + 8 * (kind == "rain")[:, None] + rng.normal(0, 1, (days, D))).round(2)
    forecast = (prices + rng.normal(0, 2, prices.shape)).round(2)
    table = pd.DataFrame({"date": pd.date_range("2025-01-01", periods=days).strftime("%Y-%m-%d"), "kind": kind, "warm": warm})
    table.loc[5, "warm"] = np.nan
    for k in range(D):
        table[f"forecast_{k}"], table[f"price_{k}"] = forecast[:, k], prices[:, k]
    return table


def own_data(out: Path) -> None:
    """Models of `dffl fit`, the one that a client exports, and what they decide for new rows."""
    new = site_table("new", 6)[["date", "kind", "warm", *(f"forecast_{k}" for k in range(D))]]
    new.to_csv(out / "new.csv", index=False)
    with tempfile.TemporaryDirectory() as temporary:
        folder, expected = Path(temporary), {}
        for name in ("north", "south"):
            site_table(name).to_csv(folder / f"{name}.csv", index=False)
        for name, method, features, options in (
            ("model", "crossfit", '["date", "kind", "warm"]', "folds = 2\nepochs = [0, 1]"),
            ("forecast", "fedavg", '["kind", "warm", "forecast_*"]', "forecast = true"),
        ):
            text = OWN.replace("METHOD", method).replace("FEATURES", features).replace("OPTIONS", options)
            (folder / f"{name}.toml").write_text(text)
            app(["fit", str(folder / f"{name}.toml"), "-o", str(out / f"{name}.dffl"), "--quiet"], standalone_mode=False)
        app(["export", str(out / "model.dffl"), "-c", "south", "-o", str(out / "south.dffl")], standalone_mode=False)
        for name in ("model", "forecast", "south"):
            model = OwnModel.load(out / f"{name}.dffl")
            for who in model.fit.members:
                found = decide(model, who, out / "new.csv").as_json()
                expected[f"{name}|{who}"] = {key: found[key] for key in ("unit", "expected", "ranges", "keys", "decisions")}
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def federation(out: Path) -> None:
    """A coordinator's folder with half of a run, a kit, and the state of a site whose rounds are over."""
    coordinator = out / "coordinator"
    coordinator.mkdir()
    text = PLAN.replace("METHOD", "fedavg").replace("OPTIONS", 'aggregate = "momentum"\nclient_fraction = 0.7')
    (coordinator / "plan.toml").write_text(text)
    create(coordinator / "plan.toml")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sign_request(coordinator, make_request(folder / "north", "north"), False)
        plan = read_plan(coordinator / "plan.toml")
        with simulated_time() as clock, killed_at(-1) as moments:
            whole = Stage.of(plan, clock, honest).train(folder / "whole")
        (coordinator / "runs" / "1").mkdir(parents=True)
        third = [place for place, what in enumerate(moments) if what == "after the ledger"][2]  # ahead of the state
        with killed_at(third), pytest.raises(KilledError), simulated_time() as clock:
            Stage.of(plan, clock, honest).train(coordinator / "runs" / "1")
        shutil.rmtree(coordinator / "secrets")  # keys are nobody's example
        (coordinator / "runs" / "1" / "noise.key").unlink()
        (coordinator / "keys.lock").unlink()
        expected = {"shared": whole.finals[0].shared, "round": whole.finals[0].round}
        expected |= {f"memory|{name}": array for name, array in whole.finals[0].memory.items()}
        expected["digest"] = np.asarray(plan.digest)
        site_plan = out / "site-plan.toml"
        site_plan.write_text(PLAN.replace("METHOD", "ditto").replace("OPTIONS", ""))
        fed = dffl.Federation([client(name, families()["topk"], 9) for name in ("north", "south", "west")])
        fits_ = deployed(read_plan(site_plan), fed, folder / "sites").fits
        run = next(one for one in (folder / "sites" / "north").iterdir() if one.is_dir())
        shutil.copytree(run, out / "site" / run.name, ignore=shutil.ignore_patterns("done", "noise.key"))
        expected |= {"x": fed[0].x, "c": fed[0].c, "rows": rows(), "predicted": fits_["north"].predict("north", rows())}
    np.savez_compressed(out / "expected.npz", **expected)


if __name__ == "__main__":
    if dffl.__version__ != "0.2.0":
        sys.exit(f"these are files of dffl 0.2.0, found {dffl.__version__}")
    home = Path(sys.argv[1])
    for part in (fits, checkpoint, own_data, federation):
        folder = home / part.__name__
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        part(folder)
    (home / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")
