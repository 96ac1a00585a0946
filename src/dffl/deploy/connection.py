"""One connection of the carrier, as a federation needs it: bounded in memory, and open only to who is believed.

NVFlare makes its connections from one class, so a subclass takes that class's place, for all connections of a process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

SMALL = 1 << 10
"""Bytes that even an empty message takes while it waits."""
MOST_CONNECTIONS = 16
"""Of one peer at a time: the carrier has a thread for each, and one peer must not take them all."""
SAID_AGAIN_SECONDS = 60.0
"""Who dials again and again is in the log once in so many seconds."""
SWEEP_SECONDS = 0.5


class Door:
    """What holds for all connections of one side, and which of them are open."""

    def __init__(self, most: int, log: logging.Logger, objection: Callable[[bytes], str], refused: Callable[[str], None]):
        """``most`` bytes may wait for a peer; ``objection`` says why a certificate that the authority has signed is not
        believed, if it is not; ``refused`` is told why the other side does not believe ours.
        """
        self.most, self.objection, self.refused = most, objection, refused
        self._log = log
        self._open: set[Any] = set()
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], float] = {}
        self._swept = 0.0

    def enter(self, connection: Any) -> bool:
        """Note a connection that somebody dialled, if there is room for it."""
        with self._lock:
            room = sum(one.peer == connection.peer for one in self._open) < MOST_CONNECTIONS
            if room:
                self._open.add(connection)
        return room

    def left(self, connection: Any) -> None:
        with self._lock:
            self._open.discard(connection)

    def sweep(self) -> None:
        """End the connections of who is believed no longer, also of who says nothing."""
        if time.monotonic() - self._swept < SWEEP_SECONDS:
            return
        self._swept = time.monotonic()
        with self._lock:
            found = list(self._open)
        for connection in found:
            if why := self.objection(connection.certificate):
                connection.cut(why)

    def say(self, what: str, peer: str, why: str) -> None:
        """Bring it to the log, not too often."""
        now = time.monotonic()
        with self._lock:
            if now - self._said.get((what, peer), -SAID_AGAIN_SECONDS) < SAID_AGAIN_SECONDS:
                return
            self._said[what, peer] = now
        self._log.warning("%s: %s: %s", what, peer, why)


@cache
def _carried() -> Any:
    """The carrier's own class, before another took its place."""
    from nvflare.fuel.f3.drivers.grpc_driver import StreamConnection

    return StreamConnection


def guard(door: Door) -> None:
    """Let all connections that are made from now on in this process pass this door."""
    import grpc
    from nvflare.fuel.f3.comm_error import CommError
    from nvflare.fuel.f3.drivers import grpc_driver
    from nvflare.fuel.f3.drivers.driver_params import DriverParams

    class Guarded(_carried()):  # type: ignore[misc]
        context: Any
        """Of gRPC, at the side that was dialled; None at the side that dials."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._waiting, self._counting = 0, threading.Lock()
            self.peer = str(self.conn_props.get(DriverParams.PEER_CN.value, "the coordinator"))
            self._dialled = self.context is not None
            shown = self.context.auth_context() if self._dialled else {}
            self.certificate = b"".join(shown.get("x509_pem_cert", ())[:1])
            if self._dialled:
                self._require_welcome()

        def _require_welcome(self) -> None:
            """Let a peer in, or tell it why not: one whose key is not believed need not try again."""
            if why := door.objection(self.certificate):
                code = grpc.StatusCode.UNAUTHENTICATED
            elif not door.enter(self):
                code, why = grpc.StatusCode.RESOURCE_EXHAUSTED, f"it has {MOST_CONNECTIONS} connections already"
            else:
                return
            door.say("refused", self.peer, why)
            self.context.abort(code, why)  # which raises

        def _require_believed(self) -> None:
            if self._dialled and (why := door.objection(self.certificate)):
                self.cut(why)
                raise CommError(CommError.CLOSED, why)

        def cut(self, why: str) -> None:
            """End the connection; a peer that dials again hears why it is not let in."""
            door.say("a connection is ended", self.peer, why)
            if (context := self.context) is not None:
                context.cancel()  # else the thread that reads would wait for a message of the peer
            else:
                self.close()

        def close(self) -> None:
            door.left(self)
            super().close()

        def read_loop(self, frames: Iterator[Any]) -> None:
            super().read_loop(self._heard(frames))

        def _heard(self, frames: Iterator[Any]) -> Iterator[Any]:
            try:
                for frame in frames:
                    self._require_believed()
                    yield frame
            except grpc.RpcError as error:
                if getattr(error, "code", lambda: None)() is grpc.StatusCode.UNAUTHENTICATED:
                    door.refused(str(error.details()))
                raise

        def send_frame(self, frame: bytes) -> None:
            """Queue a frame. Where the peer does not read, all that is sent to it would stay in memory for ever."""
            self._require_believed()
            with self._counting:
                self._waiting += len(frame) + SMALL
                full = self._waiting > door.most
            if full:
                self.cut("it does not read what is sent to it")
                raise CommError(CommError.CLOSED, "the other side does not read")
            super().send_frame(frame)

        def generate_output(self) -> Iterator[Any]:
            for frame in super().generate_output():
                self._require_believed()
                with self._counting:
                    self._waiting -= len(frame.data) + SMALL
                yield frame

    grpc_driver.StreamConnection = Guarded
