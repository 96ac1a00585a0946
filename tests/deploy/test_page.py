"""The page "Run a federation in 15 minutes" does what it says: its blocks run in order, as a stranger would paste them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dffl.deploy.ledger import ACCEPTED, read_ledger

pytest.importorskip("nvflare")
pytest.importorskip("jinja2")

PAGE = Path(__file__).parents[2] / "docs" / "federation.md"
SITES = ("harbour", "bakery", "plant")
MOST_SECONDS = 400
"""For a machine that does much else; by itself it takes less than a minute."""
INIT = "dffl federation init try-it --example"


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    script, port = "\n".join(blocks), free_port()
    assert script.count(INIT) == 1
    command = tmp_path / "bin" / "dffl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dffl "$@"\n')
    command.chmod(0o755)
    (tmp_path / "page.sh").write_text("set -e\n" + script.replace(INIT, f"{INIT} --address localhost:{port}"))
    paths = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": paths, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    with (tmp_path / "said.txt").open("w") as said:
        page = subprocess.Popen(
            ["bash", "page.sh"], cwd=tmp_path, env=env, stdout=said, stderr=said, start_new_session=True
        )  # fmt: skip
        try:
            code = page.wait(MOST_SECONDS)
            assert not lives(page.pid), "a process is left behind"
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if lives(page.pid):
                os.killpg(page.pid, signal.SIGKILL)
    home = tmp_path / "try-it"
    told = [tmp_path / "said.txt", *home.glob("*/serve.txt"), *home.glob("*/join.txt")]
    assert code == 0, "\n".join(f"{path}:\n{path.read_text()[-1500:]}" for path in told)
    rounds = read_ledger(home / "coordinator/runs/1/rounds.jsonl")
    assert len(rounds) == 100
    assert all(set(record.outcomes) == set(SITES) for record in rounds)
    assert {outcome for record in rounds for outcome in record.outcomes.values()} == {ACCEPTED}
    for name in SITES:
        assert (home / name / f"{name}-site/model.dffl").is_file()
        assert "it has not left this machine" in (home / name / "join.txt").read_text()
    assert (pd.read_csv(home / "harbour/decisions.csv").filter(like="price_").sum(axis=1) == 4).all()
    assert "<html" in (home / "harbour/report.html").read_text()[:1000]
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", port)) != 0


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
