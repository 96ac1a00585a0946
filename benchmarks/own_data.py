"""How long tables of users take: reading them, training on them, and judging what was trained.

    python -m benchmarks.own_data                     # everything; some minutes on two quiet cores
    python -m benchmarks.own_data --only rows         # reading 5 million rows
    python -m benchmarks.own_data --only finetune     # 100 clients, trained by one method
    python -m benchmarks.own_data --only command      # the whole of `dffl fit`: also the methods beside, and the report

The tables are made up and written to a temporary folder first, which is not measured. Each line of work runs in a process of
its own. Processor seconds are those of all threads of that process: on a busy machine they say more than seconds on the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

CLIENTS, ROWS, FEATURES, DECISIONS = 100, 1_000, 20, 24
MANY_ROWS, COLUMNS, PART = 5_000_000, 10, 500_000
METHODS = ("finetune", "crossfit")
KINDS = ("csv", "parquet")
AIMS = {
    "finetune, training": ("seconds", 60.0), "crossfit, training": ("seconds", 150.0),
    "rows of csv, read": ("seconds", 10.0), "rows of parquet, read": ("seconds", 10.0),
}  # fmt: skip
MOST_MEMORY = 4.0
"""GB, for the rows."""

FEDERATION = """\
[federation]
features = "x_*"
costs = "price_*"

[training]
method = "{method}"
"""
CLIENT = """
[[client]]
name = "site {number}"
table = "site_{number}.csv"
set = {{ type = "top-k", k = {k} }}
"""
ONE_SITE = """\
[federation]
features = "x_*"
costs = "price_*"

[[client]]
name = "all"
table = "rows.{kind}"
set = {{ type = "top-k", k = 1 }}
"""


def write_clients(folder: Path) -> None:
    """A table for each client: prices follow the features by one rule that each client has a little otherwise."""
    shared = np.random.default_rng(0).normal(size=(FEATURES, DECISIONS))
    clients = ""
    for number in range(CLIENTS):
        rng = np.random.default_rng([1, number])
        x = rng.normal(size=(ROWS, FEATURES))
        effect = shared + 0.3 * rng.normal(size=shared.shape)
        c = 40 + 3 * x @ effect + 2 * (x @ effect > 3) * np.abs(x[:, :1]) + 3 * rng.normal(size=(ROWS, DECISIONS))
        table = {f"x_{place + 1}": x[:, place].round(4) for place in range(FEATURES)}
        table |= {f"price_{place + 1}": c[:, place].round(2) for place in range(DECISIONS)}
        pd.DataFrame(table).to_csv(folder / f"site_{number}.csv", index=False)
        clients += CLIENT.format(number=number, k=4 + number % 9)
    for method in METHODS:
        (folder / f"{method}.toml").write_text(FEDERATION.format(method=method) + clients)


def write_rows(folder: Path) -> None:
    """One table of many rows: six features and four costs, as CSV and as Parquet."""
    names = [f"x_{place + 1}" for place in range(COLUMNS - 4)] + [f"price_{place + 1}" for place in range(4)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    rng = np.random.default_rng(2)
    with pacsv.CSVWriter(folder / "rows.csv", schema) as csv, pq.ParquetWriter(folder / "rows.parquet", schema) as parquet:
        for _ in range(MANY_ROWS // PART):
            part = pa.table({name: rng.normal(50, 10, PART).round(3) for name in names})
            csv.write_table(part)
            parquet.write_table(part)
    for kind in KINDS:
        (folder / f"rows_{kind}.toml").write_text(ONE_SITE.format(kind=kind))


@contextmanager
def measured(found: dict[str, Any], what: str) -> Iterator[None]:
    """Note the seconds and processor seconds of a block, and the peak memory of the process after it."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found[what] = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - cpu, "memory": peak}


def clients_by(method: str, folder: Path) -> dict[str, Any]:
    """Read the tables of 100 clients, train one method, and judge it on the test rows."""
    import dffl
    from dffl.tables.description import read

    found: dict[str, Any] = {}
    with measured(found, f"{method}, reading"):
        description = read(folder / f"{method}.toml")
    with measured(found, f"{method}, training"):
        fit = dffl.fit(description.train, description.method, progress=False, **description.keywords)
    with measured(found, f"{method}, evaluation"):
        table = fit.evaluate(description.test)
    found[f"{method}, evaluation"]["regret"] = float(table["relative_regret"].mean())
    return found


def command_of(method: str, folder: Path) -> dict[str, Any]:
    """All that `dffl fit` does after reading: the method, what stands beside it, the judgement and the report."""
    from dffl.tables.description import read
    from dffl.tables.trained_model import train

    found: dict[str, Any] = {}
    description = read(folder / f"{method}.toml")
    with measured(found, f"{method}, the whole of `dffl fit`"):
        train(description, progress=False)
    return found


def rows_of(kind: str, folder: Path) -> dict[str, Any]:
    """Read many rows as a table."""
    from dffl.tables.sources import load, open_source

    found: dict[str, Any] = {}
    with measured(found, f"rows of {kind}, read"):
        source = open_source(folder / f"rows.{kind}")
        table = load(source, source.columns)
    assert len(table) == MANY_ROWS
    return found


def federation_of(kind: str, folder: Path) -> dict[str, Any]:
    """Many rows as a federation of one client: read, checked, divided and made arrays."""
    from dffl.tables.description import read

    found: dict[str, Any] = {}
    with measured(found, f"rows of {kind}, read, checked and divided"):
        read(folder / f"rows_{kind}.toml")
    return found


WORK: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "clients": clients_by, "command": command_of, "rows": rows_of, "federation": federation_of,
}  # fmt: skip


def child(work: str, of: str, folder: Path) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.own_data", "--measure", work, of, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def line(what: str, one: dict[str, Any], load: float) -> str:
    """A row of the table."""
    kind, most = AIMS.get(what, ("", 0.0))
    aim = "" if not kind else f"≤ {most:g} s" + (f", ≤ {MOST_MEMORY:g} GB" if what.startswith("rows") else "")
    reached = one["seconds"] <= most and (not what.startswith("rows") or one["memory"] <= MOST_MEMORY)
    verdict = "" if not kind else "reached" if reached else "missed"
    regret = f"; regret {100 * one['regret']:.2f} %" if "regret" in one else ""
    numbers = f"{one['seconds']:.1f} | {one['processor']:.1f} | {one['memory']:.2f} | {load:.1f}"
    return f"| {what}{regret} | {numbers} | {aim} | {verdict} |"


def main() -> None:
    """Make the tables, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*METHODS, "rows", "command"], nargs="+", help="some of the measurements")
    parser.add_argument("--measure", nargs=3, metavar=("WORK", "OF", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        work, of, folder = options.measure
        print(json.dumps(WORK[work](of, Path(folder))))
        return
    wanted = options.only or [*METHODS, "rows"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if set(wanted) & {*METHODS, "command"}:
            write_clients(folder)
        if "rows" in wanted:
            write_rows(folder)
        print(f"{os.cpu_count()} cores; load: the average over a minute, when the measurement ended\n")
        print("| measurement | seconds | processor seconds | peak memory, GB | load | aim | |\n|---|---|---|---|---|---|---|")
        asked = [("clients", method) for method in METHODS if method in wanted]
        asked += [("command", "crossfit")] if "command" in wanted else []
        asked += [(work, kind) for kind in KINDS for work in ("rows", "federation") if "rows" in wanted]
        for work, of in asked:
            for what, one in child(work, of, folder).items():
                print(line(what, one, os.getloadavg()[0]), flush=True)


if __name__ == "__main__":
    main()
