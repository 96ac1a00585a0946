"""`dffl federation demo`: a whole federation on this machine, by the commands that organisations type.

Every site is a process of its own, with a folder that only it reads; certificates are made and signed as between strangers. In
the end the sites' models are compared with `dffl.fit` on the same data, in which each round has the same participants.
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
from dffl.data.synthetic import knapsack
from dffl.deploy.create import create, sign_request
from dffl.deploy.following import RunResult
from dffl.deploy.joining import site_description
from dffl.deploy.ledger import DEAD
from dffl.deploy.locks import is_held
from dffl.deploy.plan import Plan, read_plan
from dffl.deploy.replay import replayed
from dffl.deploy.requesting import request
from dffl.deploy.server import ask
from dffl.deploy.state import FINISHED, Folder
from dffl.federation import Federation
from dffl.files import write_text, write_whole

START_SECONDS = 120.0
END_SECONDS = 3600.0
ROWS = 200


@dataclass(frozen=True)
class Demo:
    """What happened, and how far the sites' models are from those of one process."""

    result: RunResult
    start_seconds: float
    """From the start of the processes to the first round."""
    max_difference: float
    """The largest difference of a prediction, in units of the costs."""
    left_behind: list[str]
    figure: Path | None
    killed: str = ""

    @property
    def overhead(self) -> float:
        """The median over the rounds of the time beyond the sites' own computing."""
        later = self.result.records[1:] or self.result.records  # the first round also compiles
        return float(np.median([record.seconds - record.training_seconds for record in later]))

    @property
    def failed(self) -> bool:
        """Something that was promised does not hold."""
        return self.result.status != FINISHED or self.max_difference != 0.0 or bool(self.left_behind)

    @property
    def _back(self) -> str:
        """Whether the others waited for the site that was killed."""
        missed = sum(record.outcomes.get(self.killed.partition(" ")[0]) == DEAD for record in self.result.records)
        return f"counted as dead in {missed} rounds" if missed else "back before it counted as dead: the round waited for it"

    def show(self, console: Console) -> None:
        self.result.show(console)
        table = Table(title="What was promised", title_justify="left", show_header=False)
        table.add_row("from start to first round", f"{self.start_seconds:.1f} s")
        table.add_row("median overhead of a round", f"{1000 * self.overhead:.0f} ms beyond the sites' own computing")
        if self.killed:
            table.add_row("killed and started again", f"{self.killed}; {self._back}")
        exact = "none: equal to the last bit" if self.max_difference == 0.0 else f"{self.max_difference:.3g}"
        table.add_row("difference to dffl.fit with the same participants", exact)
        table.add_row("processes and ports left behind", ", ".join(self.left_behind) or "none")
        console.print(table)
        if self.figure is not None:
            console.print(f"Picture: {self.figure}", soft_wrap=True)

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


def run(sites: int, rounds: int, method: str, kill: str | None, figure: Path | None, shown: Callable[[str], None]) -> Demo:
    """Run the whole federation, and look whether it kept its promises."""
    require_whole("sites", sites, least=2, most=20)
    names = [f"site-{number + 1}" for number in range(sites)]
    victim = _victim(kill, names, rounds)
    with tempfile.TemporaryDirectory(prefix="dffl-federation-") as folder:
        return Stage(Path(folder), names, rounds, method, shown).play(victim, figure)


def _victim(kill: str | None, names: Sequence[str], rounds: int) -> tuple[str, int] | None:
    if kill is None:
        return None
    name, at, number = kill.rpartition("@")
    if not at or name not in names or not number.isdigit() or not 1 <= int(number) <= rounds:
        raise ValueError(
            f"--kill must be SITE@ROUND with a site of {names[0]} to {names[-1]} and a round from 1 to {rounds}, found {kill!r}"
        )
    return name, int(number)


