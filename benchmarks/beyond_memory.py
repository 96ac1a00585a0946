"""A federation larger than memory: the data, then rounds and an evaluation, each in a process whose peak memory is its own.

python -m benchmarks.beyond_memory [--clients 100000] [--samples 200] [--rounds 20] [--fraction 0.001] [--folder FOLDER]
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
from typing import Any

P, D, FILE = 8, 50, 100
"""Features, costs, and the clients of a file."""
FEATURES, COSTS = [f"x{k}" for k in range(P)], [f"c{k}" for k in range(D)]


def made(folder: Path, clients: int, samples: int) -> dict[str, Any]:
    """Files of `FILE` clients each, with ten clients to a row group; numbers in float32. Files differ by their own scale."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, started = np.random.default_rng(0), time.perf_counter()
    x = rng.standard_normal((FILE * samples, P), np.float32)
    c = 40 + 5 * x @ rng.standard_normal((P, D), np.float32) + rng.standard_normal((len(x), D), np.float32)
    base = np.ascontiguousarray(np.hstack([x, c]).T)
    for number in range(-(-clients // FILE)):
        path, some = folder / f"part-{number:05d}.parquet", range(number * FILE, min((number + 1) * FILE, clients))
        if path.exists():
            continue
        scale = np.float32(1 + number % 97 / 97)
        names = pa.array(np.repeat([f"client-{k:06d}" for k in some], samples)).dictionary_encode()
        columns = [names, *(pa.array(scale * column[: len(names)]) for column in base)]
        table = pa.table(columns, names=["client", *FEATURES, *COSTS])
        how = {"compression": "none", "use_dictionary": ["client"], "row_group_size": 10 * samples}
        pq.write_table(table, folder / "part.writing", write_statistics=False, **how)
        os.replace(folder / "part.writing", path)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    return {"seconds_to_make": time.perf_counter() - started, "gigabytes_on_disk": size / 1e9}


def opened(folder: Path) -> tuple[Any, float]:
    """The federation, and the seconds that opening took."""
    import numpy as np

    import dffl

    started = time.perf_counter()
    s = dffl.FractionalKnapsack(np.linspace(0.5, 1.5, D), 0.3 * D)
    federation = dffl.ParquetFederation(folder, features=FEATURES, costs=COSTS, set=s, client="client", maximize=True)
    return federation, time.perf_counter() - started


def trained(folder: Path, rounds: int, fraction: float) -> dict[str, Any]:
    """Rounds of fedavg: the seconds of each after the first, which compiles, and the peak memory."""
    import statistics

    import numpy as np

    from dffl.training import FedAvg, Run, Settings
    from dffl_studies.bench.measure import peak_gb

    federation, seconds = opened(folder)
    run = Run(federation, Settings(rounds=rounds, local_epochs=1, client_fraction=fraction))
    moments, processor = [], []
    keep = run.save
    run.save = lambda *a: (moments.append(time.perf_counter()), processor.append(time.process_time()), keep(*a))[0]  # type: ignore
    run.trained(FedAvg())
    each = statistics.median(np.diff(moments)) if rounds > 1 else float("nan")
    cpu = statistics.median(np.diff(processor)) if rounds > 1 else float("nan")
    return {
        "clients": len(federation),
        "rows": int(sum(federation.counts)),
        "clients_a_round": max(int(fraction * len(federation) + 1e-9), 1),
        "seconds_to_open": seconds,
        "seconds_a_round": each,
        "processor_seconds_a_round": cpu,
        "peak_gb": peak_gb(),
    }


def evaluated(folder: Path, rounds: int, fraction: float) -> dict[str, Any]:
    """A short fit, and the evaluation of all clients, a few at a time."""
    import dffl
    from dffl_studies.bench.measure import peak_gb

    federation, _ = opened(folder)
    fit = dffl.fit(federation, "fedavg", rounds=rounds, local_epochs=1, client_fraction=fraction, progress=False)
    started, processor = time.perf_counter(), time.process_time()
    rows = fit.evaluate(federation)
    return {
        "clients": len(rows),
        "mean_relative_regret": float(rows["relative_regret"].mean()),
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - processor,
        "peak_gb": peak_gb(),
    }


def main() -> None:
    """Make the data where they are missing, then measure; each step is a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--fraction", type=float, default=0.001)
    parser.add_argument("--folder", type=Path, help="where the data are kept; by default they are deleted afterwards")
    parser.add_argument("--step", choices=("make", "train", "evaluate"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        steps = {
            "make": lambda: made(options.folder, options.clients, options.samples),
            "train": lambda: trained(options.folder, options.rounds, options.fraction),
            "evaluate": lambda: evaluated(options.folder, options.rounds, options.fraction),
        }
        print(json.dumps(steps[options.step]()))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for step in ("make", "train", "evaluate"):
            same = [f"--{name}={getattr(options, name)}" for name in ("clients", "samples", "rounds", "fraction")]
            command = [sys.executable, "-m", "benchmarks.beyond_memory", "--step", step, "--folder", str(folder), *same]
            print(step, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
