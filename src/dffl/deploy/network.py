"""The network: NVFlare's cells over gRPC with mutual TLS. Only this module and `connection.py` use NVFlare.

A cell's name is the common name of its certificate; NVFlare rejects a connection whose certificate has another name. Sites
connect, and only the coordinator listens. Both sides send bytes (see `messages.py`) without a reply. Messages are queued in the
order in which the peer sent them. All other features of a cell, which NVFlare's own jobs use, are rejected before decoding.
"""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from dffl.deploy.connection import MESSAGE_OVERHEAD, ConnectionRegistry, guard
from dffl.files import write_text

CHANNEL, TOPIC = "dffl", "message"
COORDINATOR = "server"
"""The name of the coordinator's cell, which no site may use."""
PACKAGE = "nvflare"
HANDSHAKE = b"Handshake failed"
FRAME_OVERHEAD = 1 << 16
"""Bytes of a frame in addition to its message."""
KEEPALIVE_OPTIONS = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 8000),
          ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
          ("grpc.http2.min_ping_interval_without_data_ms", 5000), ("grpc.initial_reconnect_backoff_ms", 500),
          ("grpc.max_reconnect_backoff_ms", 2000)]  # fmt: skip


class Event(NamedTuple):
    """An event of a peer: ``up``, ``down``, a ``message``, or ``refused`` if it rejects our certificate."""

    what: str
    peer: str
    content: bytes = b""


@dataclass(frozen=True)
class Credentials:
    """The files of one side: its certificate, its private key, and the certificate of the authority."""

    certificate: Path
    key: Path
    authority: Path


def nvflare_version() -> str:
    """The installed version of NVFlare; an error says how to install it."""
    try:
        return version(PACKAGE)
    except ImportError:
        raise ValueError("a deployment needs NVFlare: pip install 'dffl[deploy]'") from None


class Link:
    """One side's end of the network."""

    def __init__(
        self,
        name: str,
        address: str,
        credentials: Credentials,
        max_message_bytes: int,
        log: logging.Logger,
        rejection_reason: Callable[[bytes], str] = lambda certificate: "",
    ):
        """``rejection_reason`` returns why a certificate that the authority has signed is not trusted, or an empty text."""
        nvflare_version()
        self.name, self.log, self._max_bytes, self._rejection_reason = name, log, max_message_bytes, rejection_reason
        self.events: SimpleQueue[Event] = SimpleQueue()
        self._waiting: Counter[str] = Counter()
        """The bytes of each peer's messages in the queue."""
        self._counting = threading.Lock()
        self._cell = self._new_cell(name, address, credentials)

    def _new_cell(self, name: str, address: str, credentials: Credentials) -> Any:
        self._configure()
        from nvflare.fuel.f3.cellnet.core_cell import CoreCell

        _filter_nvflare_log(self.log)
        side = "server" if name == COORDINATOR else "client"
        files = {"ca_cert": credentials.authority, f"{side}_cert": credentials.certificate, f"{side}_key": credentials.key}
        known = {key: str(path) for key, path in files.items()} | {"connection_security": "mtls"}
        cell = CoreCell(name, f"grpcs://{address}", True, known, bulk_check_interval=5.0, bulk_process_interval=5.0)
        cell.max_msg_size = self._max_bytes + FRAME_OVERHEAD
        cell.set_cell_connected_cb(lambda agent: self.events.put(Event("up", agent.get_fqcn())))
        cell.set_cell_disconnected_cb(lambda agent: self.events.put(Event("down", agent.get_fqcn())))
        cell.add_incoming_filter("*", "*", self._reject_foreign)
        cell.register_request_cb(CHANNEL, TOPIC, self._on_message)
        cell.communicator.conn_manager.frame_mgr_executor = _InlineExecutor()
        return cell

    def _configure(self) -> None:
        """Limit the size of frames, and enable keepalive: NVFlare reads these settings from a file."""
        from nvflare.fuel.f3.comm_config import CommConfigurator
        from nvflare.fuel.utils.config_service import ConfigService

        limit = self._max_bytes + FRAME_OVERHEAD
        sizes = [("grpc.max_send_message_length", limit), ("grpc.max_receive_message_length", limit)]
        wanted = {"max_message_size": limit, "allow_adhoc_conns": False, "use_aio_grpc": False,
                  "grpc": {"max_workers": 1000, "options": [*sizes, *KEEPALIVE_OPTIONS]}}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            write_text(Path(folder) / "comm_config.json", json.dumps(wanted))
            ConfigService.reset()
            ConfigService.initialize(section_files={}, config_path=[folder])
            CommConfigurator.reset()
            if CommConfigurator().get_config() is None:
                raise RuntimeError("NVFlare did not read its settings; is it a version that dffl supports?")
        self._connections = ConnectionRegistry(2 * limit, self.log, self._rejection_reason, self._on_rejected)
        guard(self._connections)

    def start(self) -> None:
        self._cell.start()

    def close(self) -> None:
        self._cell.stop()

    def send(self, peer: str, content: bytes) -> bool:
        """Send bytes to a peer without a reply; whether they were sent. A lost peer causes a ``down`` event."""
        from nvflare.fuel.f3.cellnet.core_cell import Message

        if len(content) > self._max_bytes:
            raise ValueError(f"a message of {len(content)} bytes is larger than the limit of the plan, {self._max_bytes}")
        try:
            failed = self._cell.fire_and_forget(CHANNEL, TOPIC, peer, Message({}, content), optional=True)
        except Exception as error:  # a connection that breaks during the call may raise any error of NVFlare
            self.log.debug("message to %s: %s", peer, error)
            return False
        return not failed.get(peer)

    def next(self, seconds: float) -> Event | None:
        """The next event, or None after this many seconds."""
        self._connections.close_untrusted()
        try:
            event = self.events.get(timeout=max(seconds, 0.0))
        except Empty:
            return None
        if event.what == "message":
            with self._counting:
                self._waiting[event.peer] -= len(event.content) + MESSAGE_OVERHEAD
        return event

    def _on_rejected(self, why: str) -> None:
        self.events.put(Event("refused", COORDINATOR, why.encode()))

    def _on_message(self, message: Any) -> None:
        from nvflare.fuel.f3.cellnet.defs import MessagePropKey

        peer, content = str(message.get_prop(MessagePropKey.ENDPOINT).name), bytes(message.payload or b"")
        with self._counting:  # a peer that sends faster than we read must not fill the memory
            full = self._waiting[peer] > 2 * self._max_bytes
            self._waiting[peer] += 0 if full else len(content) + MESSAGE_OVERHEAD
        if full:
            self.log.warning("rejected a message of %s: too many of its messages are queued", peer)
        else:
            self.events.put(Event("message", peer, content))

    def _reject_foreign(self, message: Any) -> Any:
        """Reply to a message that is not a dffl message: another channel, another receiver, or not plain bytes.

        Without this filter, a cell would forward messages between sites, decode messages of NVFlare's own jobs, request keys
        for encrypted messages, and connect to an address in a message without a check of the name.
        """
        from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, MessageHeaderKey, MessagePropKey, ReturnCode
        from nvflare.fuel.f3.cellnet.utils import make_reply

        get, prop = message.get_header, message.get_prop
        peer = prop(MessagePropKey.ENDPOINT).name
        to = (get(MessageHeaderKey.CHANNEL), get(MessageHeaderKey.TOPIC))
        known = to in ((CHANNEL, TOPIC), (CellChannel.CELLNET, CellChannelTopic.Bye))
        direct = get(MessageHeaderKey.ORIGIN) == get(MessageHeaderKey.FROM_CELL) == peer
        mine = get(MessageHeaderKey.DESTINATION) == self.name and get(MessageHeaderKey.CONN_URL) is None
        # The certificate of this connection. A site does not see it here; TLS has checked it.
        proven = self.name != COORDINATOR or prop(MessagePropKey.COMMON_NAME) == peer
        plain = get(MessageHeaderKey.PAYLOAD_ENCODING) in (None, "bytes", "none") and not get(MessageHeaderKey.ENCRYPTED)
        if direct and mine and proven and plain and known and len(message.payload or b"") <= self._max_bytes:
            return None
        self.log.warning("rejected a message of %s that is not a dffl message", peer)
        return make_reply(ReturnCode.INVALID_REQUEST, error="refused")


