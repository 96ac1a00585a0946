"""The real coordinator and real participants in one process, connected by queues in the place of the network.

Only one of the threads computes at a time. Nothing depends on how long anything takes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from dffl.deploy.coordinator import Coordinator
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.ledger import RoundRecord, read_ledger
from dffl.deploy.messages import TO_SERVER, TROUBLES, decode, encode
from dffl.deploy.network import COORDINATOR, Event
from dffl.deploy.participant import Participant
from dffl.deploy.site_state import SiteState
from dffl.federation import Federation
from dffl.fitting import Fit
from tests.deploy.simulated import LOG

Refused = Mapping[str, set[tuple[int, int]]]
"""For each site the jobs and rounds in which its answer does not reach the coordinator, which is told of trouble instead."""
Lies = Mapping[str, Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]]
"""For each site that lies what becomes of the fields of its answers on their way."""

MOST = 100.0
"""Seconds after which something has gone wrong."""


class Wires:
    """The network."""

    def __init__(self, refused: Refused | None = None, lies: Lies | None = None) -> None:
        self.refused, self.lies = refused or {}, lies or {}
        self.links: dict[str, MemoryLink] = {}
        self.baton = threading.Lock()
        self.sent: list[tuple[str, str, bytes]] = []

    def link(self, name: str) -> MemoryLink:
        self.links[name] = MemoryLink(name, self)
        return self.links[name]


class KilledError(BaseException):
    """A site's process is gone: nothing catches it."""


class Fuse:
    """Ends a site's process once, at one of the moments around its writes and messages."""

    def __init__(self, moment: int):
        self.moment, self.seen = moment, 0

    def pass_by(self) -> None:
        self.seen += 1
        if self.seen - 1 == self.moment:
            raise KilledError


class FusedState(SiteState):
    """A site's files."""

    def __init__(self, folder: Path, fuse: Fuse):
        super().__init__(folder)
        self.fuse = fuse

    def _write(self, *args: Any) -> None:
        self.fuse.pass_by()
        super()._write(*args)
        self.fuse.pass_by()


@dataclass
class MemoryLink:
    """One side's end; `dffl.deploy.network.Link` in a deployment."""

    name: str
    wires: Wires
    events: SimpleQueue[Event] = field(default_factory=SimpleQueue)
    log: logging.Logger = LOG
    fuse: Fuse | None = None

    def start(self) -> None:
        self.wires.links[COORDINATOR].events.put(Event("up", self.name))
        self.events.put(Event("up", COORDINATOR))

    def close(self) -> None:
        self.wires.links[COORDINATOR].events.put(Event("down", self.name))

    def send(self, peer: str, content: bytes) -> bool:
        other = self.wires.links.get(peer)
        if other is None:
            return False
        if self.name in self.wires.refused:
            content = self._perhaps_troubled(content)
        if self.name in self.wires.lies:
            content = self._perhaps_lied(content)
        if self.fuse is not None:
            self.fuse.pass_by()
        self.wires.sent.append((self.name, peer, content))
        other.events.put(Event("message", self.name, content))
        if self.fuse is not None:
            self.fuse.pass_by()
        return True

    def _perhaps_troubled(self, content: bytes) -> bytes:
        kind, values = decode(content, TO_SERVER)
        if kind != "answer" or (values["job"], values["round"]) not in self.wires.refused[self.name]:
            return content
        return encode("trouble", run=values["run"], job=values["job"], round=values["round"], why=TROUBLES[1])

    def _perhaps_lied(self, content: bytes) -> bytes:
        kind, values = decode(content, TO_SERVER)
        if kind == "answer":
            values["fields"] = self.wires.lies[self.name](values["fields"])
        return encode(kind, **values)

    def next(self, seconds: float) -> Event | None:
        with self._resting():
            try:
                return self.events.get(timeout=max(seconds, 0.0))
            except Empty:
                return None

    @contextmanager
    def _resting(self) -> Iterator[None]:
        self.wires.baton.release()
        try:
            yield
        finally:
            self.wires.baton.acquire()


@dataclass
class Deployed:
    """What came of a deployment: each site's own fit, and the record."""

    fits: dict[str, Fit]
    records: list[RoundRecord]
    traffic: set[str]
    """The fields that the sites have sent or taken."""
    served: set[str]
    """The fields that the coordinator has sent or taken."""
    wires: Wires


def deployed(
    plan: FederationPlan,
    federation: Federation,
    base: Path,
    refused: Refused | None = None,
    fuses: Mapping[str, Fuse] | None = None,
    lies: Lies | None = None,
) -> Deployed:
    """Train a federation as a deployment does. A site that is killed by its fuse starts again with what is on its disk."""
    wires = Wires(refused, lies)
    link: Any = wires.link(COORDINATOR)
    coordinator = Coordinator(plan, link, LOG)
    fits: dict[str, Fit] = {}
    failed: list[BaseException] = []
    traffic: set[tuple[str, str]] = set()

    def take_part(name: str) -> None:
        with wires.baton:
            fuse = (fuses or {}).get(name, Fuse(-1))
            while name not in fits and not failed:
                own: Any = wires.link(name)
                own.fuse = fuse
                client = next(one for one in federation if one.name == name)
                part = Participant(plan, client, own, FusedState(base / name, fuse), LOG)
                try:
                    if (fit := part.unfinished()) is None:
                        own.start()  # not by entering it, which would wait for its thread of beats with the baton in hand
                        fit = part.take_part()
                        part.done(fit)
                    fits[name] = fit
                    traffic.update(part.traffic)
                except KilledError:
                    own.close()
                except BaseException as error:
                    failed.append(error)

    threads = [threading.Thread(target=take_part, args=(name,), daemon=True) for name in plan.sites]
    (base / "run").mkdir(parents=True, exist_ok=True)
    with wires.baton:
        coordinator._stop = lambda: "server" if failed else ""
        for thread in threads:
            thread.start()
        try:
            coordinator.train(base / "run")
            deadline = time.monotonic() + MOST
            while len(fits) < len(plan.sites) and time.monotonic() < deadline:  # as the server does for those who come late
                coordinator.step()
        except BaseException as error:
            failed.append(error)
    for thread in threads if not failed else ():
        thread.join(timeout=MOST)
    if failed:
        raise failed[0]
    fields = {f"{kind}.{name}" for kind, name in traffic}
    served = {f"{kind}.{name}" for kind, name in coordinator.traffic}
    return Deployed(fits, read_ledger(base / "run" / "rounds.jsonl"), fields, served, wires)
