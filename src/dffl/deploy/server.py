"""The coordinator's process: listens, waits for somebody to ask for a run, holds it, and keeps serving."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Any

from dffl.cache import keep_compiled_programs
from dffl.deploy.coordinator import Coordinator
from dffl.deploy.credentials import require_server, server_credentials
from dffl.deploy.held_round import QuorumError
from dffl.deploy.keys import Keys
from dffl.deploy.locks import is_held, locked
from dffl.deploy.network import COORDINATOR, Link, handshakes_in, require_free
from dffl.deploy.plan import read_plan
from dffl.deploy.reception import StopRequestedError
from dffl.deploy.state import FINISHED, STOPPED, TRAINING, WAITING, Folder, RunState, said, say
from dffl.files import write_text
from dffl.training.history import DivergenceError

FAILED = "failed"
MOST_LOG = 32 * 2**20
"""Bytes of a log; what is older is kept once, and then forgotten. A member that sends nonsense must not fill the disk."""
LOG = "%(asctime)s %(levelname)s %(message)s"


@contextmanager
def naming_full_disk(folder: Path) -> Iterator[None]:
    """Say of a disk that is full where it is; what has been written whole before is kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        why = os.strerror(error.errno)
        raise OSError(f"{error.filename or folder}: {why}; make room and type the command again, the state is kept") from None


