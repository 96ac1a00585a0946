"""dffl's integer models beside PyEPO's, in one run on one machine.

    pip install '.[peers]'
    python -m benchmarks.integer [--quick] [--only knapsack path battery oracles] [--seeds 5] [--out studies/results/integer]

Writes studies/results/integer/{runs,table,oracles}.csv and about.json, and prints the tables. --quick: two seeds, tiny sizes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.integer import tables, work
from benchmarks.integer.children import Children, load

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "results" / "integer"
PARTS = ("knapsack", "path", "battery", "oracles")
PROBES = 50
"""Cost vectors at which value and gradient of SPO+ are compared."""

# Who trains on knapsacks: the module with its task, the way or the solver, and the number of clients (0: all).
KNAPSACK: dict[str, tuple[tuple[str, ...], int]] = {
    "dffl ZeroOneKnapsack": (("ours", "knapsack", "dp"), 0),
    "PyEPO, OR-Tools SCIP": (("epo", "train", "knapsack", "scip"), 0),
    "dffl MixedInteger, relax=True": (("ours", "knapsack", "relax"), 0),
    "dffl MixedInteger": (("ours", "knapsack", "mip"), 0),
    "PyEPO, Pyomo + HiGHS": (("epo", "train", "knapsack", "highs"), 1),
}
PATH = {"dffl ShortestPath": ("ours", "path", "dp"), "PyEPO, OR-Tools GLOP": ("epo", "train", "path", "glop")}
BATTERY = {"dffl Battery": ("ours", "battery", "exact"), "dffl Battery, relax=True": ("ours", "battery", "relax")}
ORACLES: dict[str, float | None] = {
    "ShortestPath 5 x 5": 100_000,
    "ZeroOneKnapsack, 50 items": 20_000,
    "MixedInteger knapsack, 50 items": None,
    "MixedInteger knapsack, relaxed": None,
    "Battery 24 h, linear": 3_000,
    "Battery 24 h, exclusive": None,
    "Assignment 7 x 7": None,
    "ConsecutiveHours, 24 h, 2 runs of 3": None,
    "Polytope, 50 columns, 20 rows": None,
    "Solver in this process": None,
    "Solver, pool of 1": None,
    "Solver, pool of 2": None,
    "dffl.sets.pyepo, path by OR-Tools, pool of 1": None,
    "dffl.sets.pyepo, path by OR-Tools, pool of 2": None,
}
PEERS = {"path": ("glop", "highs"), "knapsack": ("scip", "highs")}


def small(case: work.Case) -> work.Case:
    """A case for --quick."""
    return replace(case, clients=min(case.clients, 2), samples=40, test=20, epochs=2, batch=20)


def described(case: work.Case) -> list[str]:
    """The case, as the processes take it."""
    return ["--case", json.dumps(asdict(case))]


def with_probe(kind: str, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The data with the costs at which SPO+ is compared, in units of size 1, and the judge's best decisions at them."""
    true = (data["c_test"][0][:PROBES] / np.abs(data["c"][0]).mean()).astype(np.float32)
    return data | {"probe_c": true, "probe_guess": work.guesses(true), "probe_w": work.decided(kind, data, 0, true)}


def compared(what: str, children: Children, data: dict[str, np.ndarray], case: work.Case, seed: int) -> list[dict[str, Any]]:
    """All competitors on one set of data, one after the other, and the naive choice: rows with their regret."""
    kind = "path" if what.startswith("path") else what
    full = data if kind == "battery" else with_probe(kind, data)
    work.written(children.folder / "data.npz", full)
    people = {name: (command, 0) for name, command in (PATH if kind == "path" else BATTERY).items()}
    rows: list[dict[str, Any]] = []
    probes: dict[str, dict[str, np.ndarray]] = {}
    for name, (command, count) in (KNAPSACK if kind == "knapsack" else people).items():
        extra = [*described(case), "--seed", str(seed), *(["--clients", str(count)] if count else [])]
        before = load()
        found = children.run(*command, "data.npz", "out.npz", *extra)
        if found is None:
            continue
        out = work.read(children.folder / "out.npz")
        clients = found.get("clients", case.clients)
        lost = found["regret"] if kind == "battery" else work.regret(kind, full, out["predicted"])
        about = {"what": what, "name": name, "seed": seed, "clients": clients, "seconds": found["seconds"]}
        about |= {"again": found.get("again"), "all": found["seconds"] * case.clients / clients, "calls": found["calls"]}
        about |= {"processor": found["processor"] * case.clients / clients, "processor_again": found.get("processor_again")}
        about |= {"load": before, "regret": float(np.mean(lost)), "first": lost[0], "who": found["who"]}
        rows.append(about | {"each client's": " ".join(f"{one:.5f}" for one in lost)})
        probes |= {name: out} if "value" in out else {}
        children.note(f"{what}, seed {seed}: {name}: {found['seconds']:.1f} s, regret {100 * np.mean(lost):.2f} %")
        for warning in found.get("warnings", []):
            children.note(f"  warned: {warning}")
        naive = found.get("mean_cost")
    if kind != "battery":
        mean = np.broadcast_to(full["c"].mean(axis=1, keepdims=True), full["c_test"].shape)
        naive = work.regret(kind, full, mean)
    if rows and naive is not None:
        first = {"what": what, "name": "mean cost", "seed": seed, "clients": case.clients, "who": "the naive choice"}
        rows.append(first | {"regret": float(np.mean(naive)), "first": naive[0]})
    return rows + differences(what, seed, full, probes)


