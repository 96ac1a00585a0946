"""Start a Ray cluster of two nodes on this machine, for test_cluster.py.

With a folder, run studies on it and print what happened; with ``--hold``, print its address and the process of the node that a
run on this machine talks through, and wait to be killed.
"""

import json
import os
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster

from dffl_studies.running import Study, grid, run
from studies.tests.running import tasks

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        if sys.argv[1] == "--hold":
            print(cluster.address, cluster.head_node.all_processes["raylet"][0].process.pid, flush=True)
            time.sleep(600)
        folder = Path(sys.argv[1])
        run(tasks.slow_study(0.05, count=6), folder / "rows", ray=cluster.address, progress=False)
        run(tasks.fits_study(), folder / "fits", ray=cluster.address, progress=False)
        (folder / "note.txt").write_text("seen")
        os.environ[tasks.FOLDER] = str(folder)  # the nodes have started: their workers do not get it
        seen = Study("nodes", tasks.node, grid(number=range(8)), places={"folder": folder})
        nodes = run(seen, folder / "nodes", ray=cluster.address, progress=False)
        troubled = run(
            Study("troubled", tasks.troubled, grid(number=range(4))), folder / "bad", ray=cluster.address, progress=False
        )
        found = {
            "nodes": sorted(nodes.rows["node"].unique()),
            "flags": sorted(nodes.rows["flags"].unique()),
            "notes": {place: sorted(rows["note"].unique()) for place, rows in nodes.rows.groupby("node")},
            "told": bool(nodes.rows["told"].any()),
            "well": sorted(troubled.rows["number"].tolist()),
            "failed": {job.parameters["number"]: why for job, why in troubled.failed},
        }
        print(json.dumps(found))
    finally:
        cluster.shutdown()
