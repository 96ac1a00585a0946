"""Ctrl-C always ends a command, with one exit code, whatever the command is doing.

Python turns SIGINT into a `KeyboardInterrupt` at the next instruction. This is not enough here. During the import of a
compiled module it is lost or aborts the process; in a callback of a compiled program it is lost or becomes another error. So
the interrupt is remembered, and waits until an import has ended.

The next instruction of the main thread may be minutes away, while a compiled program waits for solvers in other threads. So
these threads ask `noticed`, which needs no instruction of the main thread.
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
"""Seconds between attempts during an import."""
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
    """Handle Ctrl-C as described above until the block ends. Outside the main thread, nothing changes.

    A block inside another one shares its state.
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
    """Whether Ctrl-C has been pressed, for work in other threads. Python writes the numbers of signals to it on arrival."""

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
        """Set it without a signal."""
        with self._lock:
            self._pressed = True

    def close(self) -> None:
        """No more signals arrive; its state is kept."""
        with self._lock:
            self._open = False
            os.close(self._reading)
            os.close(self.writing)


_stops: list[Stop] = []
"""The pipe of the current block."""
_unused: list[Stop] = []
"""The pipes of earlier blocks in which Ctrl-C was not pressed."""


_carried = threading.local()


def stop() -> Stop | None:
    """A function that tells long work whether it has to stop, in a block of `noticed`."""
    carried: Stop | None = getattr(_carried, "stop", None)
    if carried is not None:
        return carried
    return _stops[0] if _stops else None


def carrying(work: Callable[[T], U]) -> Callable[[T], U]:
    """A function for another thread that returns whether the current block was told to stop, also after its end."""
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
    """A block in which the main thread waits for other threads. They can ask ``stop`` whether Ctrl-C was pressed.

    It changes nothing outside the main thread, if another handler of Ctrl-C is installed, or inside another such block.
    """
    ours = threading.current_thread() is threading.main_thread() and _raises(signal.getsignal(signal.SIGINT))
    if _stops or not ours:
        yield
        return
    mine = _unused.pop() if _unused else Stop()
    before = signal.set_wakeup_fd(mine.writing, warn_on_full_buffer=False)
    if before != -1:  # such as the handler of an event loop
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
    """Whether this handler of Ctrl-C ends the running work."""
    return handler is signal.default_int_handler or isinstance(getattr(handler, "__self__", None), Interrupted)
