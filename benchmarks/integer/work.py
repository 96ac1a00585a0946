"""What all competitors share: the data, the settings, the start of the network, and the judge. Only NumPy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

Array = np.ndarray
ITEMS, FEATURES, GRID, HOURS = 50, 8, (5, 5), 24
CLIP, TAU = 1.0, 20.0
"""The largest norm of a gradient and of a prediction in scaled units: dffl's defaults, which PyEPO's training gets too."""


@dataclass(frozen=True)
class Case:
    """How large the work is, and how everybody trains: Adam, SPO+, one network for each client."""

    clients: int
    samples: int
    test: int
    epochs: int
    batch: int
    rate: float
    hidden: tuple[int, ...]


KNAPSACK = Case(clients=10, samples=100, test=200, epochs=20, batch=20, rate=0.005, hidden=(64,))
BATTERY = Case(clients=10, samples=100, test=200, epochs=20, batch=20, rate=0.005, hidden=(64,))
# The linear model of PyEPO's papers, on its own generator.
PATHS = {
    "path, 100 samples": Case(clients=1, samples=100, test=1000, epochs=50, batch=25, rate=0.01, hidden=()),
    "path, 1000 samples": Case(clients=1, samples=1000, test=1000, epochs=20, batch=25, rate=0.01, hidden=()),
}


def start(rng: np.random.Generator, inputs: int, outputs: int, hidden: tuple[int, ...]) -> dict[str, Array]:
    """Weights and biases to start from, as right factors of row vectors: Glorot-uniform, biases of zero."""
    found = {}
    for layer, (rows, columns) in enumerate(pairwise((inputs, *hidden, outputs))):
        reach = (6 / (rows + columns)) ** 0.5
        found[f"layer{layer}"] = rng.uniform(-reach, reach, (rows, columns)).astype(np.float32)
        found[f"bias{layer}"] = np.zeros(columns, np.float32)
    return found


def layers(data: dict[str, Array]) -> list[tuple[Array, Array]]:
    """The start of the network, layer by layer."""
    return [(data[f"layer{k}"], data[f"bias{k}"]) for k in range(sum(name.startswith("layer") for name in data))]


def written(path: Path, arrays: dict[str, Array]) -> None:
    """Write the arrays to one file."""
    np.savez(path, **arrays)  # type: ignore[arg-type]


def read(path: Path) -> dict[str, Array]:
    """The arrays of one file."""
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


# Data. Arrays have the clients first: x (clients, n, p), c (clients, n, d).


def knapsack(case: Case, seed: int) -> dict[str, Array]:
    """Profits [1 + (1 + B_j x / sqrt p)^4] x Uniform(.5, 1.5), with a B_j of each client's own; whole weights from 5 to 15."""
    rng = np.random.default_rng([1, seed])
    weights = rng.integers(5, 16, (case.clients, ITEMS))
    shared = rng.random((FEATURES, ITEMS)) < 0.5
    own = rng.random((case.clients, FEATURES, ITEMS)) < 0.5
    loading = np.where(rng.random(own.shape) < 0.5, own, shared).astype(float)
    x = rng.normal(size=(case.clients, case.samples + case.test, FEATURES))
    c = (1 + (1 + x @ loading / FEATURES**0.5) ** 4) * rng.uniform(0.5, 1.5, (*x.shape[:2], ITEMS))
    share = rng.uniform(0.3, 0.6, case.clients)
    found = _split(case, x, c) | {"weights": weights, "capacity": np.floor(share * weights.sum(axis=1)).astype(int)}
    return found | start(rng, FEATURES, ITEMS, case.hidden)


def path(case: Case, seed: int, x: Array, c: Array) -> dict[str, Array]:
    """Rows of PyEPO's generator as one client's."""
    rng = np.random.default_rng([2, seed])
    return _split(case, x[None], c[None].astype(float)) | start(rng, x.shape[1], c.shape[1], case.hidden)


