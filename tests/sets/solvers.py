"""Functions that minimise, well or badly; solver processes import them, so this file needs NumPy alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

D = 4
MARK = 100.0
"""A first cost above it makes the bad ones bad."""


def cheapest(c: np.ndarray) -> np.ndarray:
    """The vertex of the simplex."""
    return (np.arange(len(c)) == np.argmin(c)).astype(float)


def all_cheapest(c: np.ndarray) -> np.ndarray:
    return np.array([cheapest(row) for row in c])


def exits(c: np.ndarray) -> np.ndarray:
    if c[0] > MARK:
        os._exit(7)
    return cheapest(c)


def exits_or_is_slow(c: np.ndarray) -> np.ndarray:
    if c[0] > MARK:
        os._exit(7)
    time.sleep(0.3)
    return cheapest(c)


def hangs(c: np.ndarray) -> np.ndarray:
    if c[0] > MARK:
        time.sleep(600)
    return cheapest(c)


def prints(c: np.ndarray) -> np.ndarray:
    """Writes where the worker's messages would go."""
    os.write(1, b"a solver's banner\n")
    print("and more")
    return cheapest(c)


def tells(c: np.ndarray) -> np.ndarray:
    """The number of its process; other processes are slow, so that several must have answered."""
    time.sleep(0.05)
    return np.full(D, float(os.getpid()))


def raises(c: np.ndarray) -> np.ndarray:
    if c[0] > MARK:
        raise RuntimeError("no\nsuch plan")
    return cheapest(c)


class DiesOnce:
    """Ends its process at its first marked row, whichever process that is."""

    def __init__(self, path: Path):
        self.path = path

    def __call__(self, c: np.ndarray) -> np.ndarray:
        if c[0] > MARK and not self.path.exists():
            self.path.touch()
            os._exit(9)
        return cheapest(c)


class FailsAfter:
    """Raises when it was asked so often, in this process."""

    def __init__(self, calls: int):
        self.left = calls

    def __call__(self, c: np.ndarray) -> np.ndarray:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("licence\nlost")
        return cheapest(c)


class Unbuildable:
    """Can be sent, but not received."""

    def __call__(self, c: np.ndarray) -> np.ndarray:
        return cheapest(c)

    def __setstate__(self, state: object) -> None:
        raise OSError("no licence here")

    def __getstate__(self) -> object:
        return {"some": "state"}
