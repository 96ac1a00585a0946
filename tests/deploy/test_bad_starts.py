"""What cannot be begun, or cannot go on, ends with one clear line and an exit code, and nothing is half-started."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dffl.deploy.run_state import LOST, RunState, read_status
from tests.deploy.real import Real


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with Real(tmp_path_factory.mktemp("starts"), rounds=4, patience={"join_seconds": 2}) as made:
        yield made


def test_a_port_in_use(real: Real) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", real.port))
        other.listen(1)
        done = real.command("federation", "serve", str(real.folder.path))
    assert done.returncode == 1
    [line] = done.stderr.strip().splitlines()
    assert f"cannot listen at 127.0.0.1:{real.port} (Address already in use)" in line
    assert done.stdout == ""
    assert not real.folder.runs.exists()


def test_a_quorum_that_does_not_come_ends_training_with_code_5_and_the_state_kept(real: Real) -> None:
    real.serve()
    done = real.command("federation", "train", str(real.folder.path), "--quiet")
    assert done.returncode == 5
    assert "0 of 3 sites joined within 2 s, 2 are needed; missing: site-1, site-2, site-3" in done.stdout
    latest = real.folder.latest()
    assert latest is not None
    assert read_status(latest)["status"] == LOST
    assert RunState.read(latest / "state.dffl").plan == real.plan.digest


def test_a_second_server_of_one_folder_is_refused_and_the_first_goes_on(real: Real) -> None:
    done = real.command("federation", "serve", str(real.folder.path))
    assert done.returncode == 3
    [line] = done.stderr.strip().splitlines()
    assert "another coordinator already serves this folder" in line
    assert real.processes["coordinator"].poll() is None


def test_without_certificates_nothing_is_served(tmp_path: Path, real: Real) -> None:
    (tmp_path / "plan.toml").write_text(real.plan.text)
    done = real.command("federation", "serve", str(tmp_path))
    assert done.returncode == 3
    assert "has no certificates; type dffl federation create" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["plan.toml"]
