"""The real coordinator in simulated time: a network in memory, and sites that answer by a formula or do something wrong.

Nothing here sleeps, so that patience of minutes costs nothing and no test depends on the speed of the machine.
"""

from __future__ import annotations

import heapq
import logging
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.deploy import round as round_module
from dffl.deploy import site_registry, site_view
from dffl.deploy.coordinator import Coordinator
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.messages import PROTOCOL, TO_SITE, Message, decode, encode
from dffl.deploy.network import Event, nvflare_version
from dffl.deploy.run_state import RunState

LOG = logging.getLogger("dffl.tests.deploy")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())
COMPUTING = 0.05
"""Seconds that a simulated site takes."""


class Clock:
    """What the coordinator's modules see in the place of `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.8e9 + self.now


@contextmanager
def simulated_time() -> Iterator[Clock]:
    """The coordinator's side lives in simulated time."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patched:
        for module in (site_view, round_module, site_registry):
            patched.setattr(module, "time", clock)
        yield clock


class Network:
    """The coordinator's end of the network, in memory; `dffl.deploy.network.Link` in a deployment."""

    def __init__(self, clock: Clock):
        self.clock, self.log = clock, LOG
        self.sites: dict[str, SimulatedSite] = {}
        self._due: list[tuple[float, int, Callable[[], Event | None]]] = []
        self._number = 0

    def at(self, seconds: float, happens: Callable[[], Event | None]) -> None:
        """Let something happen after some seconds; what it returns arrives at the coordinator."""
        self._number += 1
        heapq.heappush(self._due, (self.clock.now + seconds, self._number, happens))

    def put(self, peer: str, content: bytes, after: float = 0.0) -> None:
        """Let a message arrive."""
        self.at(after, lambda: Event("message", peer, content))

    def next(self, seconds: float) -> Event | None:
        end = self.clock.now + max(seconds, 0.0)
        while self._due and self._due[0][0] <= end:
            at, _, happens = heapq.heappop(self._due)
            self.clock.now = max(self.clock.now, at)
            if (event := happens()) is not None:
                return event
        self.clock.now = end
        return None

    def send(self, peer: str, content: bytes) -> bool:
        site = self.sites.get(peer)
        if site is None or not site.up:
            return False
        site.receive(decode(content, TO_SITE))
        return True


Behaviour = Callable[["SimulatedSite", dict[str, Any]], None]
"""What a site does with an order."""


def honest(site: SimulatedSite, order: dict[str, Any]) -> None:
    """Answer the order."""
    site.answer(order)


