"""One job: what every kind of worker calls."""

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
"""A job has one core, so that its arithmetic does not depend on how many jobs run at the same time."""


class Finished(NamedTuple):
    """A job's rows and what they cost."""

    rows: pd.DataFrame
    seconds: float
    cpu_seconds: float


TIMES = ("seconds", "cpu_seconds")
"""The fields of a finished job that hold what it cost."""


@dataclass(frozen=True)
class Failed:
    """Why a job has no rows: the error in one line, and where it came from."""

    line: str
    trace: str


def run_job(task: Callable[..., pd.DataFrame], arguments: dict[str, Any]) -> Finished | Failed:
    """The rows of one job and what they cost, or why there are none."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()  # read when JAX first computes, in the task
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
