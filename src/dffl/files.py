"""Files that are complete or not there: written beside their place, then moved into it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_whole(path: Path, write: Callable[[Path], Any], mode: int = 0o644) -> None:
    """Write beside ``path``, then move into place: the file is complete or it is not there."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda where: where.write_text(text, encoding="utf-8", newline="\n"))


def _sync_folder(folder: Path) -> None:
    """Let a power cut not undo a move, on systems that can open a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
