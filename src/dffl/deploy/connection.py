"""One connection of the carrier, as a federation needs it: bounded in memory, and ended where its key is revoked.

NVFlare makes its connections from one class, so a subclass takes that class's place, for all connections of a process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

SMALL = 1 << 10
"""Bytes that even an empty message takes while it waits."""


@dataclass(frozen=True)
class Door:
    """What holds for all connections of one side."""

    most: int
    """Bytes that may wait for a peer."""
    log: logging.Logger
    objection: Callable[[bytes], str]
    """Why a certificate is not believed, although the authority has signed it; empty if it is."""
    refused: Callable[[str], None]
    """Called where the other side does not believe ours, with its reason."""


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
            shown = {} if self.context is None else self.context.auth_context()
            self._certificate = b"".join(shown.get("x509_pem_cert", ())[:1])

        def _require_believed(self) -> None:
            """End the connection of a peer whose key is revoked, and say so to both sides."""
            if self.context is None or not (why := door.objection(self._certificate)):
                return
            door.log.warning("refused: %s: %s", self.conn_props.get(DriverParams.PEER_CN.value), why)
            context, self.context = self.context, None  # else closing the connection would replace the reason
            context.abort(grpc.StatusCode.UNAUTHENTICATED, why)  # which raises

        def read_loop(self, frames: Iterator[Any]) -> None:
            super().read_loop(self._heard(frames))

        def _heard(self, frames: Iterator[Any]) -> Iterator[Any]:
            try:
                for frame in frames:
                    self._require_believed()  # before every frame: it may be revoked after the peer has connected
                    yield frame
            except grpc.RpcError as error:
                if getattr(error, "code", lambda: None)() is grpc.StatusCode.UNAUTHENTICATED:
                    door.refused(str(error.details()))
                raise

        def send_frame(self, frame: bytes) -> None:
            """Queue a frame. Where the peer does not read, all that is sent to it would stay in memory for ever."""
            if self.context is not None and (why := door.objection(self._certificate)):
                self._end(why)
            with self._counting:
                self._waiting += len(frame) + SMALL
                full = self._waiting > door.most
            if full:
                self._end("its other side does not read what is sent to it")
            super().send_frame(frame)

        def _end(self, why: str) -> None:
            door.log.warning("a connection is ended: %s", why)
            if self.context is not None:
                self.context.cancel()  # else the thread that reads would wait for a message of the peer
            else:
                self.close()
            raise CommError(CommError.CLOSED, why)

        def generate_output(self) -> Iterator[Any]:
            for frame in super().generate_output():
                with self._counting:
                    self._waiting -= len(frame.data) + SMALL
                yield frame

    grpc_driver.StreamConnection = Guarded
