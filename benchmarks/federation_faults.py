"""Faults of processes, connections and disks in a real federation on this machine: nothing may hang, nothing may be lost.

    python -m benchmarks.federation_faults                       # 20 of each fault with three sites (half an hour)
    python -m benchmarks.federation_faults --times 2 --only kill # some of one fault
    python -m benchmarks.federation_faults --churn               # 20 sites, 50 rounds, a site killed every 20 s

For each fault: how long until the site concerned is accepted in a round again. In the end the record must be without gaps, with
one outcome of each site in each round, and the shared model must be that of one process with the same participants, bit for
bit. The log goes to studies/results/federation/. All addresses are of this machine, and every wait has an end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.tcp_proxy import Proxy
from tests.deploy.real import Real

from dffl.deploy.joining import site_description
from dffl.deploy.ledger import ACCEPTED, OUTCOMES
from dffl.deploy.replay import ReplayedRun
from dffl.deploy.run_state import FINISHED, RunState
from dffl.deploy.server_process import ask
from dffl.federation import Federation
from dffl.training.parts import ALL
from dffl.training.trainers import FedAvg

RESULTS = Path("studies") / "results" / "federation"
MOST = 90.0
"""Seconds within which a federation must be whole again after a fault."""
PATIENCE = {"round_seconds": 5, "dead_seconds": 8, "quorum": 0.3, "quorum_seconds": 120, "join_seconds": 120}
SMALL_DISK = "size=64m"
"""Enough for the record of a long run, and soon full."""
FULL = ("No space left on device", "File too large")


@dataclass
class Faulty:
    """A federation to which things happen."""

    real: Real
    proxy: Proxy
    disks: list[Path]

    def healthy(self) -> None:
        """Wait until all sites are accepted in one round."""
        before = len(self.real.records)

        def whole() -> bool:
            return any(set(record.outcomes.values()) == {ACCEPTED} for record in self.real.records[before:])

        self.real.until(whole, MOST)

    def restart(self, key: str) -> None:
        self.real.serve() if key == "coordinator" else self.real.join(key)

    # The faults. Each returns what was hit.

    def kill(self) -> str:
        name = random.choice(self.real.names)
        self.real.signalled(name, signal.SIGKILL)
        time.sleep(random.choice([0.0, 2.0, 9.0]))  # restarted at once, before it counts as dead, and after
        self.restart(name)
        return name

    def kill_coordinator(self) -> str:
        self.real.signalled("coordinator", signal.SIGKILL)
        time.sleep(random.choice([0.0, 3.0]))
        self.restart("coordinator")
        return "coordinator"

    def kill_all(self) -> str:
        for key in self.real.processes:
            self.real.signalled(key, signal.SIGKILL)
        for key in ("coordinator", *self.real.names):
            self.restart(key)
        return "everything"

    def pause(self) -> str:
        name = random.choice(self.real.names)
        self.real.signalled(name, signal.SIGSTOP)
        time.sleep(random.uniform(9.0, 14.0))
        self.real.signalled(name, signal.SIGCONT)
        return name

    def slow(self) -> str:
        """Longer than a round may take, shorter than what counts as dead."""
        name = random.choice(self.real.names)
        self.real.signalled(name, signal.SIGSTOP)
        time.sleep(6.0)
        self.real.signalled(name, signal.SIGCONT)
        return name

    def cut(self) -> str:
        if random.random() < 0.5:
            self.proxy.cut_one()
            return "a connection"
        self.proxy.cut_all(random.uniform(0.0, 5.0))
        return "all connections"

    def stand_still(self) -> str:
        """Nothing is passed on for a while, and nobody is told."""
        self.proxy.stand_still(random.choice([3.0, 12.0]))
        return "all connections"

    def full_disk(self) -> str:
        """At the coordinator or at a site: one line, an end with code 1, and it goes on when there is room."""
        key = random.choice(["coordinator", self.real.names[-1]])
        process, told = self.real.processes[key], len(self.real.said(key))
        if self.disks:
            filler = self.disks[key != "coordinator"] / "filler"
            _fill(filler)
        else:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (500, 500))
        self.real.until(lambda: process.poll() is not None, MOST)
        said = self.real.said(key)[told:].strip().splitlines()
        if process.returncode != 1 or not any(why in said[-1] for why in FULL) or "Traceback" in "".join(said):
            raise AssertionError(f"{key} ended with {process.returncode} and said {said}")
        if self.disks:
            filler.unlink()
        self.restart(key)
        return key


FAULTS: dict[str, Callable[[Faulty], str]] = {
    "kill": Faulty.kill,
    "kill coordinator": Faulty.kill_coordinator,
    "kill all": Faulty.kill_all,
    "pause": Faulty.pause,
    "slow": Faulty.slow,
    "cut": Faulty.cut,
    "stand still": Faulty.stand_still,
    "full disk": Faulty.full_disk,
}


def faults(kinds: list[str], times: int, log: Callable[[dict[str, Any]], None]) -> None:
    """Let each fault happen some times in one run, and compare its model."""
    proxy = Proxy(0)
    with (
        tempfile.TemporaryDirectory(prefix="dffl-faults-") as folder,
        Real(Path(folder) / "all", rounds=10**6, patience=PATIENCE, dialled=proxy.port) as real,
    ):
        proxy.target = real.port
        held = Faulty(real, proxy, _small_disks(real) if "full disk" in kinds else [])
        try:
            real.serve()
            real.join()
            real.train()
            held.healthy()
            for kind in kinds:
                for number in range(times):
                    _one(held, kind, number, log)
            ask(real.folder, "stop", what="server")
            real.until(lambda: real.processes["coordinator"].poll() is not None)
            log({"rounds": len(real.records), **_ledger(real), "difference": _shared_difference(real)})
        finally:
            proxy.close()
            for process in real.processes.values():
                process.kill()
                process.wait()
            for disk in held.disks:
                subprocess.run(["umount", str(disk)], check=False)
        log({"left_behind": real.left_behind()})


def _one(held: Faulty, kind: str, number: int, log: Callable[[dict[str, Any]], None]) -> None:
    before, begun = len(held.real.records), time.monotonic()
    hit = FAULTS[kind](held)
    held.healthy()
    found = held.real.records[before:]
    outcomes = {one: sum(one in record.outcomes.values() for record in found) for one in OUTCOMES if one != ACCEPTED}
    seconds = time.monotonic() - begun
    log({"fault": kind, "number": number, "hit": hit, "whole again after": round(seconds, 1), "rounds": len(found), **outcomes})


def _ledger(real: Real) -> dict[str, Any]:
    """The number of each outcome, of a record without gaps."""
    records = real.records
    if [record.round for record in records] != list(range(len(records))):
        raise AssertionError("the record has gaps")
    if any(list(record.outcomes) != real.names for record in records):
        raise AssertionError("a site has no outcome in a round")
    found = [outcome.partition(":")[0] for record in records for outcome in record.outcomes.values()]
    return {outcome: found.count(outcome) for outcome in OUTCOMES}


def _shared_difference(real: Real) -> float:
    """Of the shared model of a run that was stopped to that of one process with the same participants in each round."""
    latest = real.folder.latest()
    assert latest is not None
    state = RunState.read(latest / "state.dffl").state
    assert state is not None
    records = real.records[: state.round]
    settings = replace(real.plan.settings, rounds=state.round)
    clients = [site_description(real.plan, name, real.base / name / "site.toml").train[0] for name in real.names]
    with ReplayedRun(Federation(clients), settings, real.plan.method_request, records) as run:
        return float(np.abs(run.trained(FedAvg(), ALL) - state.shared).max())


def _small_disks(real: Real) -> list[Path]:
    """Small disks for the runs of the coordinator and for the state of the last site, if we may make them."""
    made = []
    for path in (real.folder.runs, real.base / real.names[-1] / "own" / "state"):
        path.mkdir(parents=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", SMALL_DISK, "tmpfs", str(path)], check=False, capture_output=True)
        if done.returncode != 0:
            for disk in made:
                subprocess.run(["umount", str(disk)], check=False)
            return []
        made.append(path)
    return made


def _fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            for size in (1 << 16, 1 << 10, 1):
                while True:
                    try:
                        file.write(bytes(size))
                    except OSError:
                        break
        finally:
            file.close()


def churn(sites: int, rounds: int, every: float, log: Callable[[dict[str, Any]], None]) -> None:
    """A site is killed again and again, and restarted, until the run is over."""
    names = [f"site-{number + 1}" for number in range(sites)]
    slow = {"hidden": 64, "local_epochs": 200}
    patience = PATIENCE | {"round_seconds": 300, "join_seconds": 600, "quorum_seconds": 300}
    with (
        tempfile.TemporaryDirectory(prefix="dffl-churn-") as folder,
        Real(Path(folder) / "all", "ditto", rounds, slow, patience, names=names) as real,
    ):
        begun = time.monotonic()
        real.serve()
        real.join()
        real.train()
        real.until(lambda: len(real.records) >= 1, 600)
        log({"sites": sites, "seconds to the first round": round(time.monotonic() - begun, 1)})
        number = 0
        while real.status() != FINISHED:
            running = [name for name in names if real.processes[name].poll() is None]
            if time.monotonic() - begun > 3600 or not running:
                break
            if len(real.records) < rounds:
                name = names[number % sites]
                real.signalled(name, signal.SIGKILL)
                log({"killed": name, "after rounds": len(real.records), "seconds": round(time.monotonic() - begun, 1)})
                real.join(name)
                number += 1
            _rest(real, every)
        for name in names:
            if real.processes[name].poll() not in (None, 0):
                real.join(name)
        codes = real.until_sites_end()
        real.stop()
        log({"rounds": len(real.records), "killed": number, "codes": codes, **_ledger(real), "difference": real.difference(),
             "left_behind": real.left_behind(), "seconds": round(time.monotonic() - begun, 1)})  # fmt: skip


def _rest(real: Real, seconds: float) -> None:
    """Wait for some seconds, or until the run is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and real.status() != FINISHED:
        time.sleep(0.1)


def main() -> None:
    """Write a line of JSON for each fault, to the screen and to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="how many of each fault, at most 100")
    parser.add_argument("--only", action="append", choices=list(FAULTS), help="only this fault; may be repeated")
    parser.add_argument("--churn", action="store_true", help="kill and restart sites in a large federation instead")
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where to write the log; by default a file in studies/results/federation")
    options = parser.parse_args()
    random.seed(options.seed)
    path = options.out or RESULTS / ("churn.jsonl" if options.churn else "faults.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:

        def log(line: dict[str, Any]) -> None:
            text = json.dumps(line)
            print(text, flush=True)
            file.write(text + "\n")
            file.flush()

        log({"cores": os.cpu_count(), "times": options.times, "seed": options.seed})
        if options.churn:
            churn(min(options.sites, 20), options.rounds, options.every, log)
        else:
            faults(options.only or list(FAULTS), min(options.times, 100), log)


if __name__ == "__main__":
    main()
