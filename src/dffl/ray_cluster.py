"""A Ray cluster: joining one, and noticing that it is gone. Ray itself would wait for minutes, or end the process."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

PATIENCE = 10.0
"""Seconds to wait for a cluster to answer."""
SILENCE = 6.0
"""Seconds without an answer after which a cluster is gone."""

Endpoint = tuple[str, int]


def one_line(error: BaseException) -> str:
    """An error's kind and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class RayCluster:
    """A cluster that this process has joined. ``who`` is what messages call the one that asked for it."""

    def __init__(self, ray: Any, address: str, who: str):
        require_cluster(address, who)
        with _refusing(address, who):
            if not ray.is_initialized():
                ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        self.ray, self._lifelines = ray, _lifelines(ray, address)
        self._silent_since: float | None = None

    @property
    def silent(self) -> bool:
        """The cluster did not answer when it was last asked."""
        return self._silent_since is not None

    def answers(self, consequence: str) -> bool:
        """Whether the cluster answers now; an error, which ends with the consequence, once it was silent for too long.

        Ray does not report a lost cluster: after a minute it ends this process, without a message.
        """
        try:
            for lifeline in self._lifelines:
                socket.create_connection(lifeline, 1.0).close()
        except OSError as error:
            self._silent_since = self._silent_since or time.monotonic()
            if time.monotonic() - self._silent_since > SILENCE:
                raise OSError(f"the Ray cluster is gone ({one_line(error)}); {consequence}") from None
            return False
        self._silent_since = None
        return True


def wanted_address(ray: Any) -> str:
    """The cluster of this process, if it has joined one; else that of RAY_ADDRESS, or the one on this machine."""
    return ray.get_runtime_context().gcs_address if ray.is_initialized() else os.environ.get("RAY_ADDRESS", "auto")


def endpoint(address: str, who: str) -> Endpoint | None:
    """The host and port of a cluster's address; None for ``auto``."""
    found = re.fullmatch(r"(?:ray://)?([^\s:/]+):(\d+)", address)
    if found is None and address != "auto":
        raise ValueError(f"{who} must be 'auto' or HOST:PORT, found {address!r}")
    return None if found is None else (found[1], int(found[2]))


def require_cluster(address: str, who: str) -> Endpoint | None:
    """The endpoint of a cluster, refused in one line if nobody listens there: Ray itself would wait for minutes."""
    found = endpoint(address, who)
    with _refusing(address, who):
        if found is not None:
            socket.create_connection(found, PATIENCE).close()
    return found


@contextlib.contextmanager
def _refusing(address: str, who: str) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError, RuntimeError) as error:  # Ray's ConnectionError is an OSError
        why = one_line(error)
        fix = "start one with 'ray start --head'"
        raise ValueError(f"{who} {address}: no Ray cluster answers there ({why}); {fix}") from None


def _lifelines(ray: Any, address: str) -> list[Endpoint]:
    """The endpoints that must keep answering."""
    if address.startswith("ray://") and (found := endpoint(address, "")) is not None:
        return [found]  # the other ends are the business of the server there
    context = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    mine = [node for node in ray.nodes() if node["NodeID"] == context.get_node_id()]  # the node that this process talks through
    return [(host.strip("[]"), int(port)), *((node["NodeManagerAddress"], node["NodeManagerPort"]) for node in mine)]
