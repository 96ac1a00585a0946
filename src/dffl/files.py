"""Files that are complete or absent: written next to their place, then moved into it. Inputs are never overwritten.

Every command calls `require_target` for the file that it will write, before it does any work. `write_whole` calls it again
at the end.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISLNK: "a symbolic link; name the file that it points to",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
}
"""The kinds of files that are not regular, in words."""


def require_target(path: Path, name: str, inputs: Iterable[Path] = ()) -> None:
    """Refuse a file that must not or cannot be written: one of the ``inputs``, or an existing file that is not regular.

    ``name`` is what the user calls it, such as ``--out``. An input is recognised by any spelling of its path, and through
    symbolic and hard links.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{name} must name a file in a folder that exists, found {str(path)!r}")
    if any(_same(path, read) for source in inputs for read in (source, *_beside(source))):
        raise ValueError(f"{name} must not be a file that this command reads, found {str(path)!r}; name another file")
    require_regular(path, name)


def require_replaceable(path: Path, name: str, kind: str, fits: Callable[[Path], bool]) -> None:
    """Refuse to replace a file that is not of a ``kind``: it may be an input that this command does not know. Empty is fine."""
    if path.is_file() and path.stat().st_size and not fits(path):
        raise ValueError(
            f"{name} must be a new file or {kind}, found {str(path)!r}, which is not; name another file, or remove it"
        )


def require_regular(path: Path, name: str = "the file to write") -> None:
    """Refuse a path at which there is something other than a regular file."""
    try:
        mode = path.lstat().st_mode
    except OSError:  # it does not exist yet
        return
    if not stat.S_ISREG(mode):
        kind = next((words for fits, words in KINDS.items() if fits(mode)), "a folder")
        raise ValueError(f"{name} must be a regular file or a new one, found {str(path)!r}, which is {kind}")


def special(path: Path) -> str | None:
    """What is at a path, in words, if it is neither a regular file nor a folder: reading it may never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # it does not exist, or no file can have this name
        return None
    return next((words for fits, words in KINDS.items() if fits(mode)), None)


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file. Anything else raises an OSError, like a missing file."""
    if what := special(path):
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file", str(path))
    return path.read_bytes()


def require_makeable(folder: Path) -> None:
    """Refuse a folder that does not exist and cannot be created: it, or a parent, is a file or a broken link."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if os.path.lexists(parent))
    if not there.is_dir():
        kind = "a symbolic link to nothing" if there.is_symlink() and not there.exists() else "a file"
        raise ValueError(f"{there}: is {kind}; choose an empty folder, or a new one")


def write_whole(path: Path, write: Callable[[Path], Any], mode: int | None = None) -> None:
    """Write next to ``path``, then move into place: the file is complete or absent.

    ``mode`` sets the permissions. Without it, a replaced file keeps its mode, and a new one gets the usual mode.
    """
    require_regular(path)
    with naming(path):
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            mode = _usual_mode(path, temporary) if mode is None else mode
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
    """Write a text file, completely or not at all."""
    write_whole(path, lambda where: where.write_text(text, encoding="utf-8", newline="\n"))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in system errors: a full disk names none, and the user does not know a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(f"{path}: cannot be written ({' '.join(str(error).split())})") from error
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def _beside(source: Path) -> list[Path]:
    """Where SQLite and DuckDB keep the last changes of a database, until they are in the file itself."""
    return [source.with_name(source.name + ending) for ending in ("-wal", "-shm", "-journal", ".wal")]


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or, if the file does not exist, one path."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return os.path.realpath(path) == os.path.realpath(other)


def _usual_mode(path: Path, temporary: Path) -> int:
    """The mode of a file: that of the existing file, or that of a new file, which can only be found by creating one."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    temporary.unlink()
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    os.close(handle)
    temporary.chmod(0o600)  # until the file is complete
    return mode


def _sync_folder(folder: Path) -> None:
    """Make a move permanent even if the power fails, on systems that can open a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
