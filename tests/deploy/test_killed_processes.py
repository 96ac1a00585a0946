"""Real processes, killed and paused: the run goes on, resumes, and ends with the same model, bit for bit."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from dffl.deploy.ledger import ACCEPTED, DEAD
from dffl.deploy.messages import KINDS
from dffl.deploy.run_state import FINISHED
from tests.deploy.real import Real


def test_server_and_all_processes_killed_in_the_middle_of_a_round(tmp_path: Path) -> None:
    """Sites keep a state of their own (`ditto`), the server a memory (momentum); a site is paused, so that no round ends."""
    with Real(tmp_path, "ditto", 6, {"aggregate": "momentum"}, {"dead_seconds": 100}, {"scalars": []}) as real:
        real.serve()
        real.join()
        real.train()
        real.until_rounds(1)
        real.signalled("site-3", signal.SIGSTOP)
        before = len(real.records)
        real.signalled("coordinator", signal.SIGKILL)
        real.serve()  # goes on by itself
        real.signalled("site-3", signal.SIGCONT)
        real.until_rounds(min(before + 2, 5))
        real.signalled("site-1", signal.SIGSTOP)
        for key in ("site-2", "coordinator", "site-3", "site-1"):
            real.signalled(key, signal.SIGKILL)
        assert len(real.records) < 6, "the run was over before it was killed"
        require_no_secrets(real)
        real.serve()
        real.join()
        assert real.until_sites_end() == [0, 0, 0]
        real.until(lambda: real.status() == FINISHED)
        assert [record.round for record in real.records] == list(range(6))
        assert all(set(record.outcomes.values()) == {ACCEPTED} for record in real.records)
        assert real.log.count("resuming run 1") == 2
        require_no_secrets(real)
        real.stop()
        require_listed_fields(real)
        assert real.difference() == 0.0
        assert real.left_behind() == []


def test_a_paused_site_is_dead_in_time_and_rejoins_when_it_goes_on(tmp_path: Path) -> None:
    with Real(tmp_path, "ditto", 400, patience={"quorum": 0.6}) as real:
        real.serve()
        real.join()
        real.train()
        real.until_rounds(1)
        real.signalled("site-2", signal.SIGSTOP)
        dead = lambda: any(record.outcomes["site-2"] == DEAD for record in real.records)  # noqa: E731
        assert real.until(dead) < 10
        before = len(real.records)
        real.signalled("site-1", signal.SIGSTOP)  # so that the rounds do not end before the site is back
        real.signalled("site-2", signal.SIGCONT)
        real.until(lambda: real.log.count("site-2: joined") == 2)
        real.signalled("site-1", signal.SIGCONT)
        real.until(lambda: any(record.outcomes["site-2"] == ACCEPTED for record in real.records[before:]))
        assert all(set(record.outcomes) == set(real.names) for record in real.records)


def require_no_secrets(real: Real) -> None:
    """No key is in a log, in what a process said, on a command line or in what is sent to a site."""
    keys = [*real.base.glob("**/*.key")]
    assert len(keys) >= 5
    secrets = {secret for key in keys for secret in parts(key.read_bytes())}
    assert len(secrets) > len(keys)
    told = [path.read_bytes() for kind in ("txt", "json", "jsonl", "kit", "request") for path in real.base.glob(f"**/*.{kind}")]
    assert len(told) > 8
    for process in real.processes.values():
        if process.poll() is None:
            told += [Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
    for text in told:
        assert b"PRIVATE KEY" not in text
        assert not any(secret in text for secret in secrets)


def parts(key: bytes) -> list[bytes]:
    """The lines of a PEM file between its marks, or all of what is just random bytes, in which a line means nothing."""
    return [line for line in key.splitlines() if line and b"-----" not in line] if b"-----BEGIN" in key else [key]


def require_listed_fields(real: Real) -> None:
    """The fields that were really sent are listed; those of signs of life and of refusals need not have been."""
    found = set(json.loads((real.folder.path / "traffic.json").read_text()))
    listed = {f"{kind}.{name}" for kind, known in KINDS.items() for name in known.fields}
    rare = {f"{kind}.{name}" for kind in ("units", "trouble", "stop") for name in KINDS[kind].fields}
    assert found <= listed
    assert found >= listed - rare - {name for name in listed if re.match("(rejoin|beat)", name)}
