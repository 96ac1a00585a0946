"""The judge of `python -m benchmarks.integer`, and one tiny training of each competitor."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pytest

import dffl
from dffl.tables.description import read

work = pytest.importorskip("benchmarks.integer.work", reason="benchmarks/ is not here")

TINY = {"clients": 1, "samples": 6, "test": 5, "epochs": 1, "batch": 3}


def test_the_judge_packs_as_trying_everything_does() -> None:
    rng = np.random.default_rng(0)
    weights, capacity = rng.integers(1, 9, 8), 17
    plans = np.array([w for w in product((0, 1), repeat=8) if weights @ w <= capacity])
    profits = rng.normal(size=(50, 8))
    found = work.packings(profits, weights, capacity)
    assert (found @ weights <= capacity).all()
    np.testing.assert_allclose((found * profits).sum(axis=1), (profits @ plans.T).max(axis=1), rtol=1e-12)


def test_the_judge_walks_as_our_oracle_does() -> None:
    s = dffl.ShortestPath(*work.GRID)
    assert work.arcs() == s.arcs
    costs = np.random.default_rng(0).normal(size=(50, s.dim))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(work.shortest(costs), s.solve(costs))


def test_regret_is_zero_at_the_truth_and_not_elsewhere() -> None:
    data = work.knapsack(replace(work.KNAPSACK, **TINY), 0)
    assert work.regret("knapsack", data, data["c_test"]) == [0.0]
    assert 0 < work.regret("knapsack", data, -data["c_test"])[0] <= 1


@pytest.mark.parametrize("command", ["ours knapsack dp", "epo train knapsack scip"])
def test_competitors_train(command: str, tmp_path: Path) -> None:
    if command.startswith("epo") and any(find_spec(name) is None for name in ("pyepo", "torch", "ortools")):
        pytest.skip("needs PyEPO, PyTorch and OR-Tools")
    from benchmarks.integer.__main__ import with_probe
    from benchmarks.integer.children import Children

    case = replace(work.KNAPSACK, **TINY)
    work.written(tmp_path / "data.npz", with_probe("knapsack", work.knapsack(case, 0)))
    children = Children(tmp_path)
    found = children.run(*command.split(), "data.npz", "out.npz", "--case", json.dumps(asdict(case)))
    assert found is not None, children.failed
    out = work.read(tmp_path / "out.npz")
    assert out["predicted"].shape == (1, 5, work.ITEMS)
    assert np.abs(out["gradient"]).max() == 2


def test_tables_of_own_data_are_read_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = pytest.importorskip("benchmarks.own_data")
    for name, value in {"CLIENTS": 2, "ROWS": 12, "MANY_ROWS": 60, "PART": 20}.items():
        monkeypatch.setattr(own, name, value)
    own.write_rows(tmp_path)
    own.write_clients(tmp_path)
    for kind in own.KINDS:
        found = own.rows_of(kind, tmp_path) | own.federation_of(kind, tmp_path)
        assert all(one["seconds"] > 0 and one["memory"] > 0 for one in found.values())
        assert set(found) & set(own.AIMS)
    described = read(tmp_path / "crossfit.toml")
    assert described.method == "crossfit"
    assert (len(described.train), described.train.features, described.train.dim) == (2, own.FEATURES, own.DECISIONS)
    missed = {"seconds": 11.0, "processor": 6.0, "memory": 1.0}
    assert own.line("rows of csv, read", missed, 1.0).endswith("| missed |")
    assert own.line("rows of csv, read", missed | {"seconds": 9.0}, 1.0).endswith("| reached |")
    assert own.line("rows of csv, read", missed | {"seconds": 9.0, "memory": 5.0}, 1.0).endswith("| missed |")


def test_growth_is_the_cost_of_each_unit_over_that_of_the_first_size(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = pytest.importorskip("dffl_studies.bench.measure")
    # ten times the clients take 20 times as long: twice the cost of each
    monkeypatch.setattr(measure, "rounds", lambda seconds, clients: {"value": {20: 100.0, 200: 5.0}[clients]})
    assert measure.growth("clients", 1.0, (20, 200)) == {"value": 2.0, "curve": {"20": 1.0, "200": 2.0}}


def test_a_peer_without_an_environment_is_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measurements = pytest.importorskip("dffl_studies.bench.measurements")
    environments = pytest.importorskip("benchmarks.peers.environments")
    monkeypatch.setenv("DFFL_PEERS_DIR", str(tmp_path))
    monkeypatch.setitem(environments.ENVIRONMENTS, "nobody", ("./there-is-no-such-package",))
    peer = measurements.Measurement("nobody", ("x",), "s", python=lambda: environments.python_of("nobody"))
    [found] = measurements.run([peer], progress=False).results
    assert found.value is None
    assert found.error.startswith("cannot be installed: ")
    assert not list(tmp_path.glob("*/complete"))
