"""Clients in the actors of a Ray cluster: the numbers of one process, also after a loss; and what is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.training import Run, Settings
from dffl.training.engines import on_ray
from tests.federations import mixed

ray = pytest.importorskip("ray", reason="needs the extra dffl[ray]")
pytest.importorskip("ray.util.scheduling_strategies")
ROOT = Path(__file__).parents[2]
HOW: dict[str, Any] = {"rounds": 4, "local_epochs": 1, "batch_size": 8, "progress": False, "client_fraction": 0.7}


class Reference:
    """What a call will give: pickled, or an error."""

    def __init__(self, value: Any):
        self.value = value


class TaskError(ray.exceptions.RayTaskError):
    """An error of what an actor did."""

    def __init__(self, cause: Exception):
        self.cause = cause


class FewNodes:
    """Ray's calls on nodes in this process, which share only what is pickled. ``losses`` are the orders that lose a node."""

    exceptions = ray.exceptions

    def __init__(self, port: int, nodes: int = 2, losses: tuple[int, ...] = ()):
        self.port, self.count, self.losses, self.asked = port, nodes, losses, 0

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address=f"127.0.0.1:{self.port}", get_node_id=lambda: "0")

    def nodes(self) -> list[dict[str, Any]]:
        node = {"Alive": True, "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": self.port}
        return [{"NodeID": f"{number + 1:056x}", **node} for number in range(self.count)]

    def remote(self, **_: Any) -> Any:
        return lambda kind: SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: Remote(self, kind())))

    def wait(self, pending: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return pending[-1:], pending[:-1]  # out of order

    def get(self, reference: Any, timeout: float | None = None) -> Any:
        if isinstance(reference.value, Exception):
            raise reference.value
        return ray.cloudpickle.loads(reference.value)


class Remote:
    """An actor: what crosses is pickled, and a lost one answers nothing any more."""

    def __init__(self, cluster: FewNodes, actor: Any):
        self.cluster, self.actor, self.lost = cluster, actor, False

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *given: self.called(name, given))

    def called(self, name: str, given: tuple[Any, ...]) -> Any:
        if name == "ask":
            self.cluster.asked += 1
            self.lost = self.lost or self.cluster.asked in self.cluster.losses
        if self.lost:
            return Reference(ray.exceptions.ActorDiedError())
        try:
            plain = [self.cluster.get(one) if isinstance(one, Reference) else one for one in given]
            value = getattr(self.actor, name)(*ray.cloudpickle.loads(ray.cloudpickle.dumps(plain)))
        except ValueError as error:
            return Reference(TaskError(error))
        return Reference(ray.cloudpickle.dumps(value))


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes clusters of nodes in this process, behind a port that answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as server:

        def make(**options: Any) -> FewNodes:
            cluster = FewNodes(server.getsockname()[1], **options)
            monkeypatch.setitem(sys.modules, "ray", cluster)
            return cluster

        yield make


def same(a: dffl.Fit, b: dffl.Fit, federation: dffl.Federation) -> None:
    pd.testing.assert_frame_equal(a.history, b.history, check_exact=True)
    pd.testing.assert_frame_equal(a.evaluate(federation), b.evaluate(federation), check_exact=True)
    for client in federation:
        np.testing.assert_array_equal(a.predict(client.name, client.x), b.predict(client.name, client.x))


@pytest.mark.parametrize("losses", [(), (3, 6)])
def test_the_numbers_are_those_of_one_process_also_after_losses(nodes: Any, losses: tuple[int, ...]) -> None:
    federation, cluster = mixed(families=["topk", "entropy"]), nodes(losses=losses)
    found = dffl.fit(federation, "scaffold", engine="ray", **HOW)
    assert cluster.asked == 7 + len(losses), "a lost order is sent again, and no other one"
    same(found, dffl.fit(federation, "scaffold", **HOW), federation)


