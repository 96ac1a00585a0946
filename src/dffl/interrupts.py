"""Ctrl-C that always ends a command, with one exit code, whatever runs at that moment.

Python turns SIGINT into a `KeyboardInterrupt` at the next instruction. That is not enough here: raised while a compiled module
is being imported it is lost or aborts the process, and raised inside a callback of a compiled program it turns into another
error, or is lost too. So the interrupt waits while an import is under way, and it is remembered.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
