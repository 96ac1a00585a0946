"""One job: the function that every kind of worker calls."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dffl.ray_cluster import one_line

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
"""A job has one core, so that its numbers do not depend on how many jobs run at the same time."""


class Finished(NamedTuple):
    """A job's rows and cost."""

    rows: pd.DataFrame
    seconds: float
    cpu_seconds: float


TIMES = ("seconds", "cpu_seconds")
"""The fields of a finished job with its cost."""


@dataclass(frozen=True)
class Failed:
    """Why a job has no rows: the error in one line, and its origin."""

    line: str
    trace: str


def run_job(task: Callable[..., pd.DataFrame], arguments: dict[str, Any]) -> Finished | Failed:
    """The rows and the cost of one job, or the reason why there are none."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()  # JAX reads it at its first computation, in the task
    started, used = time.perf_counter(), time.process_time()
    try:
        rows = task(**arguments)
        if not isinstance(rows, pd.DataFrame):
            raise TypeError(f"a study's task must return a pandas.DataFrame, found {type(rows).__name__}")
        if rows.empty:
            raise ValueError("a study's task must return at least one row, found none")
    except (Exception, SystemExit) as error:
        return Failed(one_line(error), traceback.format_exc())
    return Finished(rows, time.perf_counter() - started, time.process_time() - used)
