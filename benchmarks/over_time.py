"""How long a backtest of 19 zones and 365 days takes with refits every 28 days, and how long a loaded model takes to decide.

    python -m benchmarks.over_time FOLDER   # the folder that `dffl energy` reads; prices alone are used; minutes

Each run is a process of its own: without compiled programs, and again with those of the first. Processor seconds are those of
the whole process, with imports; on a busy machine they say more than seconds on the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def backtested(folder: Path, model: Path) -> dict[str, float]:
    """A backtest with the default candidates, on the clock; then its model is saved."""
    import dffl
    from dffl.time.choosing import made_of
    from dffl_studies.time.markets import zones

    federation = zones(folder, weather=False)
    begun = time.perf_counter()
    outcome = dffl.backtest(federation, refit=28, progress=False)
    seconds = time.perf_counter() - begun
    made_of(outcome, federation, refit=28).save(model)
    return {"backtest": seconds}


def decided(folder: Path, model: Path) -> dict[str, float]:
    """The first decisions of a process: one row of the first zone, twice."""
    import dffl

    begun = time.perf_counter()
    chosen = dffl.load(model)
    found = {"load": time.perf_counter() - begun}
    name, member = next(iter(chosen.members.items()))
    for what in ("first decide", "second decide"):
        begun, spent = time.perf_counter(), time.process_time()
        chosen.decide(name, member.x[-1:])
        found |= {what: time.perf_counter() - begun, f"its processor ({what})": time.process_time() - spent}
    return found


def in_a_process(task: str, folder: Path, scratch: Path) -> dict[str, float]:
    """One task in a new process, with the processor seconds of that process."""
    before, begun = os.times(), time.perf_counter()
    words = [sys.executable, "-m", "benchmarks.over_time", str(folder), "--task", task, "--scratch", str(scratch)]
    printed = subprocess.run(
        words, env={**os.environ, "DFFL_CACHE_DIR": str(scratch / "programs")}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {**json.loads(printed.splitlines()[-1]), "process": time.perf_counter() - begun, "processor": spent}


def main() -> None:
    """Both tasks twice, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", choices=["backtest", "decide"], help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.task:
        task = backtested if chosen.task == "backtest" else decided
        print(json.dumps(task(chosen.folder, chosen.scratch / "model.dffl")))
        return
    with tempfile.TemporaryDirectory() as name:
        for what, task in (("no programs", "backtest"), ("programs", "backtest"), ("new", "decide"), ("again", "decide")):
            found = in_a_process(task, chosen.folder, Path(name))
            load = os.getloadavg()[0]
            numbers = ", ".join(f"{key} {value:.2f} s" for key, value in found.items())
            print(f"{task}, {what}: {numbers}; load {load:.1f}", flush=True)


if __name__ == "__main__":
    main()
