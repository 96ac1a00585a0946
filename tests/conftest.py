"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_LIST = Path(__file__).with_name("slow.txt")
MAPS = Path("/proc/self/maps")
MANY_TESTS = 3000
"""So many are collected only where all are."""
MANY = 30_000
"""Linux gives a process 65,530 memory maps; each compiled program takes some, and past that XLA has a segmentation fault."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `slow.txt`, and refuse a line of it that means none."""
    lines = [line.strip() for line in SLOW_LIST.read_text(encoding="utf-8").splitlines()]
    listed = {line for line in lines if line and not line.startswith("#")}
    found, files = set(), set()
    for item in items:
        files.add(item.nodeid.partition("::")[0])
        for known in (item.nodeid, item.nodeid.partition("[")[0]):
            if known in listed:
                item.add_marker(pytest.mark.slow)
                found.add(known)
    # A file without any test was left out, as it needs a package that is not there.
    stale = sorted(line for line in listed - found if line.partition("::")[0] in files)
    if stale and len(items) > MANY_TESTS:
        raise pytest.UsageError(f"tests/slow.txt names tests that are not there: {', '.join(stale)}")


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Forget compiled programs once there are many: thousands of tests in one process compile more than Linux has room for."""
    yield
    _forget_programs()


@pytest.fixture(autouse=True)
def few_programs_of_slow_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Some of them compile more than a thousand programs each."""
    yield
    if request.node.get_closest_marker("slow"):
        _forget_programs()


def _forget_programs() -> None:
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY:
        import jax

        jax.clear_caches()


@pytest.fixture(scope="session", autouse=True)
def no_programs_on_disk() -> None:
    """A command that a test calls in this process would let JAX write every later program to disk, which takes time."""
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
