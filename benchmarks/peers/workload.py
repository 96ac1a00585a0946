"""The work every peer does: its data, a NumPy reference, the clock and the way to report.

Only NumPy is imported, so that each peer's process loads no more than the peer itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

ITEMS, BUDGET = 50, 30.0  # the budget is .6 of the mean total weight
BATCH = 256  # instances in one evaluation of the loss
BATCHES = 16  # batches taken in turn: a processor learns the branches of sorting one batch, and then does it 2x faster
CLIENTS, FEATURES, HIDDEN = 20, 8, 64
SAMPLES, LOCAL_BATCH, LEARNING_RATE = 100, 32, 1e-3

Array = np.ndarray


@dataclass(frozen=True)
class Instances:
    """Knapsacks and what SPO+ needs of them, in single precision; there are several batches of `predicted` profits."""

    weights: Array
    profits: Array
    predicted: Array
    solutions: Array
    objectives: Array


@dataclass(frozen=True)
class Federation:
    """Every client's samples and weights; `solutions` and `objectives` belong to the true profits."""

    features: Array
    profits: Array
    solutions: Array
    objectives: Array
    weights: Array


def greedy(profits: Array, weights: Array, budget: float) -> Array:
    """Optimal fractional knapsack, item by item in double precision: slow, and sharing no code with what it checks.

    SPO+ asks for 2 p - c, which may be negative: such items stay out even when the budget has room.
    """
    chosen = np.zeros(len(profits))
    for item in np.argsort(-profits.astype(float) / weights.astype(float), kind="stable"):
        if profits[item] <= 0 or budget <= 0:
            break
        chosen[item] = min(1.0, budget / float(weights[item]))
        budget -= chosen[item] * float(weights[item])
    return chosen


def solve(profits: Array, weights: Array) -> tuple[Array, Array]:
    """Solutions and objectives of a batch (samples, items) that shares its weights."""
    chosen = np.stack([greedy(row, weights, BUDGET) for row in profits])
    return chosen.astype(np.float32), (chosen * profits).sum(-1).astype(np.float32)


def gradient_error(data: Instances, gradients: list[Array]) -> float:
    """Largest difference to the gradient of the summed SPO+ loss, which is 2 (w(2 p - c) - w(c)) when maximising."""
    best = [greedy(c, data.weights, BUDGET) for c in data.profits]
    error = 0.0
    for predicted, gradient in zip(data.predicted, gradients, strict=True):
        margins = 2 * predicted.astype(float) - data.profits
        expected = [2 * (greedy(m, data.weights, BUDGET) - w) for m, w in zip(margins, best, strict=True)]
        error = max(error, float(np.abs(gradient - expected).max()))
    return error


@cache
def instances() -> Instances:
    """A batch of knapsacks; predictions are independent of the truth, so some of 2 p - c are negative."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, ITEMS).astype(np.float32)
    profits, *predicted = rng.uniform(0.5, 1.5, (1 + BATCHES, BATCH, ITEMS)).astype(np.float32)
    return Instances(weights, profits, np.stack(predicted), *solve(profits, weights))


@cache
def federation(samples: int) -> Federation:
    """Every client has its own weights and `samples` samples of one relation between features and profits."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, (CLIENTS, ITEMS)).astype(np.float32)
    features = rng.normal(size=(CLIENTS, samples, FEATURES)).astype(np.float32)
    slopes = rng.normal(size=(FEATURES, ITEMS)) / FEATURES**0.5
    profits = (0.5 + np.logaddexp(0, features @ slopes)).astype(np.float32)
    solved = [solve(p, w) for p, w in zip(profits, weights, strict=True)]
    return Federation(features, profits, np.stack([s for s, _ in solved]), np.stack([z for _, z in solved]), weights)


def initial_parameters() -> list[Array]:
    """The 8-64-50 network's weights and biases (He initialisation), as right factors of row vectors."""
    rng = np.random.default_rng(1)
    sizes = ((FEATURES, HIDDEN), (HIDDEN, ITEMS))
    layers = [(rng.normal(size=(i, o)) * (2 / i) ** 0.5, np.zeros((1, o))) for i, o in sizes]
    return [p.astype(np.float32) for layer in layers for p in layer]


def epoch_order(client: int, turn: int) -> Array:
    """The client's order of samples in a round: drawn from both numbers, so that it does not matter who draws it."""
    return np.random.default_rng((client, turn)).permutation(SAMPLES)


def measure(run: Callable[[], object], seconds: float = 5.0) -> tuple[float, int]:
    """Median seconds of a call and the number of calls timed, after a fifth of the time spent to warm up."""

    def timed(limit: float) -> list[float]:
        spent: list[float] = []
        while sum(spent) < limit or len(spent) < 3:
            begin = time.perf_counter()
            run()
            spent.append(time.perf_counter() - begin)
        return spent

    timed(seconds / 5)
    spent = timed(seconds)
    return statistics.median(spent), len(spent)


def require(*packages: str) -> None:
    """End the process with code 3 and a line that says what to install when a package is missing."""
    specs = {name: importlib.util.find_spec(name) for name in packages}
    # a folder of that name in the working directory (Ray leaves one named ray) is found too, but has no origin
    missing = [name for name, spec in specs.items() if spec is None or spec.origin is None]
    if missing:
        print(f"missing {', '.join(missing)}: python -m benchmarks.peers installs it", file=sys.stderr)
        sys.exit(3)


@contextlib.contextmanager
def reporting() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that prints a result as JSON on standard output, and send all other output to standard error.

    Solvers and Ray write from C++ and from child processes, which only redirecting the descriptor itself can catch.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)

    def report(result: dict[str, Any]) -> None:
        os.write(kept, (json.dumps(result) + "\n").encode())

    try:
        yield report
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
