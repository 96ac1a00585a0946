"""Start a Ray cluster of two nodes on this machine, run a study on it, and print what happened (run by test_cluster.py)."""

import json
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

from dffl.studies import Study, grid, run
from tests.studies import tasks

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        run(tasks.slow_study(0.05, count=6), folder / "rows", ray=cluster.address, progress=False)
        run(tasks.fits_study(), folder / "fits", ray=cluster.address, progress=False)
        nodes = run(Study("nodes", tasks.node, grid(number=range(8))), folder / "nodes", ray=cluster.address, progress=False)
        troubled = run(
            Study("troubled", tasks.troubled, grid(number=range(4))), folder / "bad", ray=cluster.address, progress=False
        )
        found = {
            "nodes": sorted(nodes.rows["node"].unique()),
            "flags": sorted(nodes.rows["flags"].unique()),
            "well": sorted(troubled.rows["number"].tolist()),
            "failed": {job.parameters["number"]: why for job, why in troubled.failed},
        }
        print(json.dumps(found))
    finally:
        cluster.shutdown()
