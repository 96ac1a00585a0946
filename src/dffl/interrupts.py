"""Ctrl-C that always ends a command, with one exit code, whatever runs at that moment.

Python turns SIGINT into a `KeyboardInterrupt` at the next instruction. That is not enough here: raised while a compiled module
is being imported it is lost or aborts the process, and raised inside a callback of a compiled program it turns into another
error, or is lost too. So the interrupt waits while an import is under way, and it is remembered.

The next instruction of the main thread may be minutes away, while a compiled program waits for solvers in other threads. So
these are told by `noticed`, which needs no instruction of the main thread.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
WAIT = 0.05
"""Seconds between tries while an import is under way."""
IMPORTING = "<frozen importlib._bootstrap>"


class Interrupted:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def __bool__(self) -> bool:
        return self.pressed

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        while frame is not None:
            if frame.f_code.co_filename == IMPORTING:
                signal.setitimer(signal.ITIMER_REAL, WAIT)
                return
            frame = frame.f_back
        raise KeyboardInterrupt


_under_way: list[Interrupted] = []


@contextmanager
def interruptible() -> Iterator[Interrupted]:
    """Handle Ctrl-C as described above until the block ends; elsewhere than in the main thread, change nothing.

    Inside another such block, this is the same one.
    """
    if _under_way:
        yield _under_way[0]
        return
    state = Interrupted()
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler and hasattr(signal, "setitimer")
    if not ours or threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = {number: signal.signal(number, state._raise) for number in (signal.SIGINT, signal.SIGALRM)}
    _under_way.append(state)
    try:
        yield state
    finally:
        _under_way.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


class Stop:
    """Whether Ctrl-C has been pressed, for work in other threads. Python writes the numbers of signals to it as they come."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        for end in (self._reading, self.writing):
            os.set_blocking(end, False)
        self._lock, self._pressed, self._open = threading.Lock(), False, True

    def __bool__(self) -> bool:
        with self._lock:
            if self._open and not self._pressed:
                with suppress(BlockingIOError):
                    self._pressed = signal.SIGINT in os.read(self._reading, 64)
            return self._pressed

    def press(self) -> None:
        """The same by hand."""
        with self._lock:
            self._pressed = True

    def close(self) -> None:
        """Nothing comes any more; what it says stays."""
        with self._lock:
            self._open = False
            os.close(self._reading)
            os.close(self.writing)


_stops: list[Stop] = []
"""That of the block that is under way."""
_unused: list[Stop] = []
"""Those of earlier blocks in which nothing was pressed."""


_carried = threading.local()


def stop() -> Stop | None:
    """What tells long work that it has to end, inside a block of `noticed`."""
    carried: Stop | None = getattr(_carried, "stop", None)
    if carried is not None:
        return carried
    return _stops[0] if _stops else None


def carrying(work: Callable[[T], U]) -> Callable[[T], U]:
    """The function for another thread, where the block that is under way now tells it to end, even after that has ended."""
    told = stop()

    def run(value: T) -> U:
        _carried.stop = told
        try:
            return work(value)
        finally:
            _carried.stop = None

    return run


@contextmanager
def noticed() -> Iterator[None]:
    """Around what waits for other threads: they can see by `stop` that Ctrl-C is pressed, while the main thread waits.

    It changes nothing elsewhere than in the main thread, where somebody else handles Ctrl-C, and inside another such block.
    """
    ours = threading.current_thread() is threading.main_thread() and _raises(signal.getsignal(signal.SIGINT))
    if _stops or not ours:
        yield
        return
    mine = _unused.pop() if _unused else Stop()
    before = signal.set_wakeup_fd(mine.writing, warn_on_full_buffer=False)
    if before != -1:  # of an event loop, for example
        signal.set_wakeup_fd(before)
        _unused.append(mine)
        yield
        return
    _stops.append(mine)
    try:
        yield
    except KeyboardInterrupt:
        mine.press()
        raise
    finally:
        signal.set_wakeup_fd(-1)
        _stops.clear()
        if mine:
            mine.close()
        else:
            _unused.append(mine)


def _raises(handler: object) -> bool:
    """Whether this handler of Ctrl-C ends what is under way."""
    return handler is signal.default_int_handler or isinstance(getattr(handler, "__self__", None), Interrupted)