@dataclass
class SimulatedSite:
    """One site: it joins, beats and opens as a real one does; what it does with an order is given."""

    network: Network
    plan: FederationPlan
    name: str
    count: int = 10
    behaviour: Behaviour = honest
    up: bool = False
    beats: bool = False
    """It is joined and gives signs of life."""
    run: str = ""
    instance: str = "first"
    welcomes: list[dict[str, Any]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    seen: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    """The shared model that came with the order of each job and round."""
    orders: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    finals: dict[str, np.ndarray] = field(default_factory=dict)
    jobs: int = 1
    offer: dict[str, Any] = field(default_factory=dict)
    """Changes of what it offers."""

    def connect(self, after: float = 0.0) -> None:
        self.network.sites[self.name] = self
        self.network.at(after, self._up)

    def _up(self) -> Event:
        self.up = True
        self.join()
        return Event("up", self.name)

    def join(self, **changes: Any) -> None:
        values = {
            "protocol": PROTOCOL, "dffl": dffl.__version__, "carrier": nvflare_version(), "plan": self.plan.digest,
            "columns": "columns", "rows": self.count + 2, "time": self.network.clock.time(), "instance": self.instance,
            "finished": "",
        } | self.offer | changes  # fmt: skip
        self.send("join", **values)

    def vanish(self, back: float | None = None, quiet: bool = False) -> None:
        """Be gone, with a broken connection or quietly, and come back after some seconds."""
        self.up = self.beats = False
        if not quiet:
            self.network.at(0.0, lambda: Event("down", self.name))
        if back is not None:
            self.instance += "'"
            self.network.at(back, self._up)

    def send(self, kind: str, after: float = 0.0, **values: Any) -> None:
        self.network.put(self.name, encode(kind, **values), after)

    def receive(self, message: Message) -> None:
        values = message.values
        if message.kind == "welcome":
            self.welcomes.append(values)
            if values["accepted"] and not self.beats:
                self.beats = True
                self.network.at(1.0, self._beat)
        elif message.kind == "open":
            self.run = values["run"]
            self.send("opened", run=self.run, counts={str(job): self.count for job in range(self.jobs)}, units={})
        elif message.kind == "order":
            key = (values["job"], values["round"])
            self.orders[key] += 1
            shared = values["sent"]["shared"]
            assert key not in self.seen or self.seen[key].tobytes() == shared.tobytes(), "two orders of one round differ"
            self.seen[key] = shared
            self.behaviour(self, values)
        elif message.kind == "finish":
            self.finals = values["shared"]
            self.send("done", run=self.run, scalars={})
            self.send("leave", after=0.01)
            self.beats = False
        elif message.kind == "stop":
            self.stopped.append(values["why"])
        elif message.kind == "rejoin":
            self.join()

    def _beat(self) -> Event | None:
        if not self.beats:
            return None
        self.network.at(1.0, self._beat)
        return Event("message", self.name, encode("beat"))

    def update(self, order: dict[str, Any]) -> dict[str, np.ndarray]:
        """What an honest site answers: a formula of its name, the round and what it was sent."""
        return {"vector": formula(self.name, order["job"], order["round"], order["sent"]["shared"])}

    def answer(self, order: dict[str, Any], after: float = COMPUTING, **changes: Any) -> None:
        """Answer an order, with some values changed."""
        self.send("answer", after, **self.answering(order) | changes)

    def answering(self, order: dict[str, Any]) -> dict[str, Any]:
        where = {key: order[key] for key in ("run", "job", "round")}
        scalars = {"loss": np.asarray(0.5)} if "loss" in self.plan.scalars else {}
        return {**where, "count": self.count, "seconds": COMPUTING, "fields": self.update(order), "scalars": scalars}


def formula(name: str, job: int, round: int, shared: np.ndarray) -> np.ndarray:
    """An honest update."""
    drawn = np.random.default_rng([zlib.crc32(name.encode()), job, round]).normal(size=shared.shape)
    return (0.5 * shared + 0.1 * drawn).astype(shared.dtype)


def mean_of(shared: np.ndarray, job: int, round: int, counts: dict[str, int]) -> np.ndarray:
    """The mean of the honest updates of some sites, weighted by their samples, computed on its own."""
    total = sum(formula(name, job, round, shared).astype(np.float64) * count for name, count in sorted(counts.items()))
    return np.asarray(total / sum(counts.values()), shared.dtype)


@dataclass
class Stage:
    """A coordinator, a network and sites."""

    plan: FederationPlan
    clock: Clock
    network: Network
    sites: dict[str, SimulatedSite]
    coordinator: Coordinator

    @classmethod
    def of(cls, plan: FederationPlan, clock: Clock, behaviour: Behaviour = honest, jobs: int = 1) -> Stage:
        network = Network(clock)
        made = {
            name: SimulatedSite(network, plan, name, 10 + 3 * place, behaviour, jobs=jobs)
            for place, name in enumerate(plan.sites)
        }
        for one in made.values():
            one.connect()
        link: Any = network
        return cls(plan, clock, network, made, Coordinator(plan, link, LOG))

    def train(self, folder: Path) -> RunState:
        folder.mkdir(parents=True, exist_ok=True)
        return self.coordinator.train(folder)
