"""Connections of NVFlare with bounded memory, open only to peers whose key is trusted.

NVFlare creates its connections from one class. A subclass replaces that class for all connections of a process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

MESSAGE_OVERHEAD = 1 << 10
"""Bytes that even an empty message takes while it is queued."""
MAX_CONNECTIONS = 16
"""Open connections of one peer: NVFlare uses a thread for each, and one peer must not use them all."""
LOG_AGAIN_SECONDS = 60.0
"""Repeated connection attempts of a peer are logged once in this many seconds."""
CHECK_SECONDS = 0.5


class ConnectionRegistry:
    """The open connections of one side, and the rules for all of them."""

    def __init__(
        self, max_bytes: int, log: logging.Logger, rejection_reason: Callable[[bytes], str], on_rejected: Callable[[str], None]
    ):
        """Arguments:

        - ``max_bytes``: the most bytes that may be queued for a peer.
        - ``rejection_reason``: why a certificate that the authority has signed is not trusted, or an empty text.
        - ``on_rejected``: called with the reason if the other side does not trust our certificate.
        """
        self.max_bytes, self.rejection_reason, self.on_rejected = max_bytes, rejection_reason, on_rejected
        self._log = log
        self._open: set[Any] = set()
        self._lock = threading.Lock()
        self._last_logged: dict[tuple[str, str], float] = {}
        self._last_check = 0.0

    def add(self, connection: Any) -> bool:
        """Add an incoming connection, unless its peer has too many already; whether it was added."""
        with self._lock:
            allowed = sum(other.peer == connection.peer for other in self._open) < MAX_CONNECTIONS
            if allowed:
                self._open.add(connection)
        return allowed

    def remove(self, connection: Any) -> None:
        with self._lock:
            self._open.discard(connection)

    def close_untrusted(self) -> None:
        """Close connections whose certificate was revoked, idle ones too."""
        if time.monotonic() - self._last_check < CHECK_SECONDS:
            return
        self._last_check = time.monotonic()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            if why := self.rejection_reason(connection.certificate):
                connection.terminate(why)

    def log(self, what: str, peer: str, why: str) -> None:
        """Log an event of a peer, at most once in `LOG_AGAIN_SECONDS`."""
        now = time.monotonic()
        with self._lock:
            if now - self._last_logged.get((what, peer), -LOG_AGAIN_SECONDS) < LOG_AGAIN_SECONDS:
                return
            self._last_logged[what, peer] = now
        self._log.warning("%s: %s: %s", what, peer, why)


@cache
def _nvflare_connection() -> Any:
    """NVFlare's own class, before it was replaced."""
    from nvflare.fuel.f3.drivers.grpc_driver import StreamConnection

    return StreamConnection


def guard(registry: ConnectionRegistry) -> None:
    """Apply a registry's rules to all connections that this process opens from now on."""
    import grpc
    from nvflare.fuel.f3.comm_error import CommError
    from nvflare.fuel.f3.drivers import grpc_driver
    from nvflare.fuel.f3.drivers.driver_params import DriverParams

    class GuardedConnection(_nvflare_connection()):  # type: ignore[misc]
        context: Any
        """The gRPC context of an incoming connection; None for an outgoing one."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._queued, self._counting = 0, threading.Lock()
            self.peer = str(self.conn_props.get(DriverParams.PEER_CN.value, "the coordinator"))
            self._accepted = self.context is not None
            shown = self.context.auth_context() if self._accepted else {}
            self.certificate = b"".join(shown.get("x509_pem_cert", ())[:1])
            if self._accepted:
                self._admit()

        def _admit(self) -> None:
            """Accept the peer, or tell it why not. A peer whose key is not trusted need not try again."""
            if why := registry.rejection_reason(self.certificate):
                code = grpc.StatusCode.UNAUTHENTICATED
            elif not registry.add(self):
                code, why = grpc.StatusCode.RESOURCE_EXHAUSTED, f"it already has {MAX_CONNECTIONS} connections"
            else:
                return
            registry.log("rejected a connection", self.peer, why)
            self.context.abort(code, why)  # which raises

        def _require_trusted(self) -> None:
            if self._accepted and (why := registry.rejection_reason(self.certificate)):
                self.terminate(why)
                raise CommError(CommError.CLOSED, why)

        def terminate(self, why: str) -> None:
            """Close the connection. A peer that connects again is told why it is rejected."""
            registry.log("closed a connection", self.peer, why)
            if (context := self.context) is not None:
                context.cancel()  # otherwise the reading thread would wait for a message of the peer
            else:
                self.close()

        def close(self) -> None:
            registry.remove(self)
            super().close()

        def read_loop(self, frames: Iterator[Any]) -> None:
            super().read_loop(self._checked_frames(frames))

        def _checked_frames(self, frames: Iterator[Any]) -> Iterator[Any]:
            try:
                for frame in frames:
                    self._require_trusted()
                    yield frame
            except grpc.RpcError as error:
                if getattr(error, "code", lambda: None)() is grpc.StatusCode.UNAUTHENTICATED:
                    registry.on_rejected(str(error.details()))
                raise

        def send_frame(self, frame: bytes) -> None:
            """Queue a frame. If the peer does not read, close the connection: the queue would grow without limit."""
            self._require_trusted()
            with self._counting:
                self._queued += len(frame) + MESSAGE_OVERHEAD
                full = self._queued > registry.max_bytes
            if full:
                self.terminate("it does not read its messages")
                raise CommError(CommError.CLOSED, "the other side does not read")
            super().send_frame(frame)

        def generate_output(self) -> Iterator[Any]:
            for frame in super().generate_output():
                self._require_trusted()
                with self._counting:
                    self._queued -= len(frame.data) + MESSAGE_OVERHEAD
                yield frame

    grpc_driver.StreamConnection = GuardedConnection
