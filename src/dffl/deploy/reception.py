"""Who is there: the coordinator's events, one at a time, and what it takes to join.

One thread does it all. Everything that it decides follows from the events of the network and from the clock.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import dffl
from dffl.deploy.clock import LivedClock
from dffl.deploy.messages import PROTOCOL, TO_SERVER, decode, encode
from dffl.deploy.network import Event, Link, carrier_version
from dffl.deploy.plan import Plan
from dffl.deploy.sites import SiteView
from dffl.deploy.state import RunState, deep_units, wrong_units
from dffl.predictor import Normaliser

TICK = 0.2
"""Seconds between two looks at the clock while nothing arrives."""
QUIET = 3.0
"""Seconds without a sign of life after which another process under a site's name takes its place: it was restarted."""
OTHER_PROCESS = "another process is joined under this name; stop it first"


class StopRequestedError(RuntimeError):
    """Somebody asked the run, or the whole server, to stop; the state is kept."""

    def __init__(self, what: str):
        super().__init__(f"the {what} was asked to stop; the state is kept")
        self.server = what == "server"


class Reception(ABC):
    """The sites of a plan, as they come and go."""

    def __init__(self, plan: Plan, link: Link, log: logging.Logger, stop: Callable[[], str] = lambda: ""):
        self.plan, self.link, self.log, self._stop = plan, link, log, stop
        self.clock = LivedClock()
        self.sites = {name: SiteView(name, self.clock) for name in plan.sites}
        self.columns = ""
        """The digest of the columns of the run under way; all sites must have these."""
        self.traffic: set[tuple[str, str]] = set()
        """The kinds and fields of all messages that were sent or taken: the list in the docs is compared with it."""

    @abstractmethod
    def joined(self, site: SiteView) -> None:
        """A site has joined."""

    @abstractmethod
    def said(self, site: SiteView, kind: str, values: dict[str, Any], size: int) -> None:
        """A site that has joined says something."""

    @abstractmethod
    def unreadable(self, site: SiteView, why: str) -> None:
        """A site sent something that cannot be read."""

    def step(self, seconds: float = TICK) -> None:
        """Take the next event, if there is one, and look at the clock."""
        event = self.link.next(seconds)
        self.clock.waited(seconds)
        if event is not None:
            self._take(event)
        now = self.clock.now()
        for site in self.sites.values():
            if site.joined and now - site.seen > self.plan.patience.dead:
                self.log.warning("%s: no sign of life for %.0f s", site.name, now - site.seen)
                site.lost()
            if site.offer is not None and (not site.joined or now - site.offered > QUIET):
                offer, site.offer = site.offer, None
                site.lost()
                self._take_join(site, offer)
        if what := self._stop():
            raise StopRequestedError(what)

    def send(self, name: str, kind: str, **values: Any) -> int:
        """Send a message; its size, or 0 if it did not leave."""
        content = encode(kind, **values)
        if not self.link.send(name, content):
            return 0
        self.traffic |= {(kind, field) for field in values}
        return len(content)

    def _take(self, event: Event) -> None:
        site = self.sites.get(event.peer)
        if site is None:
            if event.what == "up":
                self.log.warning("refused: %r has a certificate, but is no site of the plan", event.peer)
            elif event.what == "message":
                why = "this name is not among the sites of the plan"
                self.send(event.peer, "welcome", instance="", accepted=False, why=why)
        elif event.what == "up":
            site.connected = True
            site.alive()
            self.log.info("%s: connected", site.name)
        elif event.what == "down":
            self.log.info("%s: disconnected", site.name)
            site.lost()
        else:
            self._take_message(site, event.content)

    def _take_message(self, site: SiteView, content: bytes) -> None:
        try:
            kind, values = decode(content, TO_SERVER)
        except ValueError as error:
            site.alive()
            self.log.warning("%s: refused: %s", site.name, error)
            self.unreadable(site, str(error))
            return
        self.traffic |= {(kind, name) for name in values}
        if kind == "join":
            self._take_join(site, values)
            return
        site.alive()
        if site.offer is not None:  # the process that joined is alive: who offers itself under its name is another one
            self._refuse(site, site.offer, OTHER_PROCESS)
            site.offer = None
        if kind == "leave":
            site.lost()
        elif not site.joined:
            if kind == "beat":  # it was paused for a while, or another process under its name has gone
                self.send(site.name, "rejoin")
            else:
                self.log.warning("%s: sent %r before it joined", site.name, kind)
        elif kind != "beat":
            self.said(site, kind, values, len(content))

    def _take_join(self, site: SiteView, offer: dict[str, Any]) -> None:
        if (why := self._objection(offer)) is not None:
            self._refuse(site, offer, why)
            return
        if site.joined and site.instance != offer["instance"]:
            # Either another process under one name, or the same one, restarted before its end was noticed.
            site.offer, site.offered = offer, self.clock.now()
            return
        site.alive()
        site.joined, site.away_since, site.rows, site.instance = True, None, offer["rows"], offer["instance"]
        site.finished = offer["finished"]
        site.opened = ""
        site.columns = offer["columns"]
        self.log.info("%s: joined with %d rows", site.name, site.rows)
        self.send(site.name, "welcome", instance=site.instance, accepted=True, why="")
        self.joined(site)

    def _refuse(self, site: SiteView, offer: dict[str, Any], why: str) -> None:
        self.log.warning("%s: refused: %s", site.name, why)
        for _ in range(2):  # two connections under one name are served in turn
            self.send(site.name, "welcome", instance=offer["instance"], accepted=False, why=why)

    def _objection(self, offer: dict[str, Any]) -> str | None:
        """Why a site may not take part, if it may not."""
        for key, mine, what in (
            ("protocol", PROTOCOL, "messages of version"),
            ("dffl", dffl.__version__, "dffl"),
            ("carrier", carrier_version(), "NVFlare"),
        ):
            if offer[key] != mine:
                return f"this site has {what} {offer[key]}, the coordinator {mine}; install the same version"
        if offer["plan"] != self.plan.digest:
            return "this site's kit has another plan than the coordinator; ask for a new kit"
        apart = offer["time"] - time.time()
        if abs(apart) > self.plan.clock_seconds:
            return f"this site's clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} the coordinator's; set it"
        if self.agreed_columns not in ("", offer["columns"]):
            others = "the plan" if self.plan.columns else "the sites before it"
            return f"this site's feature and cost columns are others, or in another order, than those of {others}"
        if not self.plan.min_rows <= offer["rows"] <= self.plan.most_rows:
            asked = f"the plan asks for {self.plan.min_rows} to {self.plan.most_rows}"
            return f"this site has {offer['rows']} training rows, {asked}"
        return None

    def opened(self, site: SiteView, run: RunState, trainings: int, values: dict[str, Any]) -> str | None:
        """A site has laid out its samples for a run; why what it says of them cannot be true, if it cannot."""
        counts, found = values["counts"], deep_units(values["units"]) if self.plan.pools else {}
        if not {str(place) for place in range(trainings)} <= set(counts):
            return f"it does not say how many samples it has in each of the {trainings} trainings"
        if any(count < 1 or count > site.rows for count in counts.values()):
            return "a number of samples is not between 1 and the site's rows"
        if run.counts.get(site.name, counts) != counts:
            return "its numbers of samples are others than before in this run; `dffl federation train --new` begins a new one"
        if self.plan.pools and {f"part {part}" for part in found} != {name for name in counts if name.startswith("part ")}:
            return "its units are not those of all the parts of its samples"
        if (why := wrong_units(found, self.plan.inputs)) is not None:
            return why
        site.counts, site.opened = counts, run.run
        site.units = {part: Normaliser(**own) for part, own in found.items()}
        return None

    @property
    def agreed_columns(self) -> str:
        """The digest of the columns in the plan, or of the run, or, before there is one, of the sites that are there."""
        return self.plan.columns or self.columns or next((site.columns for site in self.sites.values() if site.joined), "")
