"""How many cores this process may use."""

from __future__ import annotations

import os


def core_count() -> int:
    """How many cores this process may use; a worker of a study has one, which XLA's flags show."""
    if "intra_op_parallelism_threads=1" in os.environ.get("XLA_FLAGS", "").split():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
