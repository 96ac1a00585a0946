"""Orders for the coordinator's process: none is lost while it starts, and nobody waits for one that is gone."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dffl.deploy import run_status
from dffl.deploy.locks import lock_owner, locked
from dffl.deploy.provisioning import create, init
from dffl.deploy.run_state import FINISHED, TRAINING, WAITING, CoordinatorFolder, read_status, write_status
from dffl.deploy.run_status import begin
from dffl.deploy.server_process import FederationServer, ask
from tests.deploy.simulated import Stage, simulated_time


@pytest.fixture
def folder(tmp_path: Path) -> CoordinatorFolder:
    return CoordinatorFolder(tmp_path)


@pytest.fixture
def server(folder: CoordinatorFolder) -> FederationServer:
    init(folder.path)
    create(folder.path / "plan.toml")
    return FederationServer(folder, logging.getLogger("test"))


def begun_while(take: Callable[[Path], object], folder: CoordinatorFolder) -> Path:
    """The run that `begin` returns, while another thread takes its order."""

    def when_it_is_there() -> None:
        while not (order := folder.control / "train").exists():
            time.sleep(0.01)
        take(order)

    with locked(folder.lock, "taken"):
        taker = threading.Thread(target=when_it_is_there)
        taker.start()
        run = begin(folder, new=False)
        taker.join()
    return run


def test_an_order_left_after_the_lock_is_kept_and_an_older_one_is_not(
    folder: CoordinatorFolder, server: FederationServer
) -> None:
    folder.control.mkdir()
    (folder.control / "stop").write_text("{}")
    time.sleep(0.05)
    with locked(folder.lock, "taken"):
        time.sleep(0.05)
        ask(folder, "train", new=False)
        server._remove_old_orders()
        assert [order.name for order in folder.control.iterdir()] == ["train"]


def test_a_lock_is_taken_although_somebody_looks_at_it(folder: CoordinatorFolder) -> None:
    with folder.lock.open("a+") as looked:
        import fcntl

        fcntl.flock(looked, fcntl.LOCK_EX)
        threading.Timer(0.1, lambda: fcntl.flock(looked, fcntl.LOCK_UN)).start()
        with locked(folder.lock, "taken"):
            assert lock_owner(folder.lock) is not None
            with pytest.raises(ValueError, match="taken"), locked(folder.lock, "taken"):
                pass
    assert lock_owner(folder.lock) is None


def test_a_run_under_way_is_followed_and_not_asked_for_again(folder: CoordinatorFolder) -> None:
    run = folder.new_run()
    write_status(run, TRAINING)
    held = locked(folder.lock, "taken")
    held.__enter__()
    until = threading.Timer(5, lambda: held.__exit__(None, None, None))  # it must not wait at all; if it does, not for ever
    until.start()
    assert begin(folder, new=False) == run
    until.cancel()
    held.__exit__(None, None, None)
    assert not folder.control.exists()


def test_a_run_is_asked_for_and_returned_when_it_has_begun(folder: CoordinatorFolder, server: FederationServer) -> None:
    """Also where the clock of the disk is wrong: no times of files are compared."""
    write_status(folder.new_run(), FINISHED)

    def take(order: Path) -> None:
        os.utime(server._start_run(order) / "run.json", (0, 0))

    assert begun_while(take, folder).name == "2"


def test_of_two_who_ask_at_once_both_follow_the_run_of_the_last(folder: CoordinatorFolder, server: FederationServer) -> None:

    def take(order: Path) -> None:
        ask(folder, "train", new=False, asked="somebody else")
        server._start_run(order)

    assert begun_while(take, folder).name == "1"


def test_an_order_that_a_coordinator_has_taken_along_is_given_again(
    folder: CoordinatorFolder, server: FederationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_status, "GONE_SECONDS", 0.3)

    def take(order: Path) -> None:
        order.unlink()  # and ends; another one serves
        while not order.exists():
            time.sleep(0.01)
        server._start_run(order)

    assert begun_while(take, folder).name == "1"


def test_a_run_that_was_asked_for_begins_although_the_coordinator_was_killed_between(
    folder: CoordinatorFolder, server: FederationServer
) -> None:
    with locked(folder.lock, "taken"):
        ask(folder, "train", new=False, asked="me")
    run = server._start_run(folder.control / "train")
    held: list[Path] = []
    server._run = lambda coordinator, folder: held.append(folder)  # type: ignore[method-assign]
    with simulated_time() as clock:
        server._resume(Stage.of(server.plan, clock).coordinator)
    assert held == [run]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"status": WAITING}, "waiting for the coordinator"),
        ({"status": TRAINING, "missing": ["north", "west"]}, "waiting for north, west"),
        ({"status": TRAINING, "missing": []}, "the first round is under way"),
        ({"status": "quorum lost", "missing": ["north"]}, "quorum lost"),
        ({"status": "failed"}, "failed"),
    ],
)
def test_the_line_of_progress(about: dict[str, Any], words: str, tmp_path: Path) -> None:
    write_status(tmp_path, **about)
    assert run_status._progress_text(run_status.RunResult.of(tmp_path, ("north", "west"))) == words


@pytest.mark.parametrize("status", [FINISHED, TRAINING, WAITING])
def test_a_damaged_state_does_not_keep_the_coordinator_from_serving(
    status: str, folder: CoordinatorFolder, server: FederationServer
) -> None:
    run = folder.new_run()
    write_status(run, status)
    (run / "state.dffl").write_bytes(b"damaged")
    with simulated_time() as clock:
        coordinator = Stage.of(server.plan, clock).coordinator
    server._resume(coordinator)
    assert coordinator.run is None
    assert read_status(run)["status"] == {TRAINING: "failed"}.get(status, status)
    ask_again = server._run_folder(fresh=False)
    assert (ask_again == run) == (status == WAITING)  # which then says that its state is damaged
    server._run(coordinator, run)
    assert "state.dffl: cannot be read as the state of a run" in read_status(run)["why"]


def test_waiting_for_a_coordinator_is_bounded(folder: CoordinatorFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status, "SERVING_SECONDS", 0.2)
    monkeypatch.setattr(run_status, "GONE_SECONDS", 0.2)
    with pytest.raises(ValueError, match="no coordinator is running"):
        begin(folder, new=False)
    held = locked(folder.lock, "taken")
    held.__enter__()
    threading.Timer(0.3, lambda: held.__exit__(None, None, None)).start()
    with pytest.raises(OSError, match="the coordinator is gone"):
        begin(folder, new=False)