class Stage:
    """The processes of a demo."""

    def __init__(self, base: Path, names: list[str], rounds: int, method: str, shown: Callable[[str], None]):
        self.base, self.names, self.shown = base, names, shown
        self.port = self.free_port()
        self.folder = Folder(base / "coordinator")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: list[int] = []
        write_demo(base, names, rounds, method, self.port, self.listens)
        self.plan: Plan = read_plan(self.folder.path / "plan.toml")

    listens = "127.0.0.1"
    """Where the coordinator listens; sites dial localhost."""

    def free_port(self) -> int:
        """A port that nobody uses."""
        with socket.socket() as tried:
            tried.bind(("127.0.0.1", 0))
            return int(tried.getsockname()[1])

    def words_before(self, key: str) -> list[str]:
        """What stands before the command of a process, for a stage that has a machine for each."""
        return []

    def play(self, victim: tuple[str, int] | None, figure: Path | None) -> Demo:
        try:
            self._provision()
            begun = time.monotonic()
            self._start("coordinator", "federation", "serve", str(self.folder.path))
            self._wait(lambda: is_held(self.folder.lock) is not None, "the coordinator to serve")
            for name in self.names:
                self._join(name)
            ask(self.folder, "train")
            first = self._wait_for_rounds(1) - begun
            if victim is not None:
                self._kill_and_restart(*victim)
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
                from dffl.deploy.figure import draw

                draw(result, figure)
            killed = "" if victim is None else f"{victim[0]} in round {victim[1]}"
            return Demo(result, first, difference, left, figure, killed)
        finally:
            for process in self.processes.values():
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def _provision(self) -> None:
        self.shown(f"{len(self.names)} sites: keys, requests, certificates")
        create(self.folder.path / "plan.toml")
        for name in self.names:
            own = self.base / name / "own"
            request(name, own)
            sign_request(self.folder.path, own / f"{name}.request", replace=False)

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
        self.shown(f"killed {name} in round {number}; it starts again")
        self.ended.append(process.pid)
        self._join(name)

    def _wait_for_rounds(self, count: int) -> float:
        def held() -> bool:
            run_folder = self.folder.latest()
            return run_folder is not None and len(RunResult.of(run_folder, self.plan.sites).records) >= count

        self._wait(held, f"round {count}", END_SECONDS, look=0.02)
        return time.monotonic()

    def _wait_for_end(self, name: str) -> None:
        self._wait(lambda: self.processes[name].poll() is not None, f"{name} to end", END_SECONDS)

    def _difference(self, result: RunResult) -> float:
        described = [site_description(self.plan, name, self.base / name / "site.toml") for name in self.plan.sites]
        federation = Federation([one.train[0] for one in described])
        fit = replayed(federation, self.plan.settings, self.plan.asked, result.records)
        apart = []
        for one in described:
            client = one.test[0]
            own = dffl.load(self.base / client.name / "own" / "model.dffl")
            apart.append(float(np.abs(own.predict(client.name, client.x) - fit.predict(client.name, client.x)).max()))
        return max(apart)

    def _left_behind(self) -> list[str]:
        pids = [process.pid for process in self.processes.values()] + self.ended
        found = [f"process {pid}" for pid in pids if _lives(pid)]
        with socket.socket() as tried:
            tried.settimeout(1)
            if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                found.append(f"port {self.port}")
        return found

    def _start(self, key: str, *words: str) -> None:
        output = (self.base / f"{key}.txt").open("ab")
        command = [*self.words_before(key), *_dffl(*words)]
        self.processes[key] = subprocess.Popen(command, stdout=output, stderr=output, env=_one_core_each())
        output.close()

    def _wait(self, ready: Callable[[], bool], what: str, seconds: float = START_SECONDS, look: float = 0.1) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            for key, process in self.processes.items():
                if process.poll() not in (None, 0):
                    said_ = (self.base / f"{key}.txt").read_text(errors="replace").strip().splitlines()
                    raise OSError(f"the process of {key} ended with {process.returncode}: {said_[-1] if said_ else ''}")
            if time.monotonic() > deadline:
                raise OSError(f"waited {seconds:.0f} s for {what}")
            time.sleep(look)


def write_demo(base: Path, names: Sequence[str], rounds: int, method: str, port: int, listens: str = "127.0.0.1") -> None:
    """Write the sites' own tables and files, and the coordinator's plan."""
    made = knapsack(seed=0, split="train", clients=len(names), samples=ROWS)
    for name, client in zip(names, made, strict=True):
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
inputs = {made.features}
dimension = {made.dim}

[training]
method = "{method}"
rounds = {rounds}
""",
    )


def _write_table(path: Path, table: pd.DataFrame) -> None:
    write_whole(path, lambda where: table.to_csv(where, index=False, float_format="%.17g"))


def _dffl(*words: str) -> list[str]:
    return [sys.executable, "-m", "dffl", *words]


def _one_core_each() -> dict[str, str]:
    """Many processes on one machine: more threads than cores would only get into each other's way."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