class FederationServer:
    """The coordinator's process over its folder."""

    def __init__(self, folder: Folder, log: logging.Logger):
        self.folder, self.log = folder, log
        self.plan = read_plan(folder.path / "plan.toml")
        if not (folder.secrets / "server.key").is_file():
            raise ValueError(f"{folder.path}: has no certificates yet; type dffl federation create {folder.path / 'plan.toml'}")
        require_server(folder.secrets, self.plan.hosts)
        self._keys = Keys(folder.keys, log)
        self._keys.require_readable()
        self._stop = ""

    def serve(self, shown: Any = print) -> None:
        """Serve until somebody asks to stop."""
        lock = locked(self.folder.lock, "another coordinator serves this folder already")
        with naming_full_disk(self.folder.path), lock, handshakes_in(self.log):
            require_free(self.plan.listen)
            keep_compiled_programs()
            self._forget_old_orders()
            own, refuses = server_credentials(self.folder.secrets), self._keys.objection
            link = Link(COORDINATOR, self.plan.listen, own, self.plan.most_bytes, self.log, refuses)
            coordinator = Coordinator(self.plan, link, self.log, self._asked_to_stop)
            link.start()
            before = signal.signal(signal.SIGTERM, self._terminated)
            try:
                self.log.info("serving %r at %s", self.plan.name, self.plan.listen)
                shown(f"serving {self.plan.name!r} at {self.plan.listen} for {len(self.plan.sites)} sites; Ctrl-C stops")
                self._loop(coordinator)
            except StopRequestedError:
                self.log.info("stopped")
                shown("stopped")
            finally:
                signal.signal(signal.SIGTERM, before)
                link.close()
            self._write_traffic(coordinator)

    def _forget_old_orders(self) -> None:
        """Remove the orders for a coordinator before this one; whoever sees this one's lock may have left an order already."""
        self.folder.control.mkdir(exist_ok=True, mode=0o700)
        since = self.folder.lock.stat().st_mtime_ns
        for order in self.folder.control.glob("*"):
            if order.stat().st_mtime_ns < since:
                order.unlink()

    def _loop(self, coordinator: Coordinator) -> None:
        self._resume(coordinator)
        while True:
            try:
                coordinator.step()
            except StopRequestedError as stopped:
                if stopped.server:
                    raise  # and without a run there is nothing else to stop
            if (order := self.folder.control / "train").exists():
                self._hold(coordinator, self._begun(order))

    def _begun(self, order: Path) -> Path:
        """The folder of the run that an order asks for; whoever asked is told which it is."""
        asked = json.loads(order.read_text() or "{}")
        order.unlink()
        run = self._run_folder(bool(asked.get("new")))
        say(run, WAITING)
        write_text(self.folder.begun, json.dumps({"asked": asked.get("asked"), "run": run.name}))
        return run

    def _resume(self, coordinator: Coordinator) -> None:
        """Go on with a run that a crash has interrupted; serve the models of one that is over."""
        latest = self.folder.latest()
        if latest is None:
            return
        status = said(latest)["status"]
        if status == WAITING and begun(self.folder).get("run") == latest.name:  # it was asked for, and a crash came between
            self._hold(coordinator, latest)
        elif not (latest / "state.dffl").exists():
            return
        elif status == TRAINING and not self._may_go_on(latest):
            why = "the plan was changed; put it back and train to go on with this run, or train to begin a new one"
            self.log.warning("run %s stands still: %s", latest.name, why)
            say(latest, STOPPED, why=why)
        elif status == TRAINING:
            self.log.info("going on with run %s", latest.name)
            self._hold(coordinator, latest)
        elif status == FINISHED and self._may_go_on(latest):
            try:
                coordinator.serve_finished(latest)
            except ValueError as error:
                self.log.error("sites that come late get no model of run %s: %s", latest.name, error)

    def _may_go_on(self, run: Path) -> bool:
        """Whether a run follows the plan as it is now, or has no state yet; of a damaged one, whoever uses it says so."""
        try:
            return RunState.read(run / "state.dffl").plan == self.plan.digest
        except ValueError:
            return True

    def _run_folder(self, fresh: bool) -> Path:
        """The last run, if it is not over and follows this plan; else a new one."""
        latest = self.folder.latest()
        goes_on = latest is not None and not fresh and said(latest)["status"] not in (FINISHED, FAILED)
        if latest is not None and goes_on and self._may_go_on(latest):
            return latest
        return self.folder.new_run()

    def _hold(self, coordinator: Coordinator, folder: Path) -> None:
        try:
            coordinator.train(folder)
        except QuorumError:
            pass  # it is on record; the server goes on serving
        except StopRequestedError as stopped:
            if stopped.server:
                raise
        except (ValueError, DivergenceError, RuntimeError) as error:
            self.log.error("the run failed: %s", error)
            say(folder, FAILED, why=str(error))
            coordinator.abandon(str(error))
        self._write_traffic(coordinator)

    def _write_traffic(self, coordinator: Coordinator) -> None:
        kinds = sorted(f"{kind}.{field}" for kind, field in coordinator.traffic)
        write_text(self.folder.path / "traffic.json", json.dumps(kinds))

    def _asked_to_stop(self) -> str:
        if (order := self.folder.control / "stop").exists():
            what = str(json.loads(order.read_text() or "{}").get("what", "run"))
            order.unlink()
            return what
        return self._stop

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        self._stop = "server"


def begun(folder: Folder) -> dict[str, Any]:
    """Which run the coordinator has begun last, and for whom."""
    return dict(json.loads(folder.begun.read_text())) if folder.begun.exists() else {}


def ask(folder: Folder, order: str, **more: Any) -> None:
    """Leave an order for the coordinator's process, which must be there."""
    if is_held(folder.lock) is None:
        raise ValueError(f"{folder.path}: no coordinator serves it; type dffl federation serve {folder.path}")
    folder.control.mkdir(exist_ok=True, mode=0o700)
    write_text(folder.control / order, json.dumps(more))


def serving_log(folder: Folder) -> logging.Logger:
    """The coordinator's log, in its folder."""
    return file_log(f"dffl.coordinator.{folder.path}", folder.log)


class _LogFile(RotatingFileHandler):
    """A log of bounded size, which also leaves out what it cannot write: a full disk is told by what needs the disk."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def file_log(name: str, path: Path) -> logging.Logger:
    """A log that goes to a file, with the time of each line."""
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = _LogFile(path, maxBytes=MOST_LOG, backupCount=1, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter(LOG))
        log.addHandler(handler)
    return log
