"""The cores that this process may use, and work that runs on them in parallel.

XLA runs a small program on one core, so different programs run in parallel threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TypeVar


def core_count() -> int:
    """The number of cores. A worker of a study has one, as XLA's flags show."""
    if "intra_op_parallelism_threads=1" in os.environ.get("XLA_FLAGS", "").split():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


S = TypeVar("S")
T = TypeVar("T")
TICK = 0.2
"""Seconds between two checks of the running work."""


@lru_cache(maxsize=1)
def _helpers(cores: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores - 1, thread_name_prefix="dffl")


def side_by_side(
    function: Callable[[S], T], items: Sequence[S], cores: int, meanwhile: Callable[[], None], stop: Callable[[], None]
) -> Iterator[T]:
    """``function`` of each item, in order, on ``cores`` cores; this thread is one of them.

    While it waits, it calls ``meanwhile`` every `TICK` seconds. If it is interrupted or an item fails, it calls ``stop``,
    which must make the others end soon, and starts no further item.
    """
    if cores == 1 or len(items) < 2:
        yield from map(function, items)
        return
    begun: deque[Future[T]] = deque(_helpers(cores).submit(function, item) for item in items[1:])
    try:
        yield function(items[0])
        for item in items[1:]:
            process = begun[0]
            if process.cancel():  # no thread has started it yet
                begun.popleft()
                yield function(item)
                continue
            while not process.done():
                wait([process], timeout=TICK)
                meanwhile()
            yield begun.popleft().result()  # a result that was passed on is not kept
    finally:
        stop()
        for process in begun:
            process.cancel()
        wait(begun)
