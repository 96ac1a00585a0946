"""The network: NVFlare's cells over gRPC with mutual TLS. With `connection.py` all that knows NVFlare.

A cell's name is the common name of its certificate: NVFlare refuses a connection whose certificate says another name. Sites
dial out, and the coordinator alone listens. Both sides only ever send bytes (see `messages.py`), one way; what arrives is put
into a queue, in the order in which the peer sent it. Everything else that a cell can do for NVFlare's own jobs is refused
before it is read.
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

from dffl.deploy.connection import SMALL, Door, guard
from dffl.files import write_text

CHANNEL, TOPIC = "dffl", "message"
COORDINATOR = "server"
"""The name of the coordinator's cell; no site may have it."""
CARRIER = "nvflare"
HANDSHAKE = b"Handshake failed"
OVERHEAD = 1 << 16
"""Bytes of a frame beside the message in it."""
LIVELY = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 8000),
          ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
          ("grpc.http2.min_ping_interval_without_data_ms", 5000), ("grpc.initial_reconnect_backoff_ms", 500),
          ("grpc.max_reconnect_backoff_ms", 2000)]  # fmt: skip


class Event(NamedTuple):
    """Something that happened: ``up`` and ``down`` of a peer, a message of it, or that it has ``refused`` our certificate."""

    what: str
    peer: str
    content: bytes = b""


@dataclass(frozen=True)
class Credentials:
    """Where a side's certificate, its private key and the certificate of the federation's authority are."""

    certificate: Path
    key: Path
    authority: Path


def carrier_version() -> str:
    """The installed version of NVFlare, or a refusal that says how to get it."""
    try:
        return version(CARRIER)
    except ImportError:
        raise ValueError("a deployment needs NVFlare: pip install 'dffl[deploy]'") from None


class Link:
    """One side's end of the network."""

    def __init__(
        self,
        name: str,
        address: str,
        credentials: Credentials,
        most_bytes: int,
        log: logging.Logger,
        objection: Callable[[bytes], str] = lambda certificate: "",
    ):
        """``objection`` says why a certificate is not believed although the authority has signed it, if it is not."""
        carrier_version()
        self.name, self.log, self._most, self._objection = name, log, most_bytes, objection
        self.events: SimpleQueue[Event] = SimpleQueue()
        self._waiting: Counter[str] = Counter()
        """The bytes of each peer's messages that nobody has taken yet."""
        self._counting = threading.Lock()
        self._cell = self._made(name, address, credentials)

    def _made(self, name: str, address: str, credentials: Credentials) -> Any:
        self._configure()
        from nvflare.fuel.f3.cellnet.core_cell import CoreCell

        _quiet(self.log)
        side = "server" if name == COORDINATOR else "client"
        files = {"ca_cert": credentials.authority, f"{side}_cert": credentials.certificate, f"{side}_key": credentials.key}
        known = {key: str(path) for key, path in files.items()} | {"connection_security": "mtls"}
        cell = CoreCell(name, f"grpcs://{address}", True, known, bulk_check_interval=5.0, bulk_process_interval=5.0)
        cell.max_msg_size = self._most + OVERHEAD
        cell.set_cell_connected_cb(lambda agent: self.events.put(Event("up", agent.get_fqcn())))
        cell.set_cell_disconnected_cb(lambda agent: self.events.put(Event("down", agent.get_fqcn())))
        cell.add_incoming_filter("*", "*", self._refused)
        cell.register_request_cb(CHANNEL, TOPIC, self._arrived)
        cell.communicator.conn_manager.frame_mgr_executor = _InOrder()
        return cell

    def _configure(self) -> None:
        """Limit the size of frames, and let broken connections be noticed: NVFlare reads this from a file."""
        from nvflare.fuel.f3.comm_config import CommConfigurator
        from nvflare.fuel.utils.config_service import ConfigService

        limit = self._most + OVERHEAD
        sizes = [("grpc.max_send_message_length", limit), ("grpc.max_receive_message_length", limit)]
        wanted = {"max_message_size": limit, "allow_adhoc_conns": False, "use_aio_grpc": False,
                  "grpc": {"max_workers": 1000, "options": [*sizes, *LIVELY]}}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            write_text(Path(folder) / "comm_config.json", json.dumps(wanted))
            ConfigService.reset()
            ConfigService.initialize(section_files={}, config_path=[folder])
            CommConfigurator.reset()
            if CommConfigurator().get_config() is None:
                raise RuntimeError("NVFlare did not read its settings; is it a version that dffl supports?")
        self._door = Door(2 * limit, self.log, self._objection, self._turned_away)
        guard(self._door)

    def start(self) -> None:
        self._cell.start()

    def close(self) -> None:
        self._cell.stop()

    def send(self, peer: str, content: bytes) -> bool:
        """Send bytes to a peer, one way; whether they left. A peer that is gone is noticed by an event."""
        from nvflare.fuel.f3.cellnet.core_cell import Message

        if len(content) > self._most:
            raise ValueError(f"a message of {len(content)} bytes is larger than the limit of the plan, {self._most}")
        try:
            failed = self._cell.fire_and_forget(CHANNEL, TOPIC, peer, Message({}, content), optional=True)
        except Exception as error:  # a connection that breaks in this moment may end in any error of the carrier
            self.log.debug("message to %s: %s", peer, error)
            return False
        return not failed.get(peer)

    def next(self, seconds: float) -> Event | None:
        """The next event, if there is one in so many seconds."""
        self._door.sweep()
        try:
            event = self.events.get(timeout=max(seconds, 0.0))
        except Empty:
            return None
        if event.what == "message":
            with self._counting:
                self._waiting[event.peer] -= len(event.content) + SMALL
        return event

    def _turned_away(self, why: str) -> None:
        self.events.put(Event("refused", COORDINATOR, why.encode()))

    def _arrived(self, message: Any) -> None:
        from nvflare.fuel.f3.cellnet.defs import MessagePropKey

        peer, content = str(message.get_prop(MessagePropKey.ENDPOINT).name), bytes(message.payload or b"")
        with self._counting:  # a peer that sends faster than it is heard must not fill the memory
            full = self._waiting[peer] > 2 * self._most
            self._waiting[peer] += 0 if full else len(content) + SMALL
        if full:
            self.log.warning("refused a message of %s: too many of its messages wait already", peer)
        else:
            self.events.put(Event("message", peer, content))

    def _refused(self, message: Any) -> Any:
        """A reply where a message is none of ours: another channel, another receiver, or anything but plain bytes.

        Without this, a cell would pass messages on between sites, decode what NVFlare's own jobs send, ask for the keys of
        messages that are said to be encrypted, and dial an address that a message names, where it would believe any name.
        """
        from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, MessageHeaderKey, MessagePropKey, ReturnCode
        from nvflare.fuel.f3.cellnet.utils import make_reply

        get, prop = message.get_header, message.get_prop
        peer = prop(MessagePropKey.ENDPOINT).name
        to = (get(MessageHeaderKey.CHANNEL), get(MessageHeaderKey.TOPIC))
        known = to in ((CHANNEL, TOPIC), (CellChannel.CELLNET, CellChannelTopic.Bye))
        direct = get(MessageHeaderKey.ORIGIN) == get(MessageHeaderKey.FROM_CELL) == peer
        mine = get(MessageHeaderKey.DESTINATION) == self.name and get(MessageHeaderKey.CONN_URL) is None
        # The certificate of this very connection; a site that has dialled does not learn it, and has checked it in TLS.
        proven = self.name != COORDINATOR or prop(MessagePropKey.COMMON_NAME) == peer
        plain = get(MessageHeaderKey.PAYLOAD_ENCODING) in (None, "bytes", "none") and not get(MessageHeaderKey.ENCRYPTED)
        if direct and mine and proven and plain and known and len(message.payload or b"") <= self._most:
            return None
        self.log.warning("refused a message of %s that is none of ours", peer)
        return make_reply(ReturnCode.INVALID_REQUEST, error="refused")


