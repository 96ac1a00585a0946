"""`dffl federation demo`: a whole federation on this machine, run with the commands that organisations type.

Every site is a separate process with its own folder, and certificates are created and signed as between organisations. At the
end, the sites' models are compared with `dffl.fit` on the same data, with the same participants in each round.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import dffl
from dffl.checks import require_whole
from dffl.deploy.certificate_request import request
from dffl.deploy.federation_plan import FederationPlan, read_plan
from dffl.deploy.joining import site_description
from dffl.deploy.ledger import DEAD
from dffl.deploy.locks import lock_owner
from dffl.deploy.provisioning import create, sign_request
from dffl.deploy.replay import replayed
from dffl.deploy.run_state import FINISHED, CoordinatorFolder
from dffl.deploy.run_status import RunResult
from dffl.deploy.server_process import ask
from dffl.federation import Federation
from dffl.files import write_text, write_whole
from dffl.synthetic import knapsack

START_SECONDS = 120.0
END_SECONDS = 3600.0
ROWS = 200


@dataclass(frozen=True)
class FederationDemoResult:
    """The result of a demo, and how far the sites' models are from those of one process."""

    result: RunResult
    start_seconds: float
    """From the start of the processes to the first round."""
    max_difference: float
    """The largest difference of a prediction, in the units of the costs."""
    left_behind: list[str]
    figure: Path | None
    killed: str = ""

    @property
    def overhead(self) -> float:
        """The median over the rounds of the time in addition to the sites' computing."""
        later = self.result.records[1:] or self.result.records  # the first round also compiles
        return float(np.median([record.seconds - record.training_seconds for record in later]))

    @property
    def failed(self) -> bool:
        """Whether a check of the demo failed."""
        return self.result.status != FINISHED or self.max_difference != 0.0 or bool(self.left_behind)

    @property
    def _restart_text(self) -> str:
        """Whether the round waited for the killed site, as a text."""
        missed = sum(record.outcomes.get(self.killed.partition(" ")[0]) == DEAD for record in self.result.records)
        return (
            f"counted as dead in {missed} rounds"
            if missed
            else "it returned before it counted as dead: the round waited for it"
        )

    def show(self, console: Console) -> None:
        self.result.show(console)
        table = Table(title="Checks", title_justify="left", show_header=False)
        table.add_row("from start to first round", f"{self.start_seconds:.1f} s")
        table.add_row("median overhead of a round", f"{1000 * self.overhead:.0f} ms in addition to the sites' computing")
        if self.killed:
            table.add_row("killed and restarted", f"{self.killed}; {self._restart_text}")
        exact = "none: equal to the last bit" if self.max_difference == 0.0 else f"{self.max_difference:.3g}"
        table.add_row("difference to dffl.fit with the same participants", exact)
        table.add_row("processes and ports left behind", ", ".join(self.left_behind) or "none")
        console.print(table)
        if self.figure is not None:
            console.print(f"Figure: {self.figure}", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        rounds = [
            {
                "round": number + 1,
                "seconds": record.seconds,
                "bytes": record.sent + record.received,
                "outcomes": record.outcomes,
            }
            for number, record in enumerate(self.result.records)
        ]
        return {
            "sites": list(self.result.sites), "rounds": rounds, "overhead_seconds": self.overhead,
            "start_seconds": self.start_seconds, "max_difference": self.max_difference, "left_behind": self.left_behind,
        }  # fmt: skip


def run(
    sites: int, rounds: int, method: str, kill: str | None, figure: Path | None, shown: Callable[[str], None]
) -> FederationDemoResult:
    """Run the whole federation, and check the result."""
    require_whole("sites", sites, least=2, most=20)
    names = [f"site-{number + 1}" for number in range(sites)]
    kill_at = _parse_kill(kill, names, rounds)
    with tempfile.TemporaryDirectory(prefix="dffl-federation-") as folder:
        return LocalFederation(Path(folder), names, rounds, method, shown).run(kill_at, figure)


def _parse_kill(kill: str | None, names: Sequence[str], rounds: int) -> tuple[str, int] | None:
    if kill is None:
        return None
    name, at, number = kill.rpartition("@")
    if not at or name not in names or not number.isdigit() or not 1 <= int(number) <= rounds:
        raise ValueError(
            f"--kill must be SITE@ROUND with a site of {names[0]} to {names[-1]} and a round from 1 to {rounds}, found {kill!r}"
        )
    return name, int(number)


class LocalFederation:
    """A federation of processes on this machine."""

    def __init__(self, base: Path, names: list[str], rounds: int, method: str, shown: Callable[[str], None]):
        self.base, self.names, self.shown = base, names, shown
        self.port = self.free_port()
        self.folder = CoordinatorFolder(base / "coordinator")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: list[int] = []
        write_demo_files(base, names, rounds, method, self.port, self.listen_host)
        self.plan: FederationPlan = read_plan(self.folder.path / "plan.toml")

    listen_host = "127.0.0.1"
    """Where the coordinator listens; sites connect to localhost."""

    def free_port(self) -> int:
        """A port that is not in use."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    def command_prefix(self, key: str) -> list[str]:
        """Words before the command of a process; a subclass may start each process in its own network."""
        return []

    def run(self, kill_at: tuple[str, int] | None, figure: Path | None) -> FederationDemoResult:
        try:
            self._provision()
            started = time.monotonic()
            self._start("coordinator", "federation", "serve", str(self.folder.path))
            self._wait(lambda: lock_owner(self.folder.lock) is not None, "the coordinator to serve")
            for name in self.names:
                self._join(name)
            ask(self.folder, "train")
            first = self._wait_for_rounds(1) - started
            if kill_at is not None:
                self._kill_and_restart(*kill_at)
            for name in self.names:
                self._wait_for_end(name)
            ask(self.folder, "stop", what="server")
            self._wait(lambda: self.processes["coordinator"].poll() is not None, "the coordinator to end")
            run_folder = self.folder.latest()
            assert run_folder is not None
            result = RunResult.of(run_folder, self.plan.sites)
            self.shown("comparing with dffl.fit on the same data, with the same participants")
            difference = self._difference(result)
            left = self._left_behind()
            if figure is not None:
                from dffl.deploy.run_figure import draw

                draw(result, figure)
            killed = "" if kill_at is None else f"{kill_at[0]} in round {kill_at[1]}"
            return FederationDemoResult(result, first, difference, left, figure, killed)
        finally:
            for process in self.processes.values():
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def _provision(self) -> None:
        self.shown(f"{len(self.names)} sites: keys, requests, certificates")
        create(self.folder.path / "plan.toml")
        for name in self.names:
            site_folder = self.base / name / "own"
            request(name, site_folder)
            sign_request(self.folder.path, site_folder / f"{name}.request", replace=False)

    def _join(self, name: str) -> None:
        home = self.base / name
        kit = self.folder.kits / f"{name}.kit"
        self._start(
            name, "site", "join", str(kit), "--client", str(home / "site.toml"), "--folder", str(home / "own"), "--quiet"
        )

    def _kill_and_restart(self, name: str, number: int) -> None:
        self._wait_for_rounds(number - 1)
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.shown(f"killed {name} in round {number}; it restarts")
        self.ended.append(process.pid)
        self._join(name)

    def _wait_for_rounds(self, count: int) -> float:
        def reached() -> bool:
            run_folder = self.folder.latest()
            return run_folder is not None and len(RunResult.of(run_folder, self.plan.sites).records) >= count

        self._wait(reached, f"round {count}", END_SECONDS, poll=0.02)
        return time.monotonic()

    def _wait_for_end(self, name: str) -> None:
        self._wait(lambda: self.processes[name].poll() is not None, f"{name} to end", END_SECONDS)

    def _difference(self, result: RunResult) -> float:
        sites = [site_description(self.plan, name, self.base / name / "site.toml") for name in self.plan.sites]
        federation = Federation([site.train[0] for site in sites])
        fit = replayed(federation, self.plan.settings, self.plan.one_method, result.records)
        differences = []
        for site in sites:
            client = site.test[0]
            deployed = dffl.load(self.base / client.name / "own" / "model.dffl")
            apart = np.abs(deployed.predict(client.name, client.x) - fit.predict(client.name, client.x))
            differences.append(float(apart.max()))
        return max(differences)

    def _left_behind(self) -> list[str]:
        pids = [process.pid for process in self.processes.values()] + self.ended
        left = [f"process {pid}" for pid in pids if _is_running(pid)]
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                left.append(f"port {self.port}")
        return left

    def _start(self, key: str, *words: str) -> None:
        output = (self.base / f"{key}.txt").open("ab")
        command = [*self.command_prefix(key), sys.executable, "-m", "dffl", *words]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # more threads than cores would slow all processes down
        self.processes[key] = subprocess.Popen(command, stdout=output, stderr=output, env=one_thread)
        output.close()

    def _wait(self, ready: Callable[[], bool], what: str, seconds: float = START_SECONDS, poll: float = 0.1) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            for key, process in self.processes.items():
                if process.poll() not in (None, 0):
                    output = (self.base / f"{key}.txt").read_text(errors="replace").strip().splitlines()
                    raise OSError(f"the process of {key} ended with {process.returncode}: {output[-1] if output else ''}")
            if time.monotonic() > deadline:
                raise OSError(f"waited {seconds:.0f} s for {what}")
            time.sleep(poll)


def write_demo_files(base: Path, names: Sequence[str], rounds: int, method: str, port: int, listens: str = "127.0.0.1") -> None:
    """Write the sites' tables and files, and the coordinator's plan."""
    federation = knapsack(seed=0, split="train", clients=len(names), samples=ROWS)
    for name, client in zip(names, federation, strict=True):
        home = base / name
        home.mkdir(parents=True)
        features = {f"feature_{k + 1}": client.x[:, k] for k in range(client.x.shape[1])}
        profits = {f"profit_{k + 1}": client.c[:, k] for k in range(client.c.shape[1])}
        _write_table(home / "history.csv", pd.DataFrame({**features, **profits}))
        spec: Any = client.set.spec()
        _write_table(home / "items.csv", pd.DataFrame({"weight": np.asarray(spec["weights"])}))
        budget = float(np.asarray(spec["budget"]))
        write_text(
            home / "site.toml",
            f'[client]\ntable = "history.csv"\nset = {{ type = "fractional-knapsack", '
            f'weights = {{ file = "items.csv", column = "weight" }}, budget = {budget!r} }}\n',
        )
    folder = base / "coordinator"
    folder.mkdir()
    write_text(
        folder / "plan.toml",
        f"""[federation]
name = "demo"
address = "localhost:{port}"
listen = "{listens}:{port}"
sites = {json.dumps(list(names))}
features = "feature_*"
costs = "profit_*"
sense = "max"
inputs = {federation.features}
dimension = {federation.dim}

[training]
method = "{method}"
rounds = {rounds}
""",
    )


def _write_table(path: Path, table: pd.DataFrame) -> None:
    write_whole(path, lambda where: table.to_csv(where, index=False, float_format="%.17g"))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
