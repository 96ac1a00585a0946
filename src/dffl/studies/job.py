"""One job, run where it stands: what every kind of worker calls."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dffl.studies.store import Finished

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
"""A job has one core, so that its arithmetic does not depend on how many jobs run beside it."""


@dataclass(frozen=True)
class Failed:
    """Why a job has no rows: the error in one line, and where it came from."""

    line: str
    trace: str


def run_job(task: Callable[..., pd.DataFrame], arguments: dict[str, Any]) -> Finished | Failed:
    """The rows of one job and what they cost, or why there are none."""
    os.environ["XLA_FLAGS"] = ONE_THREAD  # read when JAX first computes, in the task
    started, used = time.perf_counter(), time.process_time()
    try:
        rows = task(**arguments)
        if not isinstance(rows, pd.DataFrame):
            raise TypeError(f"a study's task must return a pandas.DataFrame, found {type(rows).__name__}")
    except Exception as error:
        return Failed(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", traceback.format_exc())
    return Finished(rows, time.perf_counter() - started, time.process_time() - used)
