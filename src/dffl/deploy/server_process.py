"""The coordinator's process: listens, waits for a request for a run, runs it, and keeps serving."""

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
from dffl.deploy.federation_plan import read_plan
from dffl.deploy.locks import lock_owner, locked
from dffl.deploy.network import COORDINATOR, Link, log_failed_handshakes, require_free_port
from dffl.deploy.round import QuorumError
from dffl.deploy.run_state import FINISHED, STOPPED, TRAINING, WAITING, CoordinatorFolder, RunState, read_status, write_status
from dffl.deploy.site_registry import StopRequestedError
from dffl.deploy.trusted_keys import KeyRegistry
from dffl.files import write_text
from dffl.training.history import DivergenceError

FAILED = "failed"
MAX_LOG_BYTES = 32 * 2**20
"""Size limit of a log; one older file is kept. A site that sends invalid messages must not fill the disk."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


@contextmanager
def explaining_full_disk(folder: Path) -> Iterator[None]:
    """Name the path in an error of a full disk; complete files are kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        why = os.strerror(error.errno)
        raise OSError(
            f"{error.filename or folder}: {why}; free some space and type the command again; the state is kept"
        ) from None


class FederationServer:
    """The coordinator's process, which serves a folder."""

    def __init__(self, folder: CoordinatorFolder, log: logging.Logger):
        self.folder, self.log = folder, log
        self.plan = read_plan(folder.path / "plan.toml")
        if not (folder.secrets / "server.key").is_file():
            raise ValueError(f"{folder.path}: has no certificates; type dffl federation create {folder.path / 'plan.toml'}")
        require_server(folder.secrets, self.plan.hosts)
        self._keys = KeyRegistry(folder.keys, log)
        self._keys.require_readable()
        self._stop = ""

    def serve(self, shown: Any = print) -> None:
        """Serve until a command or a signal asks to stop."""
        lock = locked(self.folder.lock, "another coordinator already serves this folder")
        with explaining_full_disk(self.folder.path), lock, log_failed_handshakes(self.log):
            require_free_port(self.plan.listen)
            keep_compiled_programs()
            self._remove_old_orders()
            credentials, rejection_reason = server_credentials(self.folder.secrets), self._keys.rejection_reason
            link = Link(COORDINATOR, self.plan.listen, credentials, self.plan.max_message_bytes, self.log, rejection_reason)
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

    def _remove_old_orders(self) -> None:
        """Remove requests to an earlier coordinator; requests made after this one took its lock are kept."""
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
                    raise  # without a run there is nothing else to stop
            if (order := self.folder.control / "train").exists():
                self._run(coordinator, self._start_run(order))

    def _start_run(self, order: Path) -> Path:
        """The folder of the requested run; its name is written for the command that requested it."""
        asked = json.loads(order.read_text() or "{}")
        order.unlink()
        run = self._run_folder(bool(asked.get("new")))
        write_status(run, WAITING)
        write_text(self.folder.begun, json.dumps({"asked": asked.get("asked"), "run": run.name}))
        return run

    def _resume(self, coordinator: Coordinator) -> None:
        """Resume a run that a crash interrupted, or serve the models of a finished run."""
        latest = self.folder.latest()
        if latest is None:
            return
        status = read_status(latest)["status"]
        if status == WAITING and last_started(self.folder).get("run") == latest.name:  # requested just before a crash
            self._run(coordinator, latest)
        elif not (latest / "state.dffl").exists():
            return
        elif status == TRAINING and not self._can_resume(latest):
            why = "the plan was changed; restore it and train to resume this run, or train to start a new one"
            self.log.warning("run %s is stopped: %s", latest.name, why)
            write_status(latest, STOPPED, why=why)
        elif status == TRAINING:
            self.log.info("resuming run %s", latest.name)
            self._run(coordinator, latest)
        elif status == FINISHED and self._can_resume(latest):
            try:
                coordinator.serve_finished(latest)
            except ValueError as error:
                self.log.error("sites that join later get no model of run %s: %s", latest.name, error)

    def _can_resume(self, run: Path) -> bool:
        """Whether a run has the current plan, or no state; a damaged state is reported where it is used."""
        try:
            return RunState.read(run / "state.dffl").plan == self.plan.digest
        except ValueError:
            return True

    def _run_folder(self, fresh: bool) -> Path:
        """The last run, if it is not over and has this plan; else a new one."""
        latest = self.folder.latest()
        resumable = latest is not None and not fresh and read_status(latest)["status"] not in (FINISHED, FAILED)
        if latest is not None and resumable and self._can_resume(latest):
            return latest
        return self.folder.new_run()

    def _run(self, coordinator: Coordinator, folder: Path) -> None:
        try:
            coordinator.train(folder)
        except QuorumError:
            pass  # it is recorded; the server keeps serving
        except StopRequestedError as stopped:
            if stopped.server:
                raise
        except (ValueError, DivergenceError, RuntimeError) as error:
            self.log.error("the run failed: %s", error)
            write_status(folder, FAILED, why=str(error))
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


def last_started(folder: CoordinatorFolder) -> dict[str, Any]:
    """The run that the coordinator started last, and the request for it."""
    return dict(json.loads(folder.begun.read_text())) if folder.begun.exists() else {}


def ask(folder: CoordinatorFolder, order: str, **more: Any) -> None:
    """Write a request for the coordinator's process, which must be running."""
    if lock_owner(folder.lock) is None:
        raise ValueError(f"{folder.path}: no coordinator is running; type dffl federation serve {folder.path}")
    folder.control.mkdir(exist_ok=True, mode=0o700)
    write_text(folder.control / order, json.dumps(more))


def serving_log(folder: CoordinatorFolder) -> logging.Logger:
    """The coordinator's log, in its folder."""
    return file_log(f"dffl.coordinator.{folder.path}", folder.log)


class _LogFile(RotatingFileHandler):
    """A log of bounded size. It ignores its own write errors: a full disk is reported where the disk is needed."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def file_log(name: str, path: Path) -> logging.Logger:
    """A log in a file, with the time of each line."""
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = _LogFile(path, maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
        log.addHandler(handler)
    return log
