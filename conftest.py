"""What all tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_LIST = Path(__file__).parent / "tests" / "slow.txt"
MANY_TESTS = 3000
"""This many are collected only where all are."""


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


@pytest.fixture(scope="session", autouse=True)
def shared_programs() -> None:
    """Keep what takes long to compile in a folder that all workers and later runs share.

    The folder is not the user's: what a test compiles must not speed up, or break, a command.
    """
    import jax

    from dffl.cache import user_cache

    jax.config.update("jax_compilation_cache_dir", str(user_cache() / "test-programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
