"""Jobs on a Ray cluster (extra: dffl[ray])."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import Any

from dffl.studies.job import Failed, one_line, run_job
from dffl.studies.store import Finished
from dffl.studies.study import Job, Study

PATIENCE = 10.0
"""Seconds to wait for a cluster to answer."""


class RayWorkers:
    """One job for each core of the cluster. Its nodes need dffl of this version; rows come back to this process."""

    def __init__(self, study: Study, address: str):
        try:
            import ray
        except ImportError:
            raise ValueError("--ray needs the extra: pip install 'dffl[ray]'") from None
        self._ray, self.study = ray, study
        _connect(ray, address)
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray starts a process again after a lost node; a job that kills its process is given up after one more try.
        self._remote = ray.remote(num_cpus=1, max_retries=1)(run_job)
        self._running: dict[Any, Job] = {}

    def submit(self, job: Job) -> None:
        """Hand a job to the cluster."""
        self._running[self._remote.remote(self.study.task, {**self.study.protocol, **job.parameters})] = job

    def finished(self, timeout: float) -> list[tuple[Job, Finished | Failed]]:
        """What has ended, waiting at most so long for the first."""
        try:
            done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        except self._ray.exceptions.RayError as error:
            raise OSError(f"the Ray cluster is gone ({one_line(error)}); finished rows are safe") from None
        results = []
        for reference in done:
            job = self._running.pop(reference)
            try:
                results.append((job, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                results.append((job, Failed(one_line(error), str(error))))
        return results

    def close(self) -> None:
        """Cancel what still runs and leave the cluster."""
        with contextlib.suppress(self._ray.exceptions.RayError):  # a cluster that is gone has nothing to cancel
            for reference in self._running:
                self._ray.cancel(reference, force=True)
        self._ray.shutdown()


def endpoint(address: str) -> tuple[str, int] | None:
    """The host and port of a cluster's address; None for ``auto``."""
    found = re.fullmatch(r"(?:ray://)?([^\s:/]+):(\d+)", address)
    if found is None and address != "auto":
        raise ValueError(f"--ray must be 'auto' or HOST:PORT, found {address!r}")
    return None if found is None else (found[1], int(found[2]))


def _connect(ray: Any, address: str) -> None:
    """Join the cluster, or say in one line that it does not answer."""
    found = endpoint(address)
    try:
        if found is not None:  # Ray itself waits for minutes where nobody listens
            socket.create_connection(found, PATIENCE).close()
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (OSError, OverflowError, RuntimeError) as error:  # Ray's ConnectionError is an OSError
        why = one_line(error)
        raise ValueError(f"--ray {address}: no Ray cluster answers there ({why}); start one with 'ray start --head'") from None