def differences(
    what: str, seed: int, data: dict[str, np.ndarray], probes: dict[str, dict[str, np.ndarray]]
) -> list[dict[str, Any]]:
    """The largest difference of dffl's value and gradient of SPO+ to PyEPO's, relative where numbers are larger than 1.

    Both compute in float32. How far each value is from the judge's, in float64, says whose rounding it is.
    """
    rows, pairs = [], [(a, b) for a in probes for b in probes if a.startswith("dffl") and b.startswith("PyEPO")]
    exact = exact_values(what, data) if pairs else np.zeros(0)
    for mine, theirs in pairs:
        row: dict[str, Any] = {"what": f"{what}: SPO+", "name": f"{mine} and {theirs}", "seed": seed}
        row |= {part: largest(probes[mine][part], probes[theirs][part]) for part in ("value", "gradient")}
        row |= {"dffl to float64": largest(probes[mine]["value"], exact)}
        rows.append(row | {"PyEPO to float64": largest(probes[theirs]["value"], exact)})
    return rows


def largest(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative where b is larger than 1."""
    return float((np.abs(a - b) / np.maximum(1, np.abs(b))).max())


def exact_values(what: str, data: dict[str, np.ndarray]) -> np.ndarray:
    """SPO+ by the judge's decisions, in float64."""
    asked = 2 * data["probe_guess"].astype(float) - data["probe_c"].astype(float)
    reply = work.decided("path" if what.startswith("path") else what, data, 0, asked)
    return np.abs((asked * (reply - data["probe_w"])).sum(axis=1))  # never negative: the sense does not matter


def paths(children: Children, name: str, case: work.Case, seed: int) -> list[dict[str, Any]]:
    """PyEPO's own generator."""
    rows = str(case.samples + case.test)
    generate = ("epo", "generate", "path", "glop", "none", "rows.npz", "--seed", str(seed), "--rows", rows)
    if children.run(*generate) is None:
        return []
    made = work.read(children.folder / "rows.npz")
    return compared(name, children, work.path(case, seed, made["x"], made["c"]), case, seed)


def oracles(children: Children, seconds: float) -> list[dict[str, Any]]:
    """Calls a second of ours, then of PyEPO's models."""
    rows = []

    def add(name: str, aim: float | None, *command: str) -> None:
        before = load()
        found = children.run(*command, "--seconds", str(seconds))
        if found is not None:
            rate = found["calls_per_second"]
            row = {"name": name, "calls a second": rate, "calls a processor second": found.get("calls_per_processor_second")}
            rows.append(row | {"aim": aim, "load": before, "repeats": found["repeats"]})
            children.note(f"{name}: {rate:,.0f} calls a second")

    for name, aim in ORACLES.items():
        add(name, aim, "oracles", name)
    data = work.knapsack(work.KNAPSACK, 0)
    rng = np.random.default_rng(0)
    for kind, solvers in PEERS.items():
        dim = len(work.arcs()) if kind == "path" else work.ITEMS
        costs = rng.uniform(0.5, 1.5, (500, dim)) + (0.6 * rng.normal(size=(500, dim)) if kind == "knapsack" else 0)
        work.written(children.folder / "calls.npz", {"costs": costs, "weights": data["weights"], "capacity": data["capacity"]})
        for solver in solvers:
            label = "Pyomo + HiGHS" if solver == "highs" else f"OR-Tools {solver.upper()}"
            add(f"PyEPO {kind}, {label}", None, "epo", "call", kind, solver, "calls.npz", "none")
    return rows


def main() -> None:
    """Measure, judge, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds and tiny sizes: to see that it works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    size = small if options.quick else lambda case: case
    # The learning rates were chosen with dffl on the seeds 0 and 1.
    seeds = range(10, 10 + (min(options.seeds, 2) if options.quick else options.seeds))
    rows: list[dict[str, Any]] = []
    begin = load()
    with tempfile.TemporaryDirectory() as folder:
        children = Children(Path(folder))
        # Speed first; it is what a busy machine spoils most.
        calls = oracles(children, 0.2 if options.quick else 5.0) if "oracles" in options.only else []
        for seed in seeds:
            if "knapsack" in options.only:
                case = size(work.KNAPSACK)
                rows += compared("knapsack", children, work.knapsack(case, seed), case, seed)
            if "battery" in options.only:
                case = size(work.BATTERY)
                rows += compared("battery", children, work.battery(case, seed), case, seed)
            for name, whole in work.PATHS.items() if "path" in options.only else ():
                rows += paths(children, name, size(whole), seed)
    about = tables.machine() | {"quick": options.quick, "seeds": len(seeds), "load at begin": begin, "load at end": load()}
    about |= {"cases": {"knapsack": asdict(size(work.KNAPSACK)), "battery": asdict(size(work.BATTERY))}}
    about["cases"] |= {name: asdict(size(case)) for name, case in work.PATHS.items()}
    about |= {"who": sorted({row["who"] for row in rows if "who" in row}), "failed": children.failed}
    tables.show(rows, calls, about)
    tables.write(options.out, rows, calls, about, "" if set(options.only) == set(PARTS) else f"-{'-'.join(options.only)}")


if __name__ == "__main__":
    main()
