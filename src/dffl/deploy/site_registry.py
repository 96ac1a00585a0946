"""The connected sites: the coordinator's events, one at a time, and the conditions to join.

All of it runs in one thread. Its decisions depend only on the events of the network and on the clock.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import dffl
from dffl.deploy.federation_plan import FederationPlan
from dffl.deploy.messages import PROTOCOL, TO_SERVER, decode, encode
from dffl.deploy.network import Event, Link, nvflare_version
from dffl.deploy.run_state import RunState, unit_problem, units_from_arrays
from dffl.deploy.site_view import ActiveClock, SiteView
from dffl.predictor import Normaliser

POLL_SECONDS = 0.2
"""Seconds between two checks of the clock while no event arrives."""
SILENCE_SECONDS = 3.0
"""Silence in seconds after which a new process of the same site replaces the old one."""
OTHER_PROCESS = "another process has joined under this name; stop it first"


class StopRequestedError(RuntimeError):
    """A command asked the run, or the whole server, to stop; the state is kept."""

    def __init__(self, what: str):
        super().__init__(f"the {what} was asked to stop; the state is kept")
        self.server = what == "server"


class SiteRegistry(ABC):
    """The sites of a plan, which connect, join and leave."""

    def __init__(self, plan: FederationPlan, link: Link, log: logging.Logger, stop: Callable[[], str] = lambda: ""):
        self.plan, self.link, self.log, self._stop = plan, link, log, stop
        self.clock = ActiveClock()
        self.sites = {name: SiteView(name, self.clock) for name in plan.sites}
        self.columns = ""
        """The digest of the columns of the current run, which all sites must have."""
        self.traffic: set[tuple[str, str]] = set()
        """The kinds and fields of all messages that were sent or received; tests compare the list in the docs with it."""

    @abstractmethod
    def on_joined(self, site: SiteView) -> None:
        """Called when a site has joined."""

    @abstractmethod
    def on_message(self, site: SiteView, kind: str, values: dict[str, Any], size: int) -> None:
        """Called for a message of a site that has joined."""

    @abstractmethod
    def on_unreadable(self, site: SiteView, why: str) -> None:
        """Called for a message that cannot be decoded."""

    def step(self, seconds: float = POLL_SECONDS) -> None:
        """Handle the next event, if there is one, and check the time-outs."""
        event = self.link.next(seconds)
        self.clock.waited(seconds)
        if event is not None:
            self._take(event)
        now = self.clock.now()
        for site in self.sites.values():
            if site.joined and now - site.seen > self.plan.timeouts.dead:
                self.log.warning("%s: silent for %.0f s", site.name, now - site.seen)
                site.mark_lost()
            if site.offer is not None and (not site.joined or now - site.offered > SILENCE_SECONDS):
                offer, site.offer = site.offer, None
                site.mark_lost()
                self._take_join(site, offer)
        if target := self._stop():
            raise StopRequestedError(target)

    def send(self, name: str, kind: str, **values: Any) -> int:
        """Send a message; returns its size, or 0 if it was not sent."""
        content = encode(kind, **values)
        if not self.link.send(name, content):
            return 0
        self.traffic |= {(kind, field) for field in values}
        return len(content)

    def _take(self, event: Event) -> None:
        site = self.sites.get(event.peer)
        if site is None:
            if event.what == "up":
                self.log.warning("rejected: %r has a certificate, but is not a site of the plan", event.peer)
            elif event.what == "message":
                why = "this name is not a site of the plan"
                self.send(event.peer, "welcome", instance="", accepted=False, why=why)
        elif event.what == "up":
            site.connected = True
            site.mark_alive()
            self.log.info("%s: connected", site.name)
        elif event.what == "down":
            self.log.info("%s: disconnected", site.name)
            site.mark_lost()
        else:
            self._take_message(site, event.content)

    def _take_message(self, site: SiteView, content: bytes) -> None:
        try:
            kind, values = decode(content, TO_SERVER)
        except ValueError as error:
            site.mark_alive()
            self.log.warning("%s: rejected a message: %s", site.name, error)
            self.on_unreadable(site, str(error))
            return
        self.traffic |= {(kind, name) for name in values}
        if kind == "join":
            self._take_join(site, values)
            return
        site.mark_alive()
        if site.offer is not None:  # the joined process is alive, so the join came from another process
            self._reject(site, site.offer, OTHER_PROCESS)
            site.offer = None
        if kind == "leave":
            site.mark_lost()
        elif not site.joined:
            if kind == "beat":  # it was paused, or another process of the site has ended
                self.send(site.name, "rejoin")
            else:
                self.log.warning("%s: sent %r before it joined", site.name, kind)
        elif kind != "beat":
            self.on_message(site, kind, values, len(content))

    def _take_join(self, site: SiteView, offer: dict[str, Any]) -> None:
        if (why := self._rejection_reason(offer)) is not None:
            self._reject(site, offer, why)
            return
        if site.joined and site.instance != offer["instance"]:
            # Either a second process of the site, or a restart that came before the old process was known to be gone.
            site.offer, site.offered = offer, self.clock.now()
            return
        site.mark_alive()
        site.joined, site.away_since, site.rows, site.instance = True, None, offer["rows"], offer["instance"]
        site.finished = offer["finished"]
        site.opened = ""
        site.columns = offer["columns"]
        self.log.info("%s: joined with %d rows", site.name, site.rows)
        self.send(site.name, "welcome", instance=site.instance, accepted=True, why="")
        self.on_joined(site)

    def _reject(self, site: SiteView, offer: dict[str, Any], why: str) -> None:
        self.log.warning("%s: rejected: %s", site.name, why)
        for _ in range(2):  # two connections under one name receive messages in turn
            self.send(site.name, "welcome", instance=offer["instance"], accepted=False, why=why)

    def _rejection_reason(self, offer: dict[str, Any]) -> str | None:
        """Why a site may not take part, or None."""
        for key, expected, what in (
            ("protocol", PROTOCOL, "messages of version"),
            ("dffl", dffl.__version__, "dffl"),
            ("carrier", nvflare_version(), "NVFlare"),
        ):
            if offer[key] != expected:
                return f"this site has {what} {offer[key]}, the coordinator {expected}; install the same version"
        if offer["plan"] != self.plan.digest:
            return "this site's kit has another plan than the coordinator; ask for a new kit"
        offset = offer["time"] - time.time()
        if abs(offset) > self.plan.clock_seconds:
            return (
                f"this site's clock is {abs(offset):.0f} s {'ahead of' if offset > 0 else 'behind'} the coordinator's; set it"
            )
        if self.agreed_columns not in ("", offer["columns"]):
            others = "the plan" if self.plan.columns else "earlier sites"
            return f"this site's feature and cost columns differ from those of {others}, or are in another order"
        if not self.plan.min_rows <= offer["rows"] <= self.plan.row_limit:
            allowed = f"the plan allows {self.plan.min_rows} to {self.plan.row_limit}"
            return f"this site has {offer['rows']} training rows, {allowed}"
        return None

    def on_opened(self, site: SiteView, run: RunState, trainings: int, values: dict[str, Any]) -> str | None:
        """A site has prepared its samples for a run. Returns why its report cannot be true, or None."""
        counts, units = values["counts"], units_from_arrays(values["units"]) if self.plan.pools else {}
        if not {str(job) for job in range(trainings)} <= set(counts):
            return f"it does not report its number of samples in each of the {trainings} trainings"
        if any(count < 1 or count > site.rows for count in counts.values()):
            return "a number of samples is not between 1 and the site's rows"
        if run.counts.get(site.name, counts) != counts:
            return "its numbers of samples have changed in this run; `dffl federation train --new` starts a new run"
        if self.plan.pools and {f"part {part}" for part in units} != {name for name in counts if name.startswith("part ")}:
            return "its units do not cover all parts of its samples"
        if (why := unit_problem(units, self.plan.inputs)) is not None:
            return why
        site.counts, site.opened = counts, run.run
        site.units = {part: Normaliser(**arrays) for part, arrays in units.items()}
        return None

    @property
    def agreed_columns(self) -> str:
        """The digest of the columns: of the plan, else of the run, else of the first joined site."""
        return self.plan.columns or self.columns or next((site.columns for site in self.sites.values() if site.joined), "")
