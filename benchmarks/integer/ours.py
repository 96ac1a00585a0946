"""One training of dffl: ``python -m benchmarks.integer.ours KIND WAY DATA OUT --case JSON`` prints one JSON line."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.integer import work

import dffl
from dffl.predictor import Network

WAYS = {"knapsack": ("dp", "mip", "relax"), "path": ("dp",), "battery": ("exact", "relax")}


def sets(kind: str, way: str, data: dict[str, np.ndarray]) -> list[dffl.FeasibleSet]:
    """The feasible set of each client."""
    if kind == "path":
        return [dffl.ShortestPath(*work.GRID)]
    if kind == "battery":
        pairs = zip(data["capacity"], data["efficiency"], strict=True)
        return [dffl.Battery(work.HOURS, capacity, 1.0, efficiency=round_trip, wear=3.0) for capacity, round_trip in pairs]
    pairs = zip(data["weights"], data["capacity"], strict=True)
    if way == "dp":
        return [dffl.ZeroOneKnapsack(weights, capacity) for weights, capacity in pairs]
    zero, one = np.zeros(work.ITEMS), np.ones(work.ITEMS)
    return [dffl.MixedInteger(A_ub=weights[None], b_ub=[capacity], lower=zero, upper=one) for weights, capacity in pairs]


def federation(data: dict[str, np.ndarray], chosen: list[dffl.FeasibleSet], maximize: bool, part: str = "") -> dffl.Federation:
    """The clients with their training or (``part`` = "_test") test samples."""
    tables = zip(data[f"x{part}"], data[f"c{part}"], chosen, strict=True)
    return dffl.Federation([dffl.Client(f"client-{k}", *one, maximize=maximize) for k, one in enumerate(tables)])


def network(data: dict[str, np.ndarray], hidden: tuple[int, ...]) -> Any:
    """A factory of the network that everybody starts from."""
    given = work.layers(data)

    def make(key: Any, inputs: int, outputs: int) -> Network:
        arrays = [tuple(jnp.asarray(layer[part]) for layer in given) for part in (0, 1)]
        return eqx.tree_at(lambda one: (one.weights, one.biases), Network(key, inputs, outputs, hidden), tuple(arrays))

    return make


def probe(kind: str, way: str, data: dict[str, np.ndarray], s: dffl.FeasibleSet) -> dict[str, np.ndarray]:
    """Value and gradient of SPO+ at the first client's test costs, with the judge's w* handed in."""
    if kind == "battery" or way == "relax":
        return {}
    true = data["probe_c"]

    def loss(guess: Any) -> Any:
        values = dffl.spo_plus(guess, true, s, maximize=kind == "knapsack", w_star=data["probe_w"])
        return values.sum(), values

    (_, values), gradient = jax.value_and_grad(loss, has_aux=True)(data["probe_guess"])
    return {"value": np.asarray(values), "gradient": np.asarray(gradient)}


def run(kind: str, way: str, data: dict[str, np.ndarray], case: work.Case, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the training took, and what it predicts for the test samples."""
    maximize = kind == "knapsack"
    settings = {
        "rounds": case.epochs, "local_epochs": 1, "batch_size": case.batch, "learning_rate": case.rate, "loss": "spo+",
        "gradient_clip": work.CLIP, "tau": work.TAU, "seed": seed, "network": network(data, case.hidden),
        "relax": way == "relax",
    }  # fmt: skip
    seconds, processor = [], []
    for _ in range(2 if way == "dp" else 1):  # sets that keep answers would find them again
        begin, used = time.perf_counter(), time.process_time()
        chosen = sets(kind, way, data)
        train = federation(data, chosen, maximize)
        fit = dffl.fit(train, "local", progress=False, **settings)
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
    samples = case.clients * case.samples
    found: dict[str, Any] = {"who": f"dffl {dffl.__version__}", "seconds": seconds[0], "again": seconds[-1]}
    found |= {"processor": processor[0], "processor_again": processor[-1], "calls": samples * (case.epochs + 1)}
    if kind == "battery":
        test = federation(data, chosen, maximize, "_test")
        found["regret"] = fit.evaluate(test)["relative_regret"].tolist()
        found["mean_cost"] = dffl.fit(train, "mean-cost", progress=False).evaluate(test)["relative_regret"].tolist()
        found["negative"] = float((data["c"] < 0).mean())
    predicted = np.stack([fit.predict(name, x) for name, x in zip(fit.members, data["x_test"], strict=True)])
    return found, {"predicted": predicted} | probe(kind, way, data, chosen[0])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=WAYS)
    parser.add_argument("way")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--case", type=json.loads, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    case = work.Case(**options.case | {"hidden": tuple(options.case["hidden"])})
    with warnings.catch_warnings(record=True) as noted:  # of solves that ended at a limit
        warnings.simplefilter("always")
        found, arrays = run(options.kind, options.way, work.read(options.data), case, options.seed)
    work.written(options.out, arrays)
    print(json.dumps(found | {"warnings": [str(one.message) for one in noted]}))


if __name__ == "__main__":
    main()
