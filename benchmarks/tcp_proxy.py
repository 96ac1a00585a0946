"""A small TCP proxy on this machine whose connections can be cut or made to stand still."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from contextlib import suppress

RESET = struct.pack("ii", 1, 0)
"""Close with a reset, and at once."""


class Proxy:
    """Passes on what arrives at a port of its own to another port."""

    def __init__(self, target: int):
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._closed_until = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_one(self) -> None:
        """Cut one of the connections, with a reset at both ends."""
        with self._lock:
            alive = [pair for pair in self._pairs if pair[0].fileno() >= 0]
            if alive:
                self._drop(random.choice(alive))

    def cut_all(self, seconds: float) -> None:
        """Cut all connections, and take no new ones for some seconds."""
        with self._lock:
            self._closed_until = time.monotonic() + seconds
            for pair in self._pairs:
                self._drop(pair)
            self._pairs.clear()

    def stand_still(self, seconds: float) -> None:
        """Pass on nothing for some seconds; the connections stay, as when a cable is pulled."""
        self._flows.clear()
        threading.Timer(seconds, self._flows.set).start()

    def close(self) -> None:
        self._flows.set()
        self._listener.close()
        self.cut_all(0.0)

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                near, _ = self._listener.accept()
                if time.monotonic() < self._closed_until:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                except OSError:  # the coordinator is not there
                    near.close()
                    continue
                far.settimeout(None)
                with self._lock:
                    self._pairs = [pair for pair in self._pairs if pair[0].fileno() >= 0] + [(near, far)]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while content := one.recv(1 << 16):
                self._flows.wait()
                other.sendall(content)
        for side in (one, other):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    @staticmethod
    def _drop(pair: tuple[socket.socket, socket.socket]) -> None:
        for side in pair:
            with suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                side.shutdown(socket.SHUT_RDWR)
                side.close()
