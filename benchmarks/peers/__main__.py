"""dffl beside its peers, measured in one run on one machine, each peer in an environment of its own.

python -m benchmarks.peers [--only TEXT] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
from functools import partial

from benchmarks.peers.environments import python_of

from dffl.terminal import console
from dffl_studies.bench.measurements import Measurement, measurements, run


def peer(name: str, module: str, case: str, key: str, unit: str, ours: str) -> Measurement:
    """A peer's measurement, and the one of ours that it is compared with."""
    command = (f"benchmarks.peers.{module}", "--case", case)
    python = partial(python_of, module)
    return Measurement(name, command, unit, higher_is_better=unit != "ms", key=key, peer_of=ours, python=python)


PEERS = [
    peer("PyEPO + GLOP", "pyepo", "glop", "instances_per_second", "instances/s", "SPO+ knapsack"),
    peer("PyEPO + NumPy greedy", "pyepo", "greedy", "instances_per_second", "instances/s", "SPO+ knapsack"),
    peer("PyTorch closed form", "pytorch", "spo", "instances_per_second", "instances/s", "SPO+ knapsack"),
    peer("PyTorch step", "pytorch", "step", "milliseconds_per_step", "ms", "step knapsack, one core"),
    peer("PyTorch FedAvg loop", "pytorch", "rounds", "rounds_per_second", "rounds/s", "federated rounds"),
    peer("FedJAX", "fedjax", "rounds", "rounds_per_second", "rounds/s", "federated rounds"),
    peer("Flower simulation", "flower", "rounds", "rounds_per_second", "rounds/s", "federated rounds"),
]


def main() -> None:
    """Measure ours and the peers', and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only the measurements whose name contains this text")
    parser.add_argument("--quick", action="store_true", help="shorter repeats and smaller federations")
    parser.add_argument("--json", action="store_true", help="print for programs")
    options = parser.parse_args()
    compared = {one.peer_of for one in PEERS}
    ours = [one for one in measurements(options.quick) if one.name in compared]
    results = run([*ours, *PEERS], options.only)
    if options.json:
        print(json.dumps(results.as_json()))
    else:
        results.show(console())


if __name__ == "__main__":
    main()