class _InOrder:
    """Works through each frame in the thread that reads its connection, in the place of the carrier's pool of threads.

    So the messages of a peer keep their order, a peer cannot hold up the others, and one that sends fast is slowed down.
    """

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        work(*args)

    def shutdown(self, wait: bool = True) -> None:
        """There is nothing to end."""


def require_free(address: str) -> None:
    """Refuse an address at which nothing can listen: the carrier itself would say nothing."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(*found[:3]) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(found[4])
            tried.listen(1)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot listen at {address} ({why}); stop what uses it, or change `listen` in the plan") from None


class _Refusals(logging.Handler):
    """What the carrier refuses while a connection is made, such as a name that is not that of the certificate."""

    def __init__(self, log: logging.Logger):
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.warning("refused: %.300s", " ".join(record.getMessage().split()))


def _quiet(log: logging.Logger) -> None:
    """Of the carrier's own log only what it refuses goes to ours: it reports every broken connection at length."""
    logging.getLogger("nvflare").setLevel(logging.CRITICAL)
    connections = logging.getLogger("nvflare.fuel.f3.sfm.conn_manager")
    connections.setLevel(logging.ERROR)
    connections.propagate = False
    connections.handlers = [_Refusals(log)]


@contextmanager
def handshakes_in(log: logging.Logger) -> Iterator[None]:
    """Bring failed handshakes to a log: gRPC tells of them on the standard error of the process, and nowhere else."""
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
                elif time.monotonic() - last > 1:  # who knocks all the time does not fill the disk
                    last = time.monotonic()
                    why = line.partition(HANDSHAKE)[2].decode(errors="replace").strip()
                    log.warning("refused: a connection without a certificate of this federation that holds today (%.200s)", why)

    reader = threading.Thread(target=read, name="dffl handshakes", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(before, 2)  # which closes the pipe, and ends the reader
        reader.join(timeout=5)
        os.close(before)
