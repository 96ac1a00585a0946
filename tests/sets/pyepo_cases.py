"""PyEPO's examples, and what PyEPO itself makes of them: ``python -m tests.sets.pyepo_cases CASE``.

The answers come from a process of their own, because a process holds one of OR-Tools and highspy only.
"""

from __future__ import annotations

import importlib
import json
import sys
from itertools import product
from typing import Any

import numpy as np

ROWS = 8
WEIGHTS = np.array([[3.0, 5.0, 4.0, 7.0, 6.0, 3.0], [4.0, 3.0, 6.0, 3.0, 5.0, 7.0]])
CAPACITY = np.array([13.0, 14.0])
PLANS = np.array([w for w in product([0.0, 1.0], repeat=6) if (WEIGHTS @ w <= CAPACITY).all()])
"""All packings of the knapsack."""

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "knapsack by OR-Tools": ("pyepo.model.ort", "knapsackModel", {"weights": WEIGHTS, "capacity": CAPACITY}),
    "knapsack by CP-SAT": ("pyepo.model.ort.knapsack", "knapsackCpModel", {"weights": WEIGHTS, "capacity": CAPACITY}),
    "knapsack by Pyomo": (
        "pyepo.model.omo", "knapsackModel", {"weights": WEIGHTS, "capacity": CAPACITY, "solver": "appsi_highs"},
    ),
    "path by OR-Tools": ("pyepo.model.ort", "shortestPathModel", {"grid": (3, 4), "solver": "glop"}),
    "path by Pyomo": ("pyepo.model.omo", "shortestPathModel", {"grid": (3, 4), "solver": "appsi_highs"}),
    "tour by Pyomo": ("pyepo.model.omo", "tspGGModel", {"num_nodes": 5, "solver": "appsi_highs"}),
    "tour by Pyomo, MTZ": ("pyepo.model.omo", "tspMTZModel", {"num_nodes": 5, "solver": "appsi_highs"}),
}  # fmt: skip


def best(c: np.ndarray) -> np.ndarray:
    """The packing of least cost."""
    return PLANS[np.argmin(PLANS @ c)]


def model_class(case: str) -> Any:
    home, name, _ = CASES[case]
    return getattr(importlib.import_module(home), name)


def costs(case: str) -> np.ndarray:
    """PyEPO's own data."""
    import pyepo.data

    if case.startswith("knapsack"):
        return pyepo.data.knapsack.genData(ROWS, 4, 6, dim=2, deg=2, noise_width=0.5)[2].astype(np.float32)
    if case.startswith("path"):
        return pyepo.data.shortestpath.genData(ROWS, 4, (3, 4), deg=2, noise_width=0.5)[1].astype(np.float32)
    return pyepo.data.tsp.genData(ROWS, 4, 5, deg=2, noise_width=0.5)[1].astype(np.float32)


def predicted(true: np.ndarray) -> np.ndarray:
    return (true * np.random.default_rng(0).uniform(0.5, 1.5, true.shape)).astype(np.float32)


def reference(case: str) -> dict[str, Any]:
    """PyEPO's solutions and objectives, and its SPO+ with its gradient."""
    if CASES[case][2].get("solver") == "appsi_highs":
        importlib.import_module("highspy")  # before PyEPO imports OR-Tools
    import torch
    from pyepo.func import SPOPlus

    model = model_class(case)(**CASES[case][2])
    true = costs(case)
    solved = []
    for row in true:
        model.setObj(row)
        solved.append(model.solve())
    solutions, objectives = np.array([w for w, _ in solved]), np.array([z for _, z in solved], np.float32)
    guess = torch.tensor(predicted(true), requires_grad=True)
    known = (torch.tensor(true), torch.tensor(solutions), torch.tensor(objectives)[:, None])
    loss = SPOPlus(model, reduction="none")(guess, *known).reshape(-1)
    loss.sum().backward()
    numbers = {"solutions": solutions, "objectives": [z for _, z in solved], "loss": loss.detach(), "gradient": guess.grad}
    return {name: np.asarray(values, float).tolist() for name, values in numbers.items()} | {"sense": int(model.modelSense)}


if __name__ == "__main__":
    found = reference(sys.argv[1])
    print("\n" + json.dumps(found))
