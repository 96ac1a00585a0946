"""The network itself, on this machine: what a member with a good certificate may send, and in which order it arrives."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("nvflare")

from dffl.deploy import connection
from dffl.deploy.credentials import Kit, make_authority, make_request, read_request, server_credentials, sign
from dffl.deploy.network import COORDINATOR, Credentials, Link
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
        self.own = own
        self.lines: list[str] = []
        log = logging.Logger("coordinator")
        log.addHandler(self)
        address = self.address = f"localhost:{free_port()}"
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

    def next_of(self, *kinds: str) -> str:
        """Which of these kinds of events is the next."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if (event := self.link.next(0.2)) is not None and event.what in kinds:
                return event.what
        raise AssertionError(f"none of {kinds} within {SECONDS:g} s")

    def require_heard_again(self) -> None:
        """The member comes back by itself; it may take a while to notice that it is connected again."""
        deadline, heard = time.monotonic() + SECONDS, None
        while (heard is None or heard.content != b"honest") and time.monotonic() < deadline:
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
    assert coordinator.lines[before:] == ["rejected a message of north that is not a dffl message"]


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
    assert coordinator.lines[before:] == ["closed a connection: north: it does not read its messages"]
    coordinator.taken("down")
    coordinator.require_heard_again()


@pytest.mark.parametrize("way", ["in", "out", "silent"])
def test_nothing_passes_to_or_from_a_peer_whose_key_is_revoked(
    way: str, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.require_heard_again()  # both sides have said all that belongs to connecting
    monkeypatch.setattr(connection, "LOG_AGAIN_SECONDS", 0.0)
    if way != "silent":
        monkeypatch.setattr(connection.ConnectionRegistry, "close_untrusted", lambda self: None)
    before = len(coordinator.lines)
    coordinator.objection = "its key was revoked"
    try:
        if way == "in":
            coordinator.let_send(["forged"])
        elif way == "out":
            assert not coordinator.link.send("north", b"a secret")
        assert coordinator.next_of("down", "message") == "down"
        deadline = time.monotonic() + SECONDS
        while (
            "rejected a connection: north: its key was revoked" not in coordinator.lines[before:]
            and time.monotonic() < deadline
        ):
            event = coordinator.link.next(0.1)  # it dials again and again
            assert event is None or event.what != "message"
        assert coordinator.lines[before:][:1] == ["closed a connection: north: its key was revoked"]
        assert "rejected a connection: north: its key was revoked" in coordinator.lines[before:]
    finally:
        coordinator.objection = ""
    coordinator.require_heard_again()


def test_what_waits_for_a_peer_does_not_leave_after_its_key_is_revoked(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member is paused, so that messages wait in the coordinator's own queue; what is in the buffers below has left."""
    monkeypatch.setattr(connection.ConnectionRegistry, "close_untrusted", lambda self: None)
    [held] = coordinator.link._connections._open
    coordinator.member.send_signal(signal.SIGSTOP)
    try:
        while held._queued < MOST:
            assert coordinator.link.send("north", b"x" * (MOST // 4))
        waiting, left = held.oq.q.qsize(), []
        assert waiting > 1
        monkeypatch.setattr(held, "_counting", CountingLock(left))
        coordinator.objection = "its key was revoked"
    finally:
        coordinator.member.send_signal(signal.SIGCONT)
    try:
        coordinator.taken("down")
        assert len(left) <= 1  # the one that was on its way
    finally:
        coordinator.objection = ""
    coordinator.require_heard_again()


class CountingLock:
    """Notes how often it is taken."""

    def __init__(self, taken: list[None]):
        self._taken = taken

    def __enter__(self) -> None:
        self._taken.append(None)

    def __exit__(self, *_: object) -> None:
        pass


def silent_streams(own: Credentials, address: str, count: int) -> tuple[Any, list[Any]]:
    """Streams that are opened and on which nothing is said."""
    import grpc
    from nvflare.fuel.f3.drivers.grpc.streamer_pb2_grpc import StreamerStub

    key = grpc.ssl_channel_credentials(own.authority.read_bytes(), own.key.read_bytes(), own.certificate.read_bytes())
    channel = grpc.secure_channel(address, key)
    never = threading.Event()

    def nothing() -> Iterator[Any]:
        never.wait()
        yield from ()

    return channel, [StreamerStub(channel).Stream(nothing()) for _ in range(count)]


@pytest.mark.parametrize("objection", ["its key was revoked", ""])
def test_one_peer_cannot_take_all_threads(objection: str, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with a revoked key, which is refused before it says anything, and not with a good one."""
    monkeypatch.setattr(connection.ConnectionRegistry, "close_untrusted", lambda self: None)
    coordinator.objection = objection
    channel, calls = silent_streams(coordinator.own, coordinator.address, 40)
    try:
        most = 0 if objection else connection.MAX_CONNECTIONS
        deadline = time.monotonic() + SECONDS
        while sum(call.is_active() for call in calls) > most and time.monotonic() < deadline:
            coordinator.link.next(0.1)
        assert sum(call.is_active() for call in calls) <= most
        # Only a site whose key is not believed is told to stop; one that has too many connections may dial again.
        told = {call.code().name for call in calls if not call.is_active()}
        assert told == {"UNAUTHENTICATED" if objection else "RESOURCE_EXHAUSTED"}
    finally:
        coordinator.objection = ""
        channel.close()
    coordinator.require_heard_again()
