"""Our own measurements, each in its own process: ``python -m dffl_studies.bench.measure NAME`` prints one JSON line."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

D, P, BATCH = 50, 8, 256


def typical_seconds(work: Callable[[], Any], seconds: float, calls: int = 1) -> float:
    """The median time of one call, over repeats that last about ``seconds`` in all, after a warm-up."""
    import jax

    jax.block_until_ready(work())
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < stop and len(times) < 1000):
        started = time.perf_counter()
        for _ in range(calls):
            result = work()
        jax.block_until_ready(result)
        times.append((time.perf_counter() - started) / calls)
    return statistics.median(times)


def spo(family: str, seconds: float) -> dict[str, Any]:
    """SPO+ values and gradients per second, with w*(c) kept, float32, batch 256, d = 50."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import dffl

    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, (20, D))
    root = rng.normal(size=(D, D)) / np.sqrt(D)
    sets: dict[str, Callable[[], dffl.FeasibleSet]] = {
        "knapsack": lambda: dffl.FractionalKnapsack(rng.uniform(0.5, 1.5, D), 0.6 * D),
        "topk": lambda: dffl.TopK(D, 10),
        "entropy": lambda: dffl.EntropySimplex(D, np.log(D) / 2),
        "simplex": lambda: dffl.Simplex(D),
        "box": lambda: dffl.Box(-np.ones(D), np.ones(D)),
        "ball": lambda: dffl.Ball(np.zeros(D), 1.0),
        "ellipsoid": lambda: dffl.Ellipsoid(np.zeros(D), root @ root.T + np.eye(D)),
        "polytope": lambda: dffl.Polytope(A_ub=rows, b_ub=0.3 * rows.sum(axis=1), lower=np.zeros(D), upper=np.ones(D)),
    }
    s = sets[family]()
    maximize = family not in ("ball", "ellipsoid", "box")
    c = jnp.asarray(rng.uniform(0.5, 1.5, (BATCH, D)), jnp.float32)
    batches = [jnp.asarray(c + 0.3 * rng.normal(size=(BATCH, D)), jnp.float32) for _ in range(16)]
    w_star = s.solve(-c if maximize else c)
    loss = jax.jit(jax.value_and_grad(lambda p: dffl.spo_plus(p, c, s, maximize, w_star).sum()))
    turn = iter(range(10**9))
    taken = typical_seconds(lambda: loss(batches[next(turn) % 16]), seconds, calls=1 if family == "polytope" else 16)
    return {"value": BATCH / taken}


def step(problem: str, seconds: float) -> dict[str, Any]:
    """Milliseconds for one training step of 20 clients x 32 samples, network 8-64-50."""
    import jax

    from dffl.randomness import Purpose
    from dffl.training import Settings
    from dffl.training.engines.vector import VectorEngine

    epochs = 5
    engine = VectorEngine(_federation(problem, clients=20, samples=320), Settings(batch_size=32, local_epochs=epochs))
    engine._cores = 1  # one program
    (site,) = engine.sites()
    batches = site._minibatches(0, epochs, Purpose.SHUFFLE)
    site._minibatches = lambda *_: batches  # type: ignore[method-assign]  # the device's time alone
    start = site.train(engine.initial, epochs)
    taken = typical_seconds(lambda: jax.block_until_ready(site.train(start, epochs)._updated.vector), seconds)
    return {"value": 1e3 * taken / (epochs * 10)}


