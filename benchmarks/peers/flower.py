"""Rounds of federated averaging in Flower's simulation engine, every client's update being the plain PyTorch one."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.peers import workload as work

if TYPE_CHECKING:
    from benchmarks.peers.pytorch import Clients

BEGIN = time.perf_counter()
WARM_UP = 3  # rounds in which Ray's workers import PyTorch and build their clients' data


@cache
def client(index: int) -> Clients:
    """A client's data, built once in a worker; the worker takes one thread, as each has one processor."""
    import torch
    from benchmarks.peers.pytorch import Clients

    torch.set_num_threads(1)
    return Clients(work.federation(work.SAMPLES), slice(index, index + 1))


def local_update(index: int, parameters: list[np.ndarray], turn: int) -> list[np.ndarray]:
    """One local epoch of a client."""
    import torch

    local = client(index)
    local.start(parameters)
    local.epoch(torch.from_numpy(work.epoch_order(index, turn)[None]))
    return [p.detach()[0].numpy() for p in local.parameters]


def train(message: Any, context: Any) -> Any:
    """Flower's side of a local update; Flower counts rounds from one."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    index, turn = int(context.node_config["partition-id"]), int(message.content["config"]["server-round"]) - 1
    trained = local_update(index, message.content["arrays"].to_numpy_ndarrays(), turn)
    content = RecordDict({"arrays": ArrayRecord(trained), "metrics": MetricRecord({"num-examples": work.SAMPLES})})
    return Message(content=content, reply_to=message)


def simulate(rounds: int, workers: int) -> tuple[list[float], list[np.ndarray]]:
    """When each round ended, the start first, and the parameters after the first round."""
    # imported by name, so that Ray's workers find the functions by reference and keep their caches between messages
    from benchmarks.peers import flower
    from flwr.app import ArrayRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    ended: list[float] = []
    after_first: list[np.ndarray] = []
    server, clients = ServerApp(), ClientApp()
    clients.train()(flower.train)

    def watch(turn: int, arrays: ArrayRecord) -> None:
        ended.append(time.perf_counter())
        if turn == 1:
            after_first.extend(arrays.to_numpy_ndarrays())

    def serve(grid: Any, context: Any) -> None:
        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=work.CLIENTS, min_train_nodes=work.CLIENTS)
        strategy.start(grid, ArrayRecord(work.initial_parameters()), num_rounds=rounds, evaluate_fn=watch)

    server.main()(serve)
    resources = {"init_args": {"num_cpus": workers}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, clients, work.CLIENTS, backend_config=resources)
    return ended, after_first


def run(rounds: int, workers: int) -> dict[str, Any]:
    """Time the rounds, and compare the first one's outcome with the same round in one process."""
    from benchmarks.peers.pytorch import average_round, groups

    ended, after_first = simulate(rounds, workers)
    expected = average_round(groups(work.SAMPLES, "loop"), work.initial_parameters(), 0)
    spent = np.diff(ended)[WARM_UP:].tolist()
    return {
        "peer": f"Flower {version('flwr')} simulation (Ray {version('ray')}) + PyTorch {version('torch')}",
        "case": "rounds",
        "workers": workers,
        "rounds_per_second": 1 / statistics.median(spent),
        "repeats": len(spent),
        "startup_seconds": ended[1] - BEGIN,
        "parameter_error": max(float(np.abs(a - b).max()) for a, b in zip(after_first, expected, strict=True)),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=("rounds",), required=True)
    parser.add_argument("--rounds", type=int, default=WARM_UP + 25, help="about 5 s after the start")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="Ray's workers, of one processor each")
    args = parser.parse_args()
    work.require("torch", "flwr", "ray")
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    with work.reporting() as report:
        report(run(args.rounds, args.workers))


if __name__ == "__main__":
    main()
