"""The network itself, on this machine: what a member with a good certificate may send, and in which order it arrives."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("nvflare")

from dffl.deploy.credentials import Kit, make_authority, make_request, read_request, server_credentials, sign
from dffl.deploy.network import COORDINATOR, Link
from tests.deploy.test_page import free_port

MOST = 2**20
SECONDS = 60.0
"""Until something that must happen has happened, on a machine that is busy."""


class Coordinator(logging.Handler):
    """The coordinator's end of the network, its log, and one member, "north", that sends what it is told."""

    def __init__(self, folder: Path):
        super().__init__()
        make_authority(folder / "secrets", "test", ["localhost"])
        _, request, _ = read_request(make_request(folder / "north", "north"))
        authority = (folder / "secrets" / "authority.crt").read_text()
        own = Kit("north", sign(folder / "secrets", request, "north").decode(), authority, "").unpack(folder / "north")
        self.lines: list[str] = []
        log = logging.Logger("coordinator")
        log.addHandler(self)
        address = f"localhost:{free_port()}"
        self.objection = ""
        self.link = Link(COORDINATOR, address, server_credentials(folder / "secrets"), MOST, log, lambda _: self.objection)
        self.link.start()
        command = [sys.executable, "-m", "tests.deploy.member", "north", address]
        files = [str(path) for path in (own.certificate, own.key, own.authority)]
        self.member = subprocess.Popen([*command, *files], stdin=subprocess.PIPE, text=True)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def close(self) -> None:
        self.member.kill()
        self.member.wait()
        self.link.close()

    def let_send(self, contents: Sequence[str], **headers: Any) -> None:
        assert self.member.stdin is not None
        self.member.stdin.write(json.dumps({"contents": contents, "headers": headers}) + "\n")
        self.member.stdin.flush()

    def taken(self, what: str = "message") -> str:
        """The next event of this kind: what the member has sent."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            event = self.link.next(0.2)
            if event is not None and event.what == what:
                assert event.peer == "north"
                return event.content.decode()
        raise AssertionError(f"no {what} within {SECONDS:g} s")

    def require_heard_again(self) -> None:
        """The member comes back; it may not have noticed at once that it is connected again."""
        self.taken("up")
        deadline, heard = time.monotonic() + SECONDS, None
        while heard is None and time.monotonic() < deadline:
            self.let_send(["honest"])
            heard = self.link.next(1.0)
        assert heard is not None
        assert heard.content == b"honest"
        while self.link.next(1.0) is not None:
            pass  # what it was told to send before


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    made = Coordinator(tmp_path_factory.mktemp("network"))
    try:
        made.taken("up")
        yield made
    finally:
        made.close()


FORGED: dict[str, dict[str, Any]] = {
    "of another": {"ORIGIN": "south"},
    "of another altogether": {"ORIGIN": "south", "FROM_CELL": "south"},
    "passed on": {"FROM_CELL": "south"},
    "for another": {"DESTINATION": "south"},
    "on another channel": {"CHANNEL": "another"},
    "with objects in it": {"PAYLOAD_ENCODING": "fobs"},
    "encrypted": {"SECURE": True, "ENCRYPTED": True},
}


@pytest.mark.parametrize("how", FORGED)
def test_a_message_of_a_member_that_is_none_of_ours_is_refused(how: str, coordinator: Coordinator) -> None:
    before = len(coordinator.lines)
    coordinator.let_send(["forged"], **FORGED[how])
    coordinator.let_send(["honest"])
    assert coordinator.taken() == "honest"
    assert coordinator.lines[before:] == ["refused a message of north that is none of ours"]


def test_the_coordinator_dials_nobody_whom_a_message_names(coordinator: Coordinator) -> None:
    """There it would believe any name: one site could pose as another."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(3.0)
        url = f"tcp://127.0.0.1:{elsewhere.getsockname()[1]}"
        coordinator.let_send(["forged"], FROM_CELL="south", CONN_URL=url)
        coordinator.let_send(["forged"], CONN_URL=url)
        coordinator.let_send(["honest"])
        assert coordinator.taken() == "honest"
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_messages_keep_their_order(coordinator: Coordinator) -> None:
    sent = [str(number) for number in range(5000)]
    coordinator.let_send(sent)
    assert [coordinator.taken() for _ in sent] == sent


def test_a_flood_does_not_fill_the_memory(coordinator: Coordinator) -> None:
    coordinator.let_send(["x" * (MOST // 2)] * 40)
    deadline = time.monotonic() + SECONDS
    while sum("too many" in line for line in coordinator.lines) < 36 and time.monotonic() < deadline:
        time.sleep(0.05)
    taken = 0
    while (event := coordinator.link.next(0.5)) is not None:
        taken += len(event.content)
    assert taken == 2 * MOST
    coordinator.let_send(["honest"])  # and it is heard again
    assert coordinator.taken() == "honest"


def test_what_waits_for_a_peer_that_does_not_read_is_bounded(coordinator: Coordinator) -> None:
    """Buffers of the system and of gRPC take the first messages; after two more the connection is ended."""
    before = len(coordinator.lines)
    coordinator.member.send_signal(signal.SIGSTOP)
    try:
        sent = 0
        while sent < 100 and coordinator.link.send("north", b"x" * MOST):
            sent += 1
    finally:
        coordinator.member.send_signal(signal.SIGCONT)
    assert 2 <= sent < 100
    assert coordinator.lines[before:] == ["a connection is ended: its other side does not read what is sent to it"]
    coordinator.taken("down")
    coordinator.require_heard_again()


@pytest.mark.parametrize("way", ["in", "out"])
def test_nothing_passes_to_or_from_a_peer_whose_key_is_revoked(way: str, coordinator: Coordinator) -> None:
    before = len(coordinator.lines)
    coordinator.objection = "its key was revoked"
    try:
        if way == "in":
            coordinator.let_send(["forged"])
        else:
            assert not coordinator.link.send("north", b"a secret")
        coordinator.taken("down")
        deadline = time.monotonic() + SECONDS
        while "refused: north: its key was revoked" not in coordinator.lines[before:] and time.monotonic() < deadline:
            event = coordinator.link.next(0.1)  # it dials again and again
            assert event is None or event.what != "message"
        assert "refused: north: its key was revoked" in coordinator.lines[before:]
    finally:
        coordinator.objection = ""
    coordinator.require_heard_again()