def test_folds_and_what_clients_keep(nodes: Any) -> None:
    federation, _ = mixed(families=["topk"]), nodes(nodes=2, losses=(2, 4, 9))
    how = HOW | {"folds": 2, "epochs": (0, 2)}
    same(dffl.fit(federation, "crossfit", engine="ray", **how), dffl.fit(federation, "crossfit", **how), federation)


def test_clients_on_disk_are_read_at_the_nodes(nodes: Any, tmp_path: Path) -> None:
    nodes()
    federation = mixed(families=["topk"])
    columns = [*(f"x{k}" for k in range(3)), *(f"c{k}" for k in range(5))]
    clients = []
    for client in federation:
        pd.DataFrame(np.hstack([client.x, client.c]), columns=columns).to_parquet(tmp_path / f"{client.name}.parquet")
    stored = dffl.ParquetFederation(tmp_path, features=columns[:3], costs=columns[3:], set=federation[0].set)
    clients = dffl.Federation(list(stored))
    how = HOW | {"pooled_units": True}
    same(dffl.fit(stored, "fedavg", engine="ray", **how), dffl.fit(clients, "fedavg", **how), clients)


def test_an_interrupted_fit_continues_to_the_same_bits(nodes: Any, tmp_path: Path) -> None:
    federation, saved = mixed(families=["topk"]), tmp_path / "run.checkpoint"
    nodes(losses=tuple(range(3, 100)))
    with pytest.raises(OSError, match=r"engine 'ray': the clients of a node were lost 5 times \(ActorDiedError"):
        dffl.fit(federation, "scaffold", engine="ray", checkpoint=saved, **HOW)
    assert saved.exists(), "whole rounds are saved"
    nodes()
    found = dffl.fit(federation, "scaffold", engine="ray", checkpoint=saved, **HOW)
    same(found, dffl.fit(federation, "scaffold", **HOW), federation)


def test_an_error_at_a_node_is_that_of_one_process(nodes: Any, tmp_path: Path) -> None:
    nodes()
    columns = [*(f"x{k}" for k in range(3)), *(f"c{k}" for k in range(5))]
    for client in mixed(families=["topk"]):
        pd.DataFrame(np.hstack([client.x, client.c]), columns=columns).to_parquet(tmp_path / f"{client.name}.parquet")
    stored = dffl.ParquetFederation(tmp_path, features=columns[:3], costs=columns[3:], set=dffl.TopK(5, 2))
    (tmp_path / "topk-1.parquet").unlink()
    with pytest.raises(ValueError, match=r"topk-1.parquet: client 'topk-1': the file is missing"):
        dffl.fit(stored, "fedavg", engine="ray", **HOW | {"client_fraction": 1.0})


def test_nodes_with_other_versions_are_refused(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes()
    monkeypatch.setattr(on_ray.ClientsActor, "versions", lambda self: on_ray.versions() | {"dffl": "0.1.0"})
    with pytest.raises(ValueError, match=r"^engine 'ray': node 127\.0\.0\.1 has dffl 0\.1\.0, this process ") as error:
        dffl.fit(mixed(families=["topk"]), "fedavg", engine="ray", **HOW)
    assert str(error.value).endswith("; all nodes need the same versions")
    assert "\n" not in str(error.value)


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(ValueError, match=r"^engine 'ray': 127\.0\.0\.1:9: no Ray cluster answers there \(.*\); start one") as e:
        dffl.fit(mixed(families=["topk"]), "fedavg", engine="ray", **HOW)
    assert "\n" not in str(e.value)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"^engine 'ray' needs the extra: pip install 'dffl\[ray\]'$"):
        Run(mixed(families=["topk"]), Settings(engine="ray")).engine()


@pytest.mark.slow
def test_two_nodes_of_which_one_is_killed() -> None:
    command = [sys.executable, "-m", "tests.training.cluster_of_two", "fedavg,crossfit,local"]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "300"}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found == {"fedavg": True, "crossfit": True, "local": True, "after a loss": True, "made again": 1, "killed": 1}
