"""The cores that this process may use, and work that runs on them in parallel.

XLA runs a small program on one core, so different programs run in parallel threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController


def core_count() -> int:
    """The number of cores. A worker of a study has one, as XLA's flags show."""
    if "intra_op_parallelism_threads=1" in os.environ.get("XLA_FLAGS", "").split():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """The limit of BLAS threads that is in force, and how many calls rely on it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limiter: Any = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread inside, in the whole process.

    Where each core has work of its own, threads of BLAS wait for each other in busy loops.
    """
    with _LIMIT.lock:
        if _LIMIT.users == 0:
            _LIMIT.limiter = _blas().limit(limits=1, user_api="blas")
        _LIMIT.users += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= 1
            if _LIMIT.users == 0:
                _LIMIT.limiter.restore_original_limits()


S = TypeVar("S")
T = TypeVar("T")
TICK = 0.2
"""Seconds between two checks of the running work."""


@cache
def _helpers(cores: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores - 1, thread_name_prefix="dffl")


def side_by_side(
    function: Callable[[S], T], items: Sequence[S], cores: int, meanwhile: Callable[[], None], stop: Callable[[], None]
) -> Iterator[T]:
    """``function`` of each item, in order, on ``cores`` cores; this thread is one of them.

    While it waits for one, it begins another, and calls ``meanwhile`` every `TICK` seconds or between two items. If it is
    interrupted or an item fails, it calls ``stop``, which must make the others end soon, and starts no further item.

    An item may use this function too: it then works with the helpers that are free, or alone.
    """
    if cores == 1 or len(items) < 2:
        yield from map(function, items)
        return
    begun: deque[tuple[S, Future[T]]] = deque((item, _helpers(cores).submit(function, item)) for item in items[1:])
    try:
        yield function(items[0])
        while begun:
            item, one = begun[0]
            if one.cancel():  # no helper has come to it yet
                begun.popleft()
                yield function(item)
                continue
            while not one.done():
                later = next((place for place in range(1, len(begun)) if begun[place][1].cancel()), None)
                if later is None:
                    wait([one], timeout=TICK)
                else:  # better than to wait
                    begun[later] = begun[later][0], _answered(function(begun[later][0]))
                meanwhile()
            yield begun.popleft()[1].result()  # an answer that was passed on is not kept
    finally:
        stop()
        # One that is cancelled is not waited for: this thread may be the helper that would come to it.
        wait([one for _, one in begun if not one.cancel()])


def _answered(answer: T) -> Future[T]:
    found: Future[T] = Future()
    found.set_result(answer)
    return found
