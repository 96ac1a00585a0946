"""`dffl federation demo`: the promises in one command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dffl.deploy.ledger import OUTCOMES


def demo(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dffl", "federation", "demo", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, check=False)


def test_the_demo_says_in_json_what_it_promises(tmp_path: Path) -> None:
    done = demo("--rounds", "5", "--method", "ditto", "--kill", "site-2@3", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"sites", "rounds", "overhead_seconds", "start_seconds", "max_difference", "left_behind"}
    assert found["sites"] == ["site-1", "site-2", "site-3"]
    assert [one["round"] for one in found["rounds"]] == [0, 1, 2, 3, 4]
    for one in found["rounds"]:
        assert set(one) == {"round", "seconds", "bytes", "outcomes"}
        assert set(one["outcomes"]) == set(found["sites"])
        assert {outcome.partition(":")[0] for outcome in one["outcomes"].values()} <= set(OUTCOMES)
        assert one["bytes"] > 0
    assert found["max_difference"] == 0.0
    assert found["left_behind"] == []


def test_a_demo_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    for words in (["--kill", "site-9@1"], ["--kill", "site-1"], ["--kill", "site-1@99"], ["--method", "nonsense"]):
        done = demo(*words, "--json", folder=tmp_path)
        assert done.returncode == 3
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""