class _InlineExecutor:
    """Processes each frame in the thread that reads its connection, instead of NVFlare's thread pool.

    This keeps the order of a peer's messages, keeps a peer from blocking the others, and slows down a peer that sends fast.
    """

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        work(*args)

    def shutdown(self, wait: bool = True) -> None:
        """There is nothing to end."""


def require_free_port(address: str) -> None:
    """Reject an address at which this process cannot listen: NVFlare reports no error."""
    host, _, port = address.rpartition(":")
    try:
        resolved = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(*resolved[:3]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(resolved[4])
            probe.listen(1)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"cannot listen at {address} ({why}); stop the program that uses it, or change `listen` in the plan"
        ) from None


class _RejectionHandler(logging.Handler):
    """Logs connections that NVFlare rejects, for example because the certificate has another name."""

    def __init__(self, log: logging.Logger):
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.warning("rejected a connection: %.300s", " ".join(record.getMessage().split()))


def _filter_nvflare_log(log: logging.Logger) -> None:
    """Keep only rejected connections of NVFlare's log, which reports every broken connection at length."""
    logging.getLogger("nvflare").setLevel(logging.CRITICAL)
    connections = logging.getLogger("nvflare.fuel.f3.sfm.conn_manager")
    connections.setLevel(logging.ERROR)
    connections.propagate = False
    connections.handlers = [_RejectionHandler(log)]


@contextmanager
def log_failed_handshakes(log: logging.Logger) -> Iterator[None]:
    """Log failed handshakes, which gRPC reports only on the standard error of the process."""
    before = os.dup(2)
    receiving, sending = os.pipe()
    os.dup2(sending, 2)
    os.close(sending)

    def read() -> None:
        last = -math.inf
        with os.fdopen(receiving, "rb") as lines:
            for line in lines:
                if HANDSHAKE not in line:
                    os.write(before, line)
                elif time.monotonic() - last > 1:  # repeated attempts must not fill the disk
                    last = time.monotonic()
                    why = line.partition(HANDSHAKE)[2].decode(errors="replace").strip()
                    log.warning(
                        "rejected a connection: its certificate is missing, expired or from another federation (%.200s)", why
                    )

    reader = threading.Thread(target=read, name="dffl handshakes", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(before, 2)  # this closes the pipe, which ends the reader
        reader.join(timeout=5)
        os.close(before)
