"""A disk that is full, at a site and at the coordinator: one clear line, and the run goes on when there is room again."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

from dffl.deploy.run_state import FINISHED
from tests.deploy.real import Real

ROUNDS, MOST = 30, 500


def test_a_full_disk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    """The limit on the size of a file of a process stands for the disk: writing fails in the middle of a run."""
    with Real(tmp_path, rounds=ROUNDS) as real:
        real.serve()
        real.join()
        real.train()
        real.until_rounds(2)
        for key in ("site-1", "coordinator"):
            process = real.processes[key]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MOST, MOST))
            real.until(lambda process=process: process.poll() is not None)
            assert process.returncode == 1
            last = real.said(key).strip().splitlines()[-1]
            assert "File too large; free some space and type the command again; the state is kept" in last
            assert "Traceback" not in real.said(key)
        assert 2 <= len(real.records) < ROUNDS
        real.serve()
        real.join("site-1")
        assert real.until_sites_end() == [0, 0, 0]
        real.until(lambda: real.status() == FINISHED)
        assert [record.round for record in real.records] == list(range(ROUNDS))
        real.signalled("coordinator", signal.SIGTERM)
        real.until(lambda: real.processes["coordinator"].poll() is not None)
        assert real.difference() == 0.0
        assert real.left_behind() == []
