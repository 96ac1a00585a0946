"""Files that one process at a time can hold, for as long as it lives."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LOCK_SECONDS = 0.5
"""How long a lock is tried: somebody who looks whether it is held holds it for a moment."""


@contextmanager
def locked(path: Path, what: str, seconds: float = LOCK_SECONDS) -> Iterator[IO[str]]:
    """Hold a file that one process at a time can hold, as long as it lives."""
    file = path.open("a+")
    deadline = time.monotonic() + seconds
    while not _takes(file):
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


def is_held(path: Path) -> int | None:
    """The process that holds a file, if one does."""
    if not path.exists():
        return None
    with path.open("a+") as file:
        if _takes(file):
            return None
        file.seek(0)
        return int(file.read() or 0)


def _takes(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
