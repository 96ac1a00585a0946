"""Fits on a Ray cluster of two nodes on this machine, one of which is killed in the middle; for test_on_ray.py.

Prints one JSON line: whether all numbers are those of one process.
"""

import json
import os
import signal
import sys
import time
import warnings

import numpy as np
import ray
from ray.cluster_utils import Cluster

import dffl
from dffl.training.engines.on_ray import RayActors
from dffl.training.run import Run
from tests.federations import mixed

HOW = {"rounds": 6, "local_epochs": 1, "batch_size": 8, "progress": False, "client_fraction": 0.7}


def equal(a: dffl.Fit, b: dffl.Fit, test: dffl.Federation) -> bool:
    """Every number of two fits."""
    x = np.linspace(-1, 1, test.features)
    alike = all((a.predict(name, x) == b.predict(name, x)).all() for name in test.names)
    return alike and a.history.equals(b.history) and a.evaluate(test).equals(b.evaluate(test))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        os.environ["RAY_ADDRESS"] = cluster.address
        federation, found = mixed(), {}
        for method in sys.argv[1].split(","):
            mine = dffl.fit(federation, method, engine="ray", **HOW)
            found[method] = equal(mine, dffl.fit(federation, method, **HOW), federation)
        save, lost = Run.save, []

        def killing(self, trainer, part, state):
            save(self, trainer, part, state)
            if state.round == 3 and not lost:
                lost.append(second)
                os.kill(second.all_processes["raylet"][0].process.pid, signal.SIGKILL)
                while all(node["Alive"] for node in ray.nodes()):  # until the cluster notices, its workers answer
                    time.sleep(1)

        again, made = RayActors.again, []
        RayActors.again = lambda self, place, error: made.append(place) or again(self, place, error)
        Run.save = killing
        mine = dffl.fit(federation, "scaffold", engine="ray", **HOW)
        Run.save = save
        found["after a loss"] = equal(mine, dffl.fit(federation, "scaffold", **HOW), federation)
        print(json.dumps(found | {"made again": len(made), "killed": len(lost)}))
    finally:
        ray.shutdown()
        cluster.shutdown()
