"""`dffl federation demo`: the promises in one command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dffl.deploy.ledger import OUTCOMES
from dffl.deploy.local_demo import run


def demo(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dffl", "federation", "demo", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, check=False)


def test_the_demo_says_in_json_what_it_promises(tmp_path: Path) -> None:
    done = demo("--rounds", "5", "--method", "ditto", "--kill", "site-2@3", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"sites", "rounds", "overhead_seconds", "start_seconds", "max_difference", "left_behind"}
    assert found["sites"] == ["site-1", "site-2", "site-3"]
    assert [one["round"] for one in found["rounds"]] == [1, 2, 3, 4, 5]
    for one in found["rounds"]:
        assert set(one) == {"round", "seconds", "bytes", "outcomes"}
        assert set(one["outcomes"]) == set(found["sites"])
        assert {outcome.partition(":")[0] for outcome in one["outcomes"].values()} <= set(OUTCOMES)
        assert one["bytes"] > 0
    assert found["max_difference"] == 0.0
    assert found["left_behind"] == []


@pytest.mark.parametrize("kill", ["site-9@1", "site-1", "site-1@99", "site-1@0", "@1", "site-1@x"])
def test_a_site_that_cannot_be_killed_is_refused_at_once(kill: str) -> None:
    with pytest.raises(ValueError, match="--kill must be SITE@ROUND"):
        run(3, 5, "fedavg", kill, None, print)


def test_a_method_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        run(3, 5, "nonsense", None, None, print)
