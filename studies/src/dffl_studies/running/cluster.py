"""Jobs on a Ray cluster (extra: dffl-studies[ray])."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from dffl.ray_cluster import RayCluster, one_line
from dffl_studies.running.job import Failed, Finished, run_job
from dffl_studies.running.study import Job, Study

OPTION = "--ray"
SAFE = "finished rows are safe"


class RayWorkers:
    """One job for each core of the cluster. Its nodes need dffl of this version; rows are returned to this process."""

    def __init__(self, study: Study, address: str):
        try:
            import ray
        except ImportError:
            raise ValueError("--ray needs the extra: pip install 'dffl-studies[ray]'") from None
        self._ray, self.study = ray, study
        self._cluster = RayCluster(ray, address, OPTION)
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray restarts a process after a lost node; a job that kills its process gets only one more attempt.
        self._remote = ray.remote(num_cpus=1, max_retries=1)(run_job)
        self._running: dict[Any, Job] = {}

    def submit(self, job: Job) -> None:
        self._running[self._remote.remote(self.study.task, self.study.arguments(job))] = job

    def finished(self, timeout: float) -> list[tuple[Job, Finished | Failed]]:
        if not self._cluster.answers(SAFE):
            time.sleep(timeout)  # Ray's own calls may never return, or return at once
            return []
        try:
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        except self._ray.exceptions.RayError as error:
            raise OSError(f"the Ray cluster is gone ({one_line(error)}); {SAFE}") from None
        results = []
        for reference in done:
            job = self._running.pop(reference)
            try:
                results.append((job, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                results.append((job, Failed(one_line(error), str(error))))
        return results

    def close(self) -> None:
        """Cancel the running jobs and leave the cluster."""
        if not self._cluster.silent:  # a lost cluster has nothing to cancel
            with contextlib.suppress(self._ray.exceptions.RayError):
                for reference in self._running:
                    self._ray.cancel(reference, force=True)
        self._ray.shutdown()  # also after a lost cluster: otherwise Ray would end this process a minute later