def battery(case: Case, seed: int) -> dict[str, Array]:
    """Prices of 24 hours with peaks in the morning and the evening, low and at times negative where there is sun or wind.

    Features: sun, wind by night, by day and in the evening, cold, weekend and the level of the prices. How much sun and wind
    lower the prices is each client's own.
    """
    rng = np.random.default_rng([3, seed])
    hour = np.arange(HOURS)

    def bump(middle: float, width: float) -> Array:
        return np.exp(-(((hour - middle) / width) ** 2))

    days = (case.clients, case.samples + case.test)
    sun, cold, level = rng.beta(1.2, 1.2, days), rng.normal(size=days), rng.normal(size=days)
    winds = [rng.gamma(1.5, 0.6, days) for _ in range(3)]
    weekend = (rng.random(days) < 2 / 7).astype(float)
    c = 60 + 8 * level[..., None] + 5 * rng.normal(size=(*days, HOURS))
    c += ((20 + 8 * cold) * (1 - weekend))[..., None] * bump(8, 2) + (30 + 8 * cold)[..., None] * bump(19, 2.5)
    for size, weather, middle in ((65, sun, 13), (25, winds[0], 2), (25, winds[1], 11), (25, winds[2], 20)):
        own = rng.uniform(0.7, 1.3, (case.clients, 1)) * size
        c -= (own * weather)[..., None] * bump(middle, 3)
    x = np.stack([sun, *winds, cold, weekend, level], axis=-1)
    devices = {"capacity": rng.uniform(2, 5, case.clients), "efficiency": rng.uniform(0.8, 0.92, case.clients)}
    return _split(case, x, c) | devices | start(rng, x.shape[-1], HOURS, case.hidden)


def _split(case: Case, x: Array, c: Array) -> dict[str, Array]:
    n = case.samples
    return {"x": x[:, :n], "c": c[:, :n], "x_test": x[:, n:], "c_test": c[:, n:]}


def guesses(c: Array) -> Array:
    """Predictions to compare the value and the gradient of SPO+ at: the first test costs with an error of up to a half."""
    return (c * np.random.default_rng(0).uniform(0.5, 1.5, c.shape)).astype(np.float32)


# The judge.


def packings(profits: Array, weights: Array, capacity: int) -> Array:
    """The best packing for each row of profits (n, d), by dynamic programming in double precision."""
    n, d = profits.shape
    best = np.zeros((n, capacity + 1))
    taken = np.zeros((d, n, capacity + 1), bool)
    for item, unit in enumerate(weights):
        if unit > capacity:
            continue
        packed = np.full_like(best, -np.inf)
        packed[:, unit:] = best[:, : capacity + 1 - unit] + profits[:, item, None]
        taken[item] = packed > best
        best = np.maximum(best, packed)
    left, chosen = np.full(n, capacity), np.zeros((n, d))
    for item in reversed(range(d)):
        mine = taken[item, np.arange(n), left]
        chosen[:, item], left = mine, left - np.where(mine, weights[item], 0)
    return chosen


def arcs() -> list[tuple[int, int]]:
    """The arcs of the grid in the order of PyEPO and dffl: row by row, those to the right, then those down."""
    rows, columns = GRID
    found = []
    for i in range(rows):
        found += [(i * columns + j, i * columns + j + 1) for j in range(columns - 1)]
        found += [(i * columns + j, (i + 1) * columns + j) for j in range(columns)] if i + 1 < rows else []
    return found


def shortest(costs: Array) -> Array:
    """The shortest path for each row of costs (n, d), from the last node back to the first."""
    n, last = len(costs), GRID[0] * GRID[1] - 1
    least, via = np.full((n, last + 1), np.inf), np.zeros((n, last + 1), int)
    least[:, last] = 0
    listed = arcs()
    for number in sorted(range(len(listed)), key=lambda k: -listed[k][0]):  # all arcs that leave a node, the last nodes first
        tail, head = listed[number]
        total = costs[:, number] + least[:, head]
        via[:, tail] = np.where(total < least[:, tail], number, via[:, tail])
        least[:, tail] = np.minimum(least[:, tail], total)
    ends = np.array([head for _, head in listed])
    rows, here, chosen = np.arange(n), np.zeros(n, int), np.zeros((n, len(listed)))
    for _ in range(GRID[0] + GRID[1] - 2):
        used = via[rows, here]
        chosen[rows, used], here = 1, ends[used]
    return chosen


def decided(kind: str, data: dict[str, Array], client: int, costs: Array) -> Array:
    """The best decisions of a client at these costs."""
    if kind == "knapsack":
        return packings(costs.astype(float), data["weights"][client], int(data["capacity"][client]))
    return shortest(costs.astype(float))


def regret(kind: str, data: dict[str, Array], predicted: Array) -> list[float]:
    """Each client's normalised regret: what its decisions lose on the test samples, over the sum of |z*|."""
    found = []
    for client, guess in enumerate(predicted):
        true = data["c_test"][client]
        sense = -1 if kind == "knapsack" else 1
        mine, best = ((true * decided(kind, data, client, costs)).sum(axis=1) for costs in (guess, true))
        found.append(float(sense * (mine - best).sum() / np.abs(best).sum()))
    return found
