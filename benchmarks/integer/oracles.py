"""Calls a second of one of dffl's oracles: ``python -m benchmarks.integer.oracles NAME`` prints one JSON line.

Each call is a batch of costs that was never asked before, since sets with integer conditions keep their answers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from benchmarks.integer import work

import dffl


def cheapest(costs: np.ndarray) -> np.ndarray:
    """A solver that takes no time: what is measured is how it is asked."""
    chosen = np.zeros_like(costs)
    chosen[np.argmin(costs)] = 1.0
    return chosen


def battery(exclusive: bool) -> dffl.FeasibleSet:
    """A battery of four hours with wear."""
    return dffl.Battery(work.HOURS, 4.0, 1.0, efficiency=0.85, wear=3.0, exclusive=exclusive)


def packed(kind: Callable[..., dffl.FeasibleSet]) -> Callable[[], dffl.FeasibleSet]:
    """The first knapsack of the training, as this kind of set."""
    data = work.knapsack(work.KNAPSACK, 0)
    return lambda: kind(data["weights"][0], int(data["capacity"][0]))


def mixed(weights: np.ndarray, capacity: int, **options: Any) -> dffl.FeasibleSet:
    """A knapsack for HiGHS."""
    return dffl.MixedInteger(A_ub=weights[None], b_ub=[capacity], lower=np.zeros(50), upper=np.ones(50), **options)


def polytope() -> dffl.FeasibleSet:
    """The polytope of `dffl bench`: 20 rows, 50 decisions."""
    rows = np.random.default_rng(0).uniform(0, 1, (20, 50))
    return dffl.Polytope(A_ub=rows, b_ub=0.3 * rows.sum(axis=1), lower=np.zeros(50), upper=np.ones(50))


def pyepo(processes: int) -> dffl.FeasibleSet:
    """PyEPO's own shortest path, by OR-Tools, in dffl's solver processes."""
    from benchmarks.integer.epo import model_class

    return dffl.sets.pyepo(model_class("path", "glop"), grid=work.GRID, solver="glop", processes=processes)


# name: the set, the costs, how many rows a call has
ORACLES: dict[str, tuple[Callable[[], dffl.FeasibleSet], str, int]] = {
    "ShortestPath 5 x 5": (lambda: dffl.ShortestPath(*work.GRID), "positive", 1024),
    "ZeroOneKnapsack, 50 items": (packed(dffl.ZeroOneKnapsack), "profits", 1024),
    "MixedInteger knapsack, 50 items": (packed(mixed), "profits", 64),
    "MixedInteger knapsack, relaxed": (packed(lambda *a: mixed(*a, relaxed=True)), "profits", 256),
    "Battery 24 h, linear": (lambda: battery(False), "prices", 256),
    "Battery 24 h, exclusive": (lambda: battery(True), "prices", 256),
    "Assignment 7 x 7": (lambda: dffl.Assignment(7), "normal", 256),
    "ConsecutiveHours, 24 h, 2 runs of 3": (lambda: dffl.ConsecutiveHours(24, 3, 2), "normal", 1024),
    "Polytope, 50 columns, 20 rows": (polytope, "profits", 256),
    "Solver in this process": (lambda: dffl.Solver(cheapest, 50), "normal", 256),
    "Solver, pool of 1": (lambda: dffl.Solver(cheapest, 50, processes=1), "normal", 256),
    "Solver, pool of 2": (lambda: dffl.Solver(cheapest, 50, processes=2), "normal", 256),
    "dffl.sets.pyepo, path by OR-Tools, pool of 1": (lambda: pyepo(1), "positive", 256),
    "dffl.sets.pyepo, path by OR-Tools, pool of 2": (lambda: pyepo(2), "positive", 256),
}


def prices() -> np.ndarray:
    """Days of the battery's market: the predictions of training are like them."""
    return np.concatenate(list(work.battery(work.BATTERY, 0)["c"]))


def drawn(kind: str, rng: np.random.Generator, rows: int, dim: int, days: np.ndarray) -> np.ndarray:
    """New costs, in float32."""
    if kind == "prices":
        found = days[rng.integers(len(days), size=rows)] + 5 * rng.normal(size=(rows, dim))
    elif kind == "profits":  # 2 c_hat - c, as SPO+ asks
        found = -(rng.uniform(0.5, 1.5, (rows, dim)) + 0.6 * rng.normal(size=(rows, dim)))
    else:
        found = rng.uniform(0.5, 1.5, (rows, dim)) if kind == "positive" else rng.normal(size=(rows, dim))
    return found.astype(np.float32)


def run(name: str, seconds: float) -> dict[str, Any]:
    """The median time of a batch, over about so many seconds, after a fifth of them to warm up."""
    make, kind, rows = ORACLES[name]
    s = make()
    days, rng, solve = prices(), np.random.default_rng(0), jax.jit(s.solve)

    def timed(limit: float) -> list[tuple[float, float]]:
        spent: list[tuple[float, float]] = []
        while sum(wall for wall, _ in spent) < limit or len(spent) < 3:
            costs = drawn(kind, rng, rows, s.dim, days)
            begin, used = time.perf_counter(), time.process_time()
            jax.block_until_ready(solve(costs))
            spent.append((time.perf_counter() - begin, time.process_time() - used))
        return spent

    timed(seconds / 5)
    spent = timed(seconds)
    wall, processor = (statistics.median(part) for part in zip(*spent, strict=True))
    found: dict[str, Any] = {"who": name, "calls_per_second": rows / wall, "repeats": len(spent), "rows": rows}
    # What solver processes use is not counted in this one.
    return found | ({} if "pool" in name else {"calls_per_processor_second": rows / processor})


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ORACLES)
    parser.add_argument("--seconds", type=float, default=5.0)
    print(json.dumps(run(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
