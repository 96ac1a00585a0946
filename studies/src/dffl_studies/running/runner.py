"""Run the jobs that a study's folder lacks, on this machine or on a cluster."""

from __future__ import annotations

import errno
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa

from dffl.checks import require_whole
from dffl.progress import Progress
from dffl.ray_cluster import one_line, require_cluster
from dffl_studies.running.cluster import OPTION, RayWorkers
from dffl_studies.running.frames import ColumnClashError
from dffl_studies.running.job import Failed, Finished
from dffl_studies.running.store import Store
from dffl_studies.running.study import Job, Study
from dffl_studies.running.workers import LocalWorkers, core_ids

TICK = 0.5
"""Seconds between checks of the workers: the longest delay of Ctrl-C."""


class WorkerPool(Protocol):
    """Something that runs ``slots`` jobs at a time, each to its end.

    `finished` returns what has ended, and waits for the first at most ``timeout`` seconds; `close` also stops busy workers.
    """

    slots: int

    def submit(self, job: Job) -> None: ...
    def finished(self, timeout: float) -> list[tuple[Job, Finished | Failed]]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Report:
    """The result of a run."""

    rows: pd.DataFrame
    """All rows of the folder, also those of an earlier, larger grid; ``dffl`` is the version that made a row."""
    jobs: int
    """The number of jobs of the study."""
    resumed: int
    """The number of jobs that were finished before, with all the values of the inner axis."""
    failed: list[tuple[Job, str]]
    """The jobs without rows, and the reasons."""
    damaged: list[Path]
    """Damaged files; their jobs were run again."""


def run(
    study: Study,
    folder: str | PathLike[str],
    *,
    workers: int | None = None,
    ray: str | None = None,
    accept_versions: bool = False,
    progress: bool | None = None,
) -> Report:
    """Run the jobs of a study that its folder lacks, and return all rows of the folder.

    Each job runs in a process with one core: ``workers`` of them on this machine (default: one per core), or all the cores of
    the Ray cluster at ``ray``. A finished job is on disk at once. Whatever stops a run (Ctrl-C, a kill, a full disk), calling
    again continues from there, and the rows at the end are the same. A job that fails is reported and does not stop the others.

    A folder of the same protocol can be added to: jobs, and values of the study's inner axis. Where it has rows of another
    version of dffl, that is refused unless ``accept_versions``; the column ``dffl`` of the rows tells them apart.
    """
    if workers is not None:
        require_whole("workers", workers, least=1, most=10_000)
    if workers is not None and ray is not None:
        raise ValueError("workers and ray exclude each other: a cluster gives all its cores")
    if ray is not None:
        require_cluster(ray, OPTION)  # before anything is written
    store = Store(folder)
    with store.locked(), _terminated_like_interrupted():
        with _disk(store):
            missing = store.prepare(study, accept_versions)
        failed = _run_jobs(study, store, missing, workers, ray, progress) if missing else []
        with _disk(store):
            store.pack(list(study.jobs))
        rows = store.rows()
        lost = {job.key for job in store.missing(study)} - {job.key for job, _ in failed}
    if lost:
        raise OSError(
            f"{store.folder}: the rows of {len(lost)} jobs were damaged on disk in this run; run it again, and see the disk"
        )
    return Report(rows, len(study.jobs), len(study.jobs) - len(missing), failed, store.damaged)


def _run_jobs(
    study: Study, store: Store, missing: list[Job], workers: int | None, ray: str | None, progress: bool | None
) -> list[tuple[Job, str]]:
    count = min(workers or len(core_ids()), len(missing))
    pool: WorkerPool = RayWorkers(study, ray) if ray else LocalWorkers(study, count)
    failed: list[tuple[Job, str]] = []
    waiting, under_way = iter(missing), 0
    with Progress(progress) as bar:
        total, left = (sum(map(study.weigh, jobs)) for jobs in (study.jobs, missing))
        bar.expect(total, done=total - left)
        done = len(study.jobs) - len(missing)
        try:
            while True:
                while under_way < pool.slots and (job := next(waiting, None)) is not None:
                    pool.submit(job)
                    under_way += 1
                if not under_way:
                    break
                for job, result in pool.finished(TICK):
                    under_way -= 1
                    done += 1
                    with _disk(store):
                        if (failure := _kept(store, job, result, first=done - len(failed) == 1)) is not None:
                            failed.append((job, failure.line))
                            store.fail(job, failure.trace)
                    note = f", {len(failed)} failed" if failed else ""
                    bar.advance(study.weigh(job), f"{study.name}: {done} of {len(study.jobs)}{note}")
        finally:
            pool.close()
    return failed


def _kept(store: Store, job: Job, result: Finished | Failed, first: bool) -> Failed | None:
    """Store a job's rows. Rows that cannot be stored are a failure of that job, not of the study.

    But if the very first rows do not match the grid, the run stops: every job would train, and then fail.
    """
    if isinstance(result, Failed):
        return result
    try:
        store.write(job, result)
    except (ValueError, TypeError, pa.ArrowException) as error:
        if first and isinstance(error, ColumnClashError):
            raise
        return Failed(one_line(error), traceback.format_exc())
    return None


@contextmanager
def _disk(store: Store) -> Iterator[None]:
    """The message of a full disk for rows."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            error.errno, f"{store.folder}: the disk is full; finished rows are safe, make room and run the same command again"
        ) from None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a run in the same way as Ctrl-C."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: leave signals alone
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
