"""How long `dffl energy run` takes, and how much memory, on made-up markets.

    python -m benchmarks.energy                  # all of it; a quarter of an hour on two quiet cores
    python -m benchmarks.energy --only seeds     # 19 zones, a year, five seeds
    python -m benchmarks.energy --only large     # 1,000 zones, three years
    python -m benchmarks.energy --only periods   # days of 96 periods against days of 24

Each run is a command of its own. Processor seconds are those of all its processes: on a busy machine they say more than seconds
on the clock. Memory is the largest sum of its processes' own pages, looked at every two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ZONES, YEAR, MANY, YEARS, SEEDS = 19, 365, 1_000, 3, 5
LOOK = 2.0
AIMS = {"seeds": "seconds below 90 on two cores", "large": "memory below 4 GB", "periods": "at most 5 times 24"}


def market(folder: Path, zones: int, days: int, periods: int = 24) -> Path:
    """A made-up market; quarter hours follow their hour, with noise."""
    from dataclasses import replace

    from dffl_studies.energy.data import example_panel

    panel = example_panel(days=days, towns=[f"town-{number:04d}" for number in range(zones)])
    if periods > 24:
        prices = np.repeat(panel.prices, periods // 24, axis=1)
        noise = np.random.default_rng(0).normal(0, 2, prices.shape)
        panel = replace(panel, prices=(prices + noise).round(2), demands=panel.demands * (periods // 24))
    path = folder / f"{zones}-zones-{days}-days-{periods}.parquet"
    panel.write(path)
    return path


def run(panel: Path, *options: str) -> dict[str, float]:
    """One command: seconds on the clock, processor seconds, and GB."""
    out = panel.parent / f"out-{panel.stem}-{'-'.join(options)}"
    words = ["from dffl.cli import main; main()", "energy", "run", str(panel), "--out", str(out), "--json", "--quiet", *options]
    begun, before, most = time.perf_counter(), os.times(), 0
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen([sys.executable, "-c", *words], stdout=nowhere, start_new_session=True)
        while process.poll() is None:
            most = max(most, _pages(process.pid))
            time.sleep(LOOK)
    if process.returncode:
        raise SystemExit(f"the run of {panel.name} ended with {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": time.perf_counter() - begun, "cpu seconds": cpu, "GB": most / 1e9}


def _pages(session: int) -> int:
    """Bytes of pages that only the processes of a session have, and their share of others."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])
        except (OSError, StopIteration):
            continue  # it ended meanwhile
    return total


def seeds(folder: Path) -> dict[str, Any]:
    """19 zones, a year, five seeds."""
    return run(market(folder, ZONES, YEAR), "--seeds", str(SEEDS))


def large(folder: Path) -> dict[str, Any]:
    """1,000 zones, three years, one seed, with the model of all days."""
    return run(market(folder, MANY, YEARS * YEAR))


def periods(folder: Path) -> dict[str, Any]:
    """Processor seconds with 96 periods over those with 24."""
    found = {count: run(market(folder, ZONES, YEAR, count), "--no-model") for count in (24, 96)}
    ratio = found[96]["cpu seconds"] / found[24]["cpu seconds"]
    return {"times": ratio, "24": found[24], "96": found[96]}


CASES: dict[str, Callable[[Path], dict[str, Any]]] = {"seeds": seeds, "large": large, "periods": periods}


def main() -> None:
    """Run the cases, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    asked = parser.parse_args().only
    for name in [asked] if asked else CASES:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"case": name, "aim": AIMS[name], **CASES[name](Path(folder))}), flush=True)


if __name__ == "__main__":
    main()
