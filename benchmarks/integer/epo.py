"""PyEPO: one training with SPO+, rows of its generator, or the calls a second of one of its models; prints one JSON line.

A model is named by its problem and its back-end, such as ``knapsack scip`` (OR-Tools) and ``path highs`` (Pyomo).
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.integer import work
from benchmarks.peers.workload import measure, reporting, require


def model_class(kind: str, solver: str) -> Any:
    """PyEPO's class of models; highspy has to be imported before PyEPO imports OR-Tools."""
    if solver == "highs":
        import_module("highspy")
    home = import_module(f"pyepo.model.{'omo' if solver == 'highs' else 'ort'}")
    return home.shortestPathModel if kind == "path" else home.knapsackModel


def model(kind: str, solver: str, data: dict[str, np.ndarray], client: int = 0) -> Any:
    """A client's model in PyEPO."""
    make, name = model_class(kind, solver), {"highs": "appsi_highs"}.get(solver, solver)
    if kind == "path":
        return make(work.GRID, name)
    return make(data["weights"][client : client + 1].astype(float), data["capacity"][client : client + 1], name)


def who(solver: str) -> str:
    """What is measured, with versions."""
    back = f"Pyomo {version('pyomo')} + HiGHS {version('highspy')}" if solver == "highs" else f"OR-Tools {version('ortools')}"
    return f"PyEPO {version('pyepo')} + {back}{'' if solver == 'highs' else ' ' + solver.upper()}"


class Units:
    """dffl's units: standardised features, costs over their mean absolute value."""

    def __init__(self, x: np.ndarray, c: np.ndarray):
        self.mean, self.scale, self.size = x.mean(axis=0), x.std(axis=0), float(np.abs(c).mean())

    def features(self, x: np.ndarray) -> np.ndarray:
        return ((x - self.mean) / self.scale).astype(np.float32)


def network(data: dict[str, np.ndarray]) -> Any:
    """dffl's network in PyTorch: the same start, ReLU, and the clip of the output's norm."""
    import torch

    class Clipped(torch.nn.Module):  # type: ignore[misc]
        """Shrinks rows to a norm of `work.TAU` where they are longer."""

        def forward(self, y: Any) -> Any:
            return y * torch.clamp(work.TAU / y.norm(dim=-1, keepdim=True).clamp_min(1e-30), max=1)

    parts: list[Any] = []
    for weight, bias in work.layers(data):
        linear = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight.T))
            linear.bias.copy_(torch.tensor(bias))
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1], Clipped())


def trained(kind: str, solver: str, data: dict[str, np.ndarray], client: int, case: work.Case, processes: int) -> np.ndarray:
    """Train one client as PyEPO's guide does; the predicted costs of its test samples, in raw units."""
    import torch
    from pyepo.data.dataset import optDataset
    from pyepo.func import SPOPlus
    from torch.utils.data import DataLoader

    units = Units(data["x"][client], data["c"][client])
    own = model(kind, solver, data, client)
    rows = optDataset(own, units.features(data["x"][client]), (data["c"][client] / units.size).astype(np.float32))
    loader = DataLoader(rows, batch_size=case.batch, shuffle=True)
    loss, net = SPOPlus(own, processes=processes), network(data)
    adam = torch.optim.Adam(net.parameters(), lr=case.rate)
    for _ in range(case.epochs):
        for x, c, w, z in loader:
            adam.zero_grad()
            loss(net(x), c, w, z).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), work.CLIP)
            adam.step()
    with torch.no_grad():
        return net(torch.tensor(units.features(data["x_test"][client]))).numpy() * units.size


def probe(kind: str, solver: str, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """PyEPO's own value and gradient of SPO+ where dffl's are taken."""
    import torch
    from pyepo.func import SPOPlus

    guess = torch.tensor(data["probe_guess"], requires_grad=True)
    true, w = (torch.tensor(data[name].astype(np.float32)) for name in ("probe_c", "probe_w"))
    values = SPOPlus(model(kind, solver, data), reduction="none")(guess, true, w, (true * w).sum(dim=1, keepdim=True))
    values.sum().backward()
    return {"value": values.detach().numpy().reshape(-1), "gradient": guess.grad.numpy()}


def training(options: argparse.Namespace, data: dict[str, np.ndarray]) -> dict[str, Any]:
    """Train the first clients, one after the other."""
    import torch

    torch.manual_seed(options.seed)
    case = work.Case(**options.case | {"hidden": tuple(options.case["hidden"])})
    count = min(options.clients or case.clients, case.clients)
    import_module("pyepo.data.dataset")  # imports are not counted, as they are not for dffl
    import_module("pyepo.func")
    begin, used = time.perf_counter(), time.process_time()
    predicted = [trained(options.kind, options.solver, data, k, case, options.processes) for k in range(count)]
    seconds, processor = time.perf_counter() - begin, time.process_time() - used
    work.written(options.out, {"predicted": np.stack(predicted)} | probe(options.kind, options.solver, data))
    found = {"who": who(options.solver), "seconds": seconds, "processor": processor, "clients": count}
    return found | {"calls": count * case.samples * (case.epochs + 1)}


def calling(options: argparse.Namespace, data: dict[str, np.ndarray]) -> dict[str, Any]:
    """Calls a second of one model: a new cost vector, a solve and its answer."""
    own = model(options.kind, options.solver, data)
    rows = itertools.cycle(data["costs"])

    def call() -> None:
        own.setObj(next(rows))
        own.solve()

    def timed() -> None:
        used = time.process_time()
        for _ in range(20):
            call()
        spent.append(time.process_time() - used)

    spent: list[float] = []
    seconds, repeats = measure(timed, options.seconds)
    found = {"who": who(options.solver), "calls_per_second": 20 / seconds, "repeats": repeats}
    return found | {"calls_per_processor_second": 20 / statistics.median(spent)}


def generating(options: argparse.Namespace) -> dict[str, Any]:
    """Rows of PyEPO's generator: 5 features, a grid of 5 x 5, degree 6, noise .5."""
    from pyepo.data import shortestpath

    x, c = shortestpath.genData(options.rows, 5, work.GRID, deg=6, noise_width=0.5, seed=135 + options.seed)
    work.written(options.out, {"x": x, "c": c})
    return {"rows": len(x)}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("train", "call", "generate"))
    parser.add_argument("kind", choices=("knapsack", "path"))
    parser.add_argument("solver")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--case", type=json.loads)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clients", type=int, default=0, help="only the first so many")
    parser.add_argument("--processes", type=int, default=1, help="PyEPO's solver processes")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    require("pyepo", "torch", *(["pyomo", "highspy"] if options.solver == "highs" else ["ortools"]))
    with reporting() as report:
        if options.task == "generate":
            report(generating(options))
            return
        if options.solver == "highs":
            import_module("highspy")
        import torch

        torch.set_num_threads(1)
        report({"train": training, "call": calling}[options.task](options, work.read(options.data)))


if __name__ == "__main__":
    main()
