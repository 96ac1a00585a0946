"""What a deployed round costs: time beyond the sites' own computing, bytes of messages and on the wire, start to first round.

    python -m benchmarks.federation                        # 3 sites
    python -m benchmarks.federation --sites 3 --sites 20

Real processes on loopback, with certificates, as in `dffl federation demo`; the network is the paper's 8-64-50. Sites dial a
relay that counts the bytes of each connection and passes them on to the coordinator: TLS and everything that the carrier adds
is counted, the headers of TCP and IP are not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from dffl.deploy.local_demo import FederationDemoResult, LocalFederation
from dffl.deploy.run_state import RunState
from dffl.deploy.run_status import RunResult


class Relay:
    """Passes connections on to another address of this machine at the same port, and counts their bytes."""

    def __init__(self, port: int, listens: str, target: str):
        self.bytes = 0
        self._port, self._target, self._lock = port, target, threading.Lock()
        self._listener = socket.create_server((listens, port), backlog=100)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection((self._target, self._port))
            except OSError:
                here.close()  # the coordinator does not listen yet: the site tries again
                continue
            for one, other in ((here, there), (there, here)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while chunk := one.recv(1 << 16):
                with self._lock:
                    self.bytes += len(chunk)
                other.sendall(chunk)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                end.close()


class Counted(LocalFederation):
    """A stage whose sites dial the relay at 127.0.0.1; the coordinator listens at another loopback address."""

    listen_host = "127.0.0.2"

    def __init__(self, *given: object):
        super().__init__(*given)  # type: ignore[arg-type]
        self.relay = Relay(self.port, "127.0.0.1", self.listen_host)
        self.first = self.last = (0, 0)
        """Bytes on the wire, and rounds that had closed, soon after the first round and soon after the last one."""

    def _wait_for_rounds(self, count: int) -> float:
        reached = super()._wait_for_rounds(count)
        self.first = self._counted()
        super()._wait_for_rounds(self.plan.settings.rounds)
        self.last = self._counted()
        return reached

    def _counted(self) -> tuple[int, int]:
        run_folder = self.folder.latest()
        assert run_folder is not None
        return self.relay.bytes, len(RunResult.of(run_folder, self.plan.sites).records)

    def _left_behind(self) -> list[str]:
        self.relay.close()
        return super()._left_behind()


def measured(sites: int, rounds: int) -> dict[str, object]:
    """One run with plain federated averaging, whose only training has so many rounds."""
    names = [f"site-{number + 1}" for number in range(sites)]
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="dffl-federation-") as folder:
        stage = Counted(Path(folder), names, rounds, "fedavg", lambda line: print(line, file=sys.stderr))
        found: FederationDemoResult = stage.run(None, None)
        run_folder = stage.folder.latest()
        assert run_folder is not None
        shared = RunState.read(run_folder / "state.dffl").finals[0].shared
    beyond = [record.seconds - record.training_seconds for record in found.result.records[1:]]
    (bytes_0, rounds_0), (bytes_1, rounds_1) = stage.first, stage.last
    payload = 2 * shared.size * shared.itemsize
    wire = (bytes_1 - bytes_0) / (rounds_1 - rounds_0) / sites
    return {
        "sites": sites,
        "rounds": rounds,
        "parameters": shared.size,
        "payload_bytes": payload,
        "message_bytes": round(found.result.bytes_per_site),
        "wire_bytes": round(wire),
        "overhead_seconds": round(found.overhead, 4),
        "overhead_seconds_90_percent": round(float(np.quantile(beyond, 0.9)), 4),
        "start_seconds": round(found.start_seconds, 1),
        "max_difference": found.max_difference,
        "left_behind": found.left_behind,
        "load_before": round(before, 1),
    }


def main() -> None:
    """Print one line of JSON for each number of sites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, action="append", help="may be repeated; 3 by default")
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    for sites in asked.sites or [3]:
        print(json.dumps(measured(sites, asked.rounds)), flush=True)


if __name__ == "__main__":
    main()
