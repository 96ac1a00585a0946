"""A federation of several machines on one host: every site in a network namespace of its own, behind a slow and lossy link.

``python -m benchmarks.namespaces --sites 3 --rounds 10 --delay 40 --loss 1 --kilobits 20000`` (as root, on Linux with iproute2
and iptables). The sites and the coordinator share no network but a bridge with private addresses that exists for this run. Loss
is iptables' (packets are dropped on the way in, on both sides), the rate is tc's token bucket, and the delay is that of a relay
in each site's namespace, through which the site dials out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dffl.deploy.local_demo import LocalFederation

BRIDGE, NETWORK, PORT = "dffl-br", "10.213.77", 8443


class Namespaces(LocalFederation):
    """A stage on which every process has a network of its own."""

    listen_host = f"{NETWORK}.1"
    delay = 0.0

    def free_port(self) -> int:
        return PORT

    def command_prefix(self, key: str) -> list[str]:
        return ["ip", "netns", "exec", namespace(key)]

    def _join(self, name: str) -> None:
        if f"relay of {name}" not in self.processes:
            words = [
                sys.executable,
                "-m",
                "benchmarks.namespaces",
                "--relay",
                f"{NETWORK}.1:{PORT}",
                "--delay",
                f"{1000 * self.delay:g}",
            ]
            self.processes[f"relay of {name}"] = subprocess.Popen([*self.command_prefix(name), *words])
            time.sleep(0.5)
        super()._join(name)

    def _left_behind(self) -> list[str]:
        for key, process in self.processes.items():
            if key.startswith("relay"):
                process.terminate()
                process.wait()
        return super()._left_behind()


def namespace(key: str) -> str:
    """The namespace of a site or of the coordinator."""
    return f"dffl-{key}"[:15]


def run(*words: str) -> None:
    """A command of the system that must succeed."""
    subprocess.run(words, check=True, capture_output=True)


def build(keys: list[str], loss: float, kilobits: int) -> None:
    """A bridge, and for each process a namespace with one link to it."""
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "link", "set", BRIDGE, "up")
    for number, key in enumerate(keys):
        name, outside, inside = namespace(key), f"dv{number}", f"dw{number}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside)
        run("ip", "link", "set", outside, "master", BRIDGE, "up")
        run("ip", "link", "set", inside, "netns", name)
        within = ("ip", "netns", "exec", name)
        run(*within, "ip", "addr", "add", f"{NETWORK}.{number + 1}/24", "dev", inside)
        for device in (inside, "lo"):
            run(*within, "ip", "link", "set", device, "up")
        if kilobits:
            run(
                *within,
                "tc",
                "qdisc",
                "add",
                "dev",
                inside,
                "root",
                "tbf",
                "rate",
                f"{kilobits}kbit",
                "burst",
                "32kbit",
                "latency",
                "400ms",
            )
        if loss:
            drop = ("-m", "statistic", "--mode", "random", "--probability", f"{loss / 100:g}", "-j", "DROP")
            run(*within, "iptables", "-A", "INPUT", "-i", inside, *drop)


def remove(keys: list[str]) -> None:
    """Take everything down; what is not there is left alone."""
    for key in keys:
        subprocess.run(["ip", "netns", "del", namespace(key)], capture_output=True)
    subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)


async def relay(target: str, delay: float) -> None:
    """Pass bytes on between localhost and the coordinator, each of them so many seconds later, in both directions."""
    host, _, port = target.rpartition(":")

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                due, chunk = await queue.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not chunk:
                    writer.close()
                    return
                writer.write(chunk)
                await writer.drain()

        sender = asyncio.create_task(send())
        try:
            while chunk := await reader.read(1 << 16):
                queue.put_nowait((time.monotonic() + delay, chunk))
        except ConnectionError:
            pass
        queue.put_nowait((time.monotonic() + delay, b""))
        await asyncio.gather(sender, return_exceptions=True)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer), return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", PORT)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run the federation, print what came of it as JSON, and end with 1 if a promise does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--method", default="finetune")
    parser.add_argument("--delay", type=float, default=40.0, help="milliseconds each way")
    parser.add_argument("--loss", type=float, default=1.0, help="percent of the packets")
    parser.add_argument("--kilobits", type=int, default=20000, help="per second on each link; 0: no limit")
    parser.add_argument("--relay", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.relay:
        asyncio.run(relay(asked.relay, asked.delay / 1000))
        return
    if os.geteuid() != 0:
        sys.exit("namespaces: network namespaces need root")
    names = [f"site-{number + 1}" for number in range(asked.sites)]
    keys = ["coordinator", *names]
    remove(keys)
    Namespaces.delay = asked.delay / 1000
    try:
        build(keys, asked.loss, asked.kilobits)
        with tempfile.TemporaryDirectory() as folder:
            found = Namespaces(Path(folder), names, asked.rounds, asked.method, lambda line: print(line, file=sys.stderr)).run(
                None, None
            )
    finally:
        remove(keys)
    print(json.dumps(found.as_json()))
    sys.exit(1 if found.failed else 0)


if __name__ == "__main__":
    main()
