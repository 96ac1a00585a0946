"""Studies on a real Ray cluster of two nodes, both on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dffl.studies import Store, cluster, run
from dffl.studies.job import ONE_THREAD
from tests.studies import tasks

pytest.importorskip("ray", reason="needs the extra dffl[ray]")

ROOT = Path(__file__).parents[2]


def test_two_nodes_give_the_rows_of_one_machine(tmp_path):
    command = [sys.executable, "-m", "tests.studies.cluster_of_two", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert len(found["nodes"]) == 2, "both nodes should have had work"
    assert found["flags"] == [ONE_THREAD]
    assert found["well"] == [0]
    assert found["failed"]["1"] == "ValueError: number 1 is not to be had"
    assert sorted(found["failed"]) == ["1", "2", "3"]
    for name, study in (("rows", tasks.slow_study(0.05, count=6)), ("fits", tasks.fits_study())):
        alone = run(study, tmp_path / f"{name}-alone", workers=2, progress=False)
        assert not alone.failed
        pd.testing.assert_frame_equal(Store(tmp_path / name).rows(), alone.rows)


def test_an_address_that_does_not_answer_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "PATIENCE", 5.0)
    study = tasks.slow_study(0.0, count=1)
    with pytest.raises(ValueError, match=r"--ray 127\.0\.0\.1:9: no Ray cluster answers there") as caught:
        run(study, tmp_path / "out", ray="127.0.0.1:9", progress=False)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="--ray must be 'auto' or HOST:PORT, found 'my cluster'"):
        run(study, tmp_path / "out", ray="my cluster", progress=False)