def rounds(clients: int, seconds: float, samples: int = 100, batch: int = 32, dim: int = D) -> dict[str, Any]:
    """Federated rounds per second, everything included: shuffling, training, averaging, diagnostics."""
    from dffl.training import FedAvg, Run, Settings

    federation = _federation("knapsack", clients, samples, dim)
    count = max(2, 200_000 // (clients * samples))

    def train(number: int) -> float:
        run = Run(federation, Settings(rounds=number, local_epochs=1, batch_size=batch))
        run.engine()
        started = time.perf_counter()
        run.trained(FedAvg())
        return time.perf_counter() - started

    train(2)
    stop, times = time.perf_counter() + seconds, [train(count)]
    while len(times) < 3 or time.perf_counter() < stop:
        times.append(train(count))
    return {"value": count / statistics.median(times), "peak_gb": peak_gb()}


AXES: dict[str, Callable[[int], dict[str, int]]] = {
    "clients": lambda size: {"clients": size},
    "samples": lambda size: {"clients": 20, "samples": size},
    "decisions": lambda size: {"clients": 20, "dim": size},
}


def growth(axis: str, seconds: float, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Time of a round for each client, sample or decision, at every size over that at the first; the last is the value."""
    each = [1 / (rounds(seconds=seconds, **AXES[axis](size))["value"] * size) for size in sizes]
    return {"value": each[-1] / each[0], "curve": {str(n): one / each[0] for n, one in zip(sizes, each, strict=True)}}


def cores(seconds: float, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Federated rounds of 200 clients on some cores over those on the first number, each in a process of its own."""
    import subprocess

    rates = []
    for size in sizes:
        command = [
            sys.executable,
            "-m",
            "dffl_studies.bench.measure",
            "rounds",
            "200",
            f"--seconds={seconds}",
            f"--cores={size}",
        ]
        rates.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["value"])
    return {"value": rates[-1] / rates[0], "curve": {str(n): one / rates[0] for n, one in zip(sizes, rates, strict=True)}}


def memory(clients: int) -> dict[str, Any]:
    """Peak memory of training this number of clients with 100 samples each, data included."""
    from dffl.training import FedAvg, Run, Settings

    run = Run(_federation("knapsack", clients, 100), Settings(rounds=2, local_epochs=1))
    run.trained(FedAvg())
    return {"value": peak_gb()}


def market(zones: int, past: bool) -> dict[str, Any]:
    """Peak memory of training a market of this number of zones and three years with every method of the energy study."""
    from dffl.comparing import fit_all
    from dffl_studies.energy.data import Sampling, federation
    from dffl_studies.energy.data.example import example_panel

    panel = example_panel(days=3 * 365, towns=[f"town-{number:04d}" for number in range(zones)])
    train = federation(panel, Sampling(weight=0.05 if past else None))
    quick: dict[str, Any] = {"rounds": 1, "local_epochs": 1, "finetune.epochs": (1,), "finetune-mix.epochs": (1,)}
    fit_all(train, ("local", "fedavg", "interp-spo", "finetune", "finetune-mix"), progress=False, **quick)
    return {"value": peak_gb()}


def bounding(problem: str, search: bool) -> dict[str, Any]:
    """Seconds for the bounds of a 20-client federation in a fresh process: all pairs, or with the searches for lower bounds."""
    from dffl.theory.report import bounds

    federation = _federation(problem, 20, 100)
    started = time.perf_counter()
    bounds(federation, search=search, progress=False)
    first = time.perf_counter() - started
    started = time.perf_counter()
    bounds(federation, search=search, progress=False)
    # Geometry and programs are kept in a process: the second time is that of other costs on the same sets.
    return {"value": first, "again": time.perf_counter() - started}


def importing(code: str) -> dict[str, Any]:
    """Seconds to run a line of Python in a fresh process, the best of five."""
    import subprocess

    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return {"value": min(times)}


def peak_gb() -> float:
    """The most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def _federation(problem: str, clients: int, samples: int, dim: int = D) -> Any:
    from dffl import synthetic

    make = synthetic.knapsack if problem == "knapsack" else synthetic.portfolio
    return make(seed=0, clients=clients, dim=dim, features=P, samples=samples)


def main() -> None:
    """Run one measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("argument", nargs="*")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cores", type=int, default=0, help="0: all of them")
    options = parser.parse_args()
    if options.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    name, argument, seconds = options.name, options.argument, options.seconds
    measurements: dict[str, Callable[[], dict[str, Any]]] = {
        "spo": lambda: spo(argument[0], seconds),
        "step": lambda: step(argument[0], seconds),
        "rounds": lambda: rounds(int(argument[0]), seconds),
        "growth": lambda: growth(argument[0], seconds, tuple(int(n) for n in argument[1:])),
        "cores": lambda: cores(seconds, tuple(int(n) for n in argument)),
        "memory": lambda: memory(int(argument[0])),
        "market": lambda: market(int(argument[0]), argument[1] == "past"),
        "bounding": lambda: bounding(argument[0], argument[1] == "search"),
        "importing": lambda: importing(argument[0]),
    }
    print(json.dumps(measurements[name]()))


if __name__ == "__main__":
    main()
