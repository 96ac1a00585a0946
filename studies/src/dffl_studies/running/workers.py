"""Jobs on this machine: processes with one core each.

Every worker is a pool of one process, so that a worker that dies (out of memory, killed) loses only one job.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any

from dffl.ray_cluster import one_line
from dffl_studies.running.job import Failed, Finished, run_job
from dffl_studies.running.study import Job, Study

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that BLAS libraries read once, when NumPy is first imported."""


def core_ids() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class LocalWorkers:
    """Several processes, each on its own core if there are enough."""

    def __init__(self, study: Study, count: int):
        self.study, self.slots = study, count
        self._pools: list[ProcessPoolExecutor | None] = [None] * count
        self._running: dict[Future[Any], tuple[int, Job]] = {}

    def submit(self, job: Job) -> None:
        busy = {place for place, _ in self._running.values()}
        place = next(place for place in range(self.slots) if place not in busy)
        arguments = self.study.arguments(job)
        with _interrupts_wait(), _one_thread_each():
            try:
                future = self._pool(place).submit(run_job, self.study.task, arguments)
            except BrokenProcessPool:  # it died while it was idle
                self._pools[place] = None
                future = self._pool(place).submit(run_job, self.study.task, arguments)
        self._running[future] = (place, job)

    def finished(self, timeout: float) -> list[tuple[Job, Finished | Failed]]:
        done, _ = wait(self._running, timeout, FIRST_COMPLETED)
        results = []
        for future in done:
            place, job = self._running.pop(future)
            try:
                results.append((job, future.result()))
            except BrokenProcessPool as error:
                self._pools[place] = None  # a new worker for the next job
                line = "its worker died: out of memory, killed, or unable to import the task"
                results.append((job, Failed(line, f"{line} ({error})")))
            except Exception as error:  # for example: the rows could not be sent
                results.append((job, Failed(one_line(error), repr(error))))
        return results

    def close(self) -> None:
        for pool in self._pools:
            if pool is None:
                continue
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)

    def _pool(self, place: int) -> ProcessPoolExecutor:
        pool = self._pools[place]
        if pool is None:
            cores = core_ids()
            arguments = (cores[(place + os.getpid()) % len(cores)],)  # two parallel runs should not start on the same core
            context = multiprocessing.get_context("spawn")  # a fork would inherit JAX's threads in a broken state
            pool = ProcessPoolExecutor(1, context, _start_worker, arguments)
            self._pools[place] = pool
        return pool


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block Ctrl-C while processes start: they inherit that, so it cannot end one of them before it ignores Ctrl-C itself."""
    if not hasattr(signal, "pthread_sigmask"):  # not a Unix
        yield
        return
    resource_tracker.ensure_running()  # multiprocessing starts it with the first process, and that ends the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Start processes with one BLAS thread each: several would wait for each other in busy loops on a worker's one core."""
    added = [name for name in BLAS_THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _start_worker(core: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops us
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a core that has gone away is no reason to stop
            os.sched_setaffinity(0, {core})
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End with the parent, even one that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
