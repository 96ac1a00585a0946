"""Real federations: processes on this machine, started by the commands that organisations type."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from dffl.deploy.federation_plan import read_plan
from dffl.deploy.ledger import RoundRecord, read_ledger
from dffl.deploy.local_demo import LocalFederation
from dffl.deploy.locks import lock_owner
from dffl.deploy.run_status import RunResult
from dffl.deploy.server_process import ask
from tests.deploy.made import toml_of

NAMES = ["site-1", "site-2", "site-3"]
SMALL = {"hidden": 4, "local_epochs": 1}
PATIENT = 120.0
"""Seconds until something that must happen has happened, on a machine that is busy."""


class Real(LocalFederation):
    """A federation whose processes are started, paused and killed one by one."""

    def __init__(
        self,
        base: Path,
        method: str = "fedavg",
        rounds: int = 4,
        training: Mapping[str, Any] | None = None,
        patience: Mapping[str, Any] | None = None,
        wire: Mapping[str, Any] | None = None,
        names: list[str] | None = None,
        dialled: int | None = None,
    ):
        """``dialled`` is the port that sites dial, if that is not where the coordinator listens."""
        base.mkdir(parents=True, exist_ok=True)
        super().__init__(base, names or NAMES, rounds, method, lambda line: None)
        path = self.folder.path / "plan.toml"
        lines = [path.read_text(), *(f"{key} = {toml_of(value)}" for key, value in (SMALL | dict(training or {})).items())]
        for section, values in (("rounds", patience), ("wire", wire)):
            lines += [f"[{section}]", *(f"{key} = {toml_of(value)}" for key, value in (values or {}).items())]
        text = "\n".join(lines) + "\n"
        if dialled is not None:
            text = text.replace(f"localhost:{self.port}", f"localhost:{dialled}")
        path.write_text(text)
        self.plan = read_plan(path)
        self._provision()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.send_signal(signal.SIGCONT)
            process.wait()

    # What is done.

    def serve(self) -> None:
        self._start("coordinator", "federation", "serve", str(self.folder.path))
        self.until(lambda: lock_owner(self.folder.lock) is not None and "serving" in self.said("coordinator"))

    def join(self, *names: str) -> None:
        for name in names or self.names:
            self._join(name)

    def train(self) -> None:
        ask(self.folder, "train")

    def stop(self) -> None:
        ask(self.folder, "stop", what="server")
        self.until(lambda: self.processes["coordinator"].poll() is not None)

    def signalled(self, key: str, number: signal.Signals) -> None:
        self.processes[key].send_signal(number)
        if number == signal.SIGKILL:
            self.processes[key].wait()
            self.ended.append(self.processes[key].pid)

    # What is seen.

    @property
    def records(self) -> list[RoundRecord]:
        latest = self.folder.latest()
        return [] if latest is None else read_ledger(latest / "rounds.jsonl")

    @property
    def log(self) -> str:
        return self.folder.log.read_text() if self.folder.log.exists() else ""

    def said(self, key: str) -> str:
        path = self.base / f"{key}.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def status(self) -> str:
        latest = self.folder.latest()
        return "" if latest is None else RunResult.of(latest, self.plan.sites).status

    def until(self, ready: Callable[[], bool], seconds: float = PATIENT) -> float:
        """Wait until something has happened; for how many seconds it took."""
        begun = time.monotonic()
        while not ready():
            if time.monotonic() - begun > seconds:
                told = {key: (process.poll(), self.said(key)[-600:]) for key, process in self.processes.items()}
                raise AssertionError(f"waited {seconds} s; {told}; log: {self.log[-2000:]}")
            time.sleep(0.02)
        return time.monotonic() - begun

    def until_rounds(self, count: int) -> None:
        self.until(lambda: len(self.records) >= count)

    def until_sites_end(self) -> list[int]:
        self.until(lambda: all(self.processes[name].poll() is not None for name in self.names))
        return [self.processes[name].returncode for name in self.names]

    def difference(self) -> float:
        """Of the sites' models to those of one process with the same participants."""
        latest = self.folder.latest()
        assert latest is not None
        return self._difference(RunResult.of(latest, self.plan.sites))

    def left_behind(self) -> list[str]:
        return self._left_behind()

    def command(self, *words: str, seconds: float = PATIENT) -> subprocess.CompletedProcess[str]:
        """A command, to its end."""
        whole, alone = [sys.executable, "-m", "dffl", *words], {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(whole, capture_output=True, text=True, timeout=seconds, env=alone, check=False)
