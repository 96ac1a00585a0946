"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

MAPS = Path("/proc/self/maps")
MANY = 20_000
"""Linux gives a process 65,530 memory maps; each compiled program takes some, and past that XLA has a segmentation fault."""


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Forget compiled programs once there are many: thousands of tests in one process compile more than Linux has room for."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY:
        import jax

        jax.clear_caches()
