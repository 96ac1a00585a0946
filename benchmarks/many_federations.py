"""Many federations of different shapes in one process: does it end, with how many memory maps, and how large?

Every federation has its own numbers of features, decisions and hidden units, so that every one needs programs of its own. The
rows are written as they come. A run that was ended continues with the next federation, in another process, which the rows name.

    python -m benchmarks.many_federations --count 2000 --out studies/results/many-federations.csv
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import resource
import time
from pathlib import Path

import jax
import numpy as np

import dffl

FIELDS = ("federation", "process", "seconds", "maps", "freed", "megabytes", "digest")


def federation(number: int) -> dffl.Federation:
    """Two tiny clients; no two numbers below 8,000 have the same features, decisions and hidden units."""
    rng = np.random.default_rng(number)
    features, dim = 1 + number % 20, 2 + number // 20 % 20
    clients = []
    for name in ("a", "b"):
        x = rng.normal(size=(4, features))
        clients.append(dffl.Client(name, x, rng.normal(size=(4, dim)), dffl.Box(np.zeros(dim), np.ones(dim))))
    return dffl.Federation(clients)


def main() -> None:
    """Train and predict, one federation after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)  # every program is compiled here
    freed, forget = [], jax.clear_caches
    jax.clear_caches = lambda: (freed.append(1), forget())  # type: ignore[assignment]
    done = len(asked.out.read_text().splitlines()) - 1 if asked.out.exists() else 0
    with asked.out.open("a", newline="") as file:
        rows = csv.DictWriter(file, FIELDS)
        if done <= 0:
            rows.writeheader()
        for number in range(max(done, 0), asked.count):
            begun, fed = time.perf_counter(), federation(number)
            settings = {"rounds": 1, "local_epochs": 1, "hidden": 2 + number // 400, "loss": "mse", "progress": False}
            fit = dffl.fit(fed, "fedavg", **settings)
            bits = b"".join(fit.predict(one.name, one.x).tobytes() for one in fed)
            maps = Path("/proc/self/maps").read_bytes().count(b"\n")
            size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            found = (number, os.getpid(), round(time.perf_counter() - begun, 2), maps, len(freed), size)
            rows.writerow(dict(zip(FIELDS, (*found, hashlib.sha256(bits).hexdigest()[:12]), strict=True)))
            file.flush()


if __name__ == "__main__":
    main()
