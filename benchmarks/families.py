"""One row for each family of feasible sets: what it can do, and how many cost vectors it answers in a second.

    python -m benchmarks.families

Every batch has new costs, so that no kept answer is counted. PyEPO's row is left out where PyEPO is not installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

import dffl

BATCH = 1024
LEAST_SECONDS = 2.0
MOST_BATCHES = 200
N = 6


def assign(c: np.ndarray) -> np.ndarray:
    """The cheapest assignment of N jobs, as a user would write it."""
    w = np.zeros((N, N))
    w[linear_sum_assignment(c.reshape(N, N))] = 1.0
    return w.ravel()


def starts(hours: int = 24, on: int = 8) -> dict[str, np.ndarray]:
    """A machine that is on for some hours; the helper of each hour is at least 1 if the machine starts in it."""
    eye = np.eye(hours)
    begin = eye - np.eye(hours, k=-1)  # on_t - on_(t-1) <= start_t
    return {
        "A_ub": np.hstack([begin, -eye]),
        "b_ub": np.zeros(hours),
        "A_eq": np.concatenate([np.ones(hours), np.zeros(hours)])[None],
        "b_eq": np.array([float(on)]),
        "lower": np.zeros(2 * hours),
        "upper": np.ones(2 * hours),
    }


def model_text(hours: int = 24, on: int = 8) -> str:
    """The same machine as an LP file."""
    names = range(hours)
    lines = ["minimize", " cost: " + " + ".join(f"0.5 start_{t}" for t in names), "subject to"]
    lines += [" hours: " + " + ".join(f"on_{t}" for t in names) + f" = {on}", " begin_0: on_0 - start_0 <= 0"]
    lines += [f" begin_{t}: on_{t} - on_{t - 1} - start_{t} <= 0" for t in names[1:]]
    lines += ["bounds", *[f" start_{t} <= 1" for t in names], "binaries", *[f" on_{t}" for t in names], "end", ""]
    return "\n".join(lines)


def families() -> dict[str, Callable[[], dffl.FeasibleSet]]:
    """How the sets of the table are made."""
    rng = np.random.default_rng(0)
    d = 50
    weights = rng.integers(1, 20, d).astype(float)
    several = rng.uniform(0.1, 1.0, (5, d))
    root = rng.normal(size=(d, d))
    found: dict[str, Callable[[], dffl.FeasibleSet]] = {
        "`FractionalKnapsack`": lambda: dffl.FractionalKnapsack(weights, weights.sum() / 3),
        "`TopK`": lambda: dffl.TopK(d, 12),
        "`EntropySimplex`": lambda: dffl.EntropySimplex(d, np.log(d) / 2),
        "`Simplex`": lambda: dffl.Simplex(d, 1.0),
        "`Box`": lambda: dffl.Box(np.zeros(d), np.ones(d)),
        "`Ball`": lambda: dffl.Ball(np.zeros(d), 1.0),
        "`Ellipsoid`": lambda: dffl.Ellipsoid(np.zeros(d), root @ root.T + np.eye(d)),
        "`Polytope`": lambda: dffl.Polytope(A_ub=several, b_ub=several.sum(1) / 3, lower=np.zeros(d), upper=np.ones(d)),
        "`Polytope` with helpers": lambda: dffl.Polytope(**starts(), helpers=24, known_cost=np.full(24, 0.5)),
        "`ZeroOneKnapsack`": lambda: dffl.ZeroOneKnapsack(weights, weights.sum() // 3),
        "`ShortestPath`": lambda: dffl.ShortestPath(5, 5),
        "`ConsecutiveHours`": lambda: dffl.ConsecutiveHours(24, 4, runs=2),
        "`Assignment`": lambda: dffl.Assignment(N),
        "`Battery`": lambda: dffl.Battery(24, capacity=4.0, charge=1.0, wear=0.05),
        "`MixedInteger`": lambda: dffl.MixedInteger(**starts(), integer=range(24), helpers=24, known_cost=np.full(24, 0.5)),
        "`ModelFile`": lambda: dffl.ModelFile(text=model_text(), format="lp", predicted="on_*"),
        "`Solver`": lambda: dffl.Solver(assign, N * N),
    }
    if find_spec("pyepo") is not None:
        found["`sets.pyepo`"] = _pyepo
    return found


def _pyepo() -> dffl.FeasibleSet:
    from pyepo.model.omo import knapsackModel

    weights = np.random.default_rng(0).integers(1, 20, (1, 24)).astype(float)
    return dffl.sets.pyepo(knapsackModel, weights=weights, capacity=weights.sum(1) // 3, solver="appsi_highs")


def calls_a_second(s: dffl.FeasibleSet) -> float:
    """Cost vectors that are answered in a second, in batches of new costs."""
    rng = np.random.default_rng(1)
    most = 2 if s.on_host and not isinstance(s, dffl.Polytope | dffl.Assignment) else MOST_BATCHES
    batches = [jax.device_put(rng.normal(size=(BATCH, s.dim)).astype(np.float32)) for _ in range(min(most, 20))]
    jax.block_until_ready(s.solve(0.5 * batches[0]))  # compiled
    done, begin = 0, time.perf_counter()
    while done < most and time.perf_counter() - begin < LEAST_SECONDS:
        # Times another number each time: no answer that was kept is found again.
        jax.block_until_ready(s.solve(batches[done % len(batches)] * (1.0 + done)))
        done += 1
    return done * BATCH / (time.perf_counter() - begin)


def exact(s: dffl.FeasibleSet) -> str:
    """Whether answers are the best, up to rounding."""
    if isinstance(s, dffl.Solver):
        return "as its function"
    return "within `nodes`" if "nodes" in s.spec() and not s.convex else "yes"


def row(name: str, s: dffl.FeasibleSet) -> str:
    """A row of the table."""
    where = "host" if s.on_host else "compiled"
    helpers = 0 if s.variables is None else len(s.variables) - s.dim
    speed = calls_a_second(s)
    shown = f"{float(f'{speed:.2g}'):,.0f}"
    cells = (name, f"{s.dim} + {helpers}" if helpers else str(s.dim), "yes" if s.convex else "no", exact(s), where)
    answers = ("yes" if s.projects else "no", "yes" if s.relaxed is not s else "no", shown)
    return f"| {' | '.join((*cells, *answers))} |"


def main() -> None:
    """Print the table, and how busy the machine was."""
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start")
    print("\n| family | d | convex | exact | oracle | projection | relaxation | calls/s |\n|---|---|---|---|---|---|---|---|")
    for name, make in families().items():
        print(row(name, make()), flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
