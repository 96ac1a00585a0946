"""Studies on a real Ray cluster of two nodes, both on this machine."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dffl import ray_cluster
from dffl_studies.running import Store, run
from dffl_studies.running.job import ONE_THREAD
from studies.tests.running import tasks

pytest.importorskip("ray", reason="needs the extra dffl-studies[ray]")

ROOT = Path(__file__).parents[3]
PATHS = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
ENVIRONMENT = os.environ | {"PYTHONPATH": PATHS, "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.mark.slow
def test_two_nodes_give_the_rows_of_one_machine(tmp_path):
    command = [sys.executable, "-m", "studies.tests.running.cluster_of_two", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert len(found["nodes"]) == 2, "both nodes should have had work"
    assert found["flags"] == [ONE_THREAD]
    assert found["notes"] == {node: ["seen"] for node in found["nodes"]}, "every node should have had the study's places"
    assert not found["told"], "the environment should not have reached the workers"
    assert found["well"] == [0]
    assert found["failed"]["1"] == "ValueError: number 1 is not to be had"
    assert sorted(found["failed"]) == ["1", "2", "3"]
    for name, study in (("rows", tasks.slow_study(0.05, count=6)), ("fits", tasks.fits_study())):
        alone = run(study, tmp_path / f"{name}-alone", workers=2, progress=False)
        assert not alone.failed
        pd.testing.assert_frame_equal(Store(tmp_path / name).rows(), alone.rows)


@pytest.mark.parametrize("victim", ["cluster", pytest.param("own node", marks=pytest.mark.slow)])
def test_a_cluster_that_dies_ends_the_run_soon_with_one_clear_line(tmp_path, victim):
    command = [sys.executable, "-m", "studies.tests.running.cluster_of_two", "--hold"]
    options = {"cwd": ROOT, "env": ENVIRONMENT, "text": True, "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options) as holder:
        try:
            address, own_node = holder.stdout.readline().split()
            command = [sys.executable, "-m", "studies.tests.running.tasks", str(tmp_path / "out"), "0.5", address]
            with subprocess.Popen(command, stderr=subprocess.PIPE, **options) as driver:
                while driver.poll() is None and len(list((tmp_path / "out").glob("parts/*.parquet"))) < 4:
                    time.sleep(0.1)
                if victim == "cluster":
                    os.killpg(holder.pid, signal.SIGKILL)
                else:
                    os.kill(int(own_node), signal.SIGKILL)
                died = time.monotonic()
                try:
                    _, errors = driver.communicate(timeout=120)
                finally:
                    driver.kill()
            took = time.monotonic() - died
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(holder.pid, signal.SIGKILL)
    last = errors.strip().splitlines()[-1]
    assert last.startswith("OSError: the Ray cluster is gone (ConnectionRefusedError"), errors
    assert last.endswith("); finished rows are safe")
    assert driver.returncode == 1
    assert took < 25, "about 11 seconds on an idle machine; Ray itself takes a minute"
    assert len(Store(tmp_path / "out").rows()) >= 4 * 3
    assert Store(tmp_path / "out").failures() == set()


def test_an_address_that_does_not_answer_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(ray_cluster, "PATIENCE", 5.0)
    study = tasks.slow_study(0.0, count=1)
    with pytest.raises(ValueError, match=r"--ray 127\.0\.0\.1:9: no Ray cluster answers there") as caught:
        run(study, tmp_path / "out", ray="127.0.0.1:9", progress=False)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="--ray must be 'auto' or HOST:PORT, found 'my cluster'"):
        run(study, tmp_path / "out", ray="my cluster", progress=False)
