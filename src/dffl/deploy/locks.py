"""Lock files: one process at a time can own a lock, until it exits."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LOCK_SECONDS = 0.5
"""How long to try to get a lock: `lock_owner` takes it for a moment too."""


@contextmanager
def locked(path: Path, what: str, seconds: float = LOCK_SECONDS) -> Iterator[IO[str]]:
    """Own a lock file inside the block. If another process owns it, fail with the message ``what``."""
    file = path.open("a+")
    deadline = time.monotonic() + seconds
    while not _try_lock(file):
        if time.monotonic() > deadline:
            file.close()
            raise ValueError(f"{path.parent}: {what}")
        time.sleep(0.02)
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file
    finally:
        file.close()


def lock_owner(path: Path) -> int | None:
    """The id of the process that owns a lock, or None."""
    if not path.exists():
        return None
    with path.open("a+") as file:
        if _try_lock(file):
            return None
        file.seek(0)
        return int(file.read() or 0)


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
