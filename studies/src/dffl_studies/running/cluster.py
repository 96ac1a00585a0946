"""Jobs on a Ray cluster (extra: dffl-studies[ray])."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

from dffl_studies.running.job import Failed, Finished, one_line, run_job
from dffl_studies.running.study import Job, Study

PATIENCE = 10.0
"""Seconds to wait for a cluster to answer."""

SILENCE = 6.0
"""Seconds without an answer after which a cluster is gone."""

Endpoint = tuple[str, int]


class RayWorkers:
    """One job for each core of the cluster. Its nodes need dffl of this version; rows are returned to this process."""

    def __init__(self, study: Study, address: str):
        try:
            import ray
        except ImportError:
            raise ValueError("--ray needs the extra: pip install 'dffl-studies[ray]'") from None
        self._ray, self.study = ray, study
        self._lifelines = _connect(ray, address)
        self._silent_since: float | None = None
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray restarts a process after a lost node; a job that kills its process gets only one more attempt.
        self._remote = ray.remote(num_cpus=1, max_retries=1)(run_job)
        self._running: dict[Any, Job] = {}

    def submit(self, job: Job) -> None:
        self._running[self._remote.remote(self.study.task, self.study.arguments(job))] = job

    def finished(self, timeout: float) -> list[tuple[Job, Finished | Failed]]:
        if not self._answers():
            time.sleep(timeout)  # Ray's own calls may never return, or return at once
            return []
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
        """Cancel the running jobs and leave the cluster."""
        if self._silent_since is None:  # a lost cluster has nothing to cancel
            with contextlib.suppress(self._ray.exceptions.RayError):
                for reference in self._running:
                    self._ray.cancel(reference, force=True)
        self._ray.shutdown()  # also after a lost cluster: otherwise Ray would end this process a minute later

    def _answers(self) -> bool:
        """Whether the cluster answers now. Raises an error if it has been silent for too long.

        Ray does not report a lost cluster: after a minute it ends this process, without a message.
        """
        try:
            for lifeline in self._lifelines:
                socket.create_connection(lifeline, 1.0).close()
        except OSError as error:
            self._silent_since = self._silent_since or time.monotonic()
            if time.monotonic() - self._silent_since > SILENCE:
                raise OSError(f"the Ray cluster is gone ({one_line(error)}); finished rows are safe") from None
            return False
        self._silent_since = None
        return True


def endpoint(address: str) -> Endpoint | None:
    """The host and port of a cluster's address; None for ``auto``."""
    match = re.fullmatch(r"(?:ray://)?([^\s:/]+):(\d+)", address)
    if match is None and address != "auto":
        raise ValueError(f"--ray must be 'auto' or HOST:PORT, found {address!r}")
    return None if match is None else (match[1], int(match[2]))


def require_cluster(address: str) -> Endpoint | None:
    """The endpoint of a cluster. Refused with one line if nobody listens there: Ray itself would wait for minutes."""
    place = endpoint(address)
    with _refusing(address):
        if place is not None:
            socket.create_connection(place, PATIENCE).close()
    return place


@contextlib.contextmanager
def _refusing(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError, RuntimeError) as error:  # Ray's ConnectionError is an OSError
        why = one_line(error)
        raise ValueError(f"--ray {address}: no Ray cluster answers there ({why}); start one with 'ray start --head'") from None


def _connect(ray: Any, address: str) -> list[Endpoint]:
    """Join the cluster. Returns the endpoints that must keep answering."""
    place = require_cluster(address)
    with _refusing(address):
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    if place is not None and address.startswith("ray://"):  # the server there connects to the other nodes
        return [place]
    context = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    mine = [node for node in ray.nodes() if node["NodeID"] == context.get_node_id()]  # the node of this connection
    return [(host.strip("[]"), int(port)), *((node["NodeManagerAddress"], node["NodeManagerPort"]) for node in mine)]
