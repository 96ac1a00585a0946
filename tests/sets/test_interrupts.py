"""Ctrl-C ends the solves of HiGHS that are under way, wherever the main thread waits for them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from dffl import interrupts
from dffl.sets import MixedInteger

HARD = np.random.default_rng(0).integers(0, 100, size=(6, 60)).astype(float)
SECONDS = 30.0


def costs(count: int) -> np.ndarray:
    return -HARD.mean(axis=0) - np.random.default_rng(1).normal(size=(count, 60))


@pytest.fixture(scope="module")
def hard() -> MixedInteger:
    s = MixedInteger(HARD, HARD.sum(axis=1) / 2, lower=0, upper=np.ones(60), seconds=SECONDS)
    with pytest.raises(ValueError, match="finite"):
        s.decide(np.full((1, 60), np.nan))
    return s


@pytest.mark.parametrize(
    "ask",
    [lambda s: s.decide(costs(1)), lambda s: s.decide(costs(3)), lambda s: s.solve(costs(1)), lambda s: s.solve(costs(3))],
    ids=["one row", "rows", "one row in a program", "rows in a program"],
)
def test_ctrl_c_ends_hard_solves_at_once(hard: MixedInteger, ask: Callable[[MixedInteger], object]) -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ask(hard)
    assert interrupts.stop() is None
    easy = MixedInteger(HARD[:1, :3], HARD[:1, :3].sum(axis=1) / 2, lower=0, upper=np.ones(3))
    easy.decide(np.ones((8, 3)))  # the next solves are not interrupted, and all threads are free for them
    assert time.monotonic() - pressed[0] < 10  # on a machine with other work


def test_it_is_seen_while_the_main_thread_waits() -> None:
    told: list[interrupts.Stop | None] = []

    def pressed() -> None:
        with interrupts.noticed():
            told.append(interrupts.stop())
            assert told[0] is not None
            assert not told[0]
            with interrupts.noticed():  # inside another one: the same
                assert interrupts.stop() is told[0]
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        pressed()
    assert told[0]
    assert interrupts.stop() is None


def test_somebody_elses_handler_is_left_alone() -> None:
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with interrupts.noticed():
            assert interrupts.stop() is None
    finally:
        signal.signal(signal.SIGINT, handler)
