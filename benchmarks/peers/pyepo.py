"""PyEPO's SPO+ on a batch of fractional knapsacks, with its fastest exact solver or with a greedy of our own."""

from __future__ import annotations

import argparse
import itertools
from importlib.metadata import version
from typing import Any

import numpy as np
from benchmarks.peers import workload as work


def greedy_model(weights: np.ndarray) -> Any:
    """The best a user of PyEPO can do: a model that calls no solver, but is still asked for one instance at a time."""
    from pyepo import EPO
    from pyepo.model.opt import optModel

    class GreedyKnapsack(optModel):  # type: ignore[misc]
        """Fractional knapsack by ratio."""

        modelSense = EPO.MAXIMIZE

        def __init__(self, weights: np.ndarray) -> None:
            self.weights = weights
            super().__init__()

        def _getModel(self) -> tuple[None, list[int]]:
            return None, list(range(len(self.weights)))

        def setObj(self, c: Any) -> None:
            self.profits = np.asarray(c, float)

        def solve(self) -> tuple[np.ndarray, float]:
            order = np.argsort(-self.profits / self.weights)
            sizes = self.weights[order]
            room = work.BUDGET - sizes.cumsum() + sizes
            chosen = np.empty_like(sizes)
            chosen[order] = np.minimum(np.maximum(room / sizes, 0), 1)
            chosen[self.profits <= 0] = 0
            return chosen, float(chosen @ self.profits)

    return GreedyKnapsack(weights.astype(float))


def glop_model(weights: np.ndarray) -> Any:
    """PyEPO's own knapsack without integrality, solved as a linear programme by OR-Tools' simplex."""
    from pyepo.model.ort import knapsackModel

    return knapsackModel(weights[None].astype(float), np.array([work.BUDGET]), "glop").relax()


def run(case: str, processes: int, threads: int) -> dict[str, Any]:
    """Time SPO+ and its gradient a batch, and compare the gradients with the reference."""
    import torch
    from pyepo.func import SPOPlus

    torch.set_num_threads(threads)
    data = work.instances()
    model = {"glop": glop_model, "greedy": greedy_model}[case](data.weights)
    loss = SPOPlus(model, processes=processes, reduction="sum")
    batches = [torch.tensor(p, requires_grad=True) for p in data.predicted]
    turns = itertools.cycle(batches)
    known = [torch.tensor(a) for a in (data.profits, data.solutions, data.objectives[:, None])]

    def step() -> None:
        predicted = next(turns)
        predicted.grad = None
        loss(predicted, *known).backward()

    seconds, repeats = work.measure(step)
    back_end = f"OR-Tools {version('ortools')} GLOP" if case == "glop" else "NumPy greedy"
    return {
        "peer": f"PyEPO {version('pyepo')} + {back_end}",
        "case": case,
        "processes": processes,
        "instances_per_second": work.BATCH / seconds,
        "repeats": repeats,
        "gradient_error": work.gradient_error(data, [p.grad.numpy() for p in batches]),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=("glop", "greedy"), required=True)
    parser.add_argument("--processes", type=int, default=1, help="PyEPO's solver processes")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's threads")
    args = parser.parse_args()
    work.require("torch", "pyepo", *(["ortools"] if args.case == "glop" else []))
    with work.reporting() as report:
        report(run(**vars(args)))


if __name__ == "__main__":
    main()
