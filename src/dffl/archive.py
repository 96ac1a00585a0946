"""A file of named members. Reading it gives what was written, or one line that says what is wrong with the file.

It is a zip file whose comment is a digest of all bytes before it, the seal, so that every changed bit is noticed. Members
are not compressed, so no file unpacks to more than its own size. Files of version 0.1.0 have no seal and are compressed.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dffl.files import require_replaceable, require_target
from dffl.limits import Limits

SEAL = b"dffl-blake2b-"
WIDTH = len(SEAL) + 64
END, END_SIZE = b"PK\x05\x06", 22
LONG_END, LONG_END_SIZE = b"PK\x06\x06", 56 + 20
"""The last record of a zip file, and the two records before it in a file with many members."""
ENTRY_SIZE = 46
"""The smallest entry of the list of members, in bytes."""
SPARE, RATIO = 1 << 24, 20
"""The most bytes that a file without a seal may unpack to: a constant plus a multiple of its size."""


class Archive(NamedTuple):
    """The content of a file, and whether its digest was checked."""

    members: dict[str, bytes]
    sealed: bool


def write(path: Path, members: Mapping[str, bytes]) -> None:
    """Write members to a file, and seal it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = bytes(WIDTH)
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without a time: equal contents are equal files
    with path.open("r+b") as file:
        seal = _seal(file.read()[:-WIDTH])
        file.seek(-WIDTH, os.SEEK_END)
        file.write(seal)


def is_sealed(path: Path) -> bool:
    """Whether a file ends with a seal, as all files of `write` do. The seal is not checked."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(-min(WIDTH, file.tell()), os.SEEK_END)
        return file.read(len(SEAL)) == SEAL


def require_model_target(path: Path, name: str, inputs: Iterable[Path] = ()) -> None:
    """Refuse a target that cannot be written, see `require_target`, or a file that is not a model: it may be a table."""
    require_target(path, name, inputs)
    require_replaceable(path, name, "a model", is_sealed)


def read(path: Path, index: str, what: str, limits: Limits | None = None) -> Archive:
    """The members of a file. ``index`` is the member that describes it; messages call the file ``what``.

    ``limits`` bound the file of a stranger. The size of the index is always bounded.
    """
    try:
        size = path.stat().st_size
        if limits is not None:
            limits.check("bytes", size, "bytes")
            limits.check("parts", _listed(path, size), "parts")
        with zipfile.ZipFile(path) as archive:
            listed, names = archive.infolist(), archive.namelist()
            if index not in names:
                raise ValueError(f"a zip file, but not {what} (no {index})")
            sealed = _checked_seal(path, size)
            if len(set(names)) < len(names):
                raise ValueError("damaged, since it holds a member twice")
            if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in listed):
                raise ValueError("it is compressed in another way than files of dffl")
            if sum(entry.file_size for entry in listed) > (size if sealed else SPARE + RATIO * size):
                raise ValueError("it unpacks to far more than its size, as no file of dffl does")
            members = {entry.filename: _member(archive, entry) for entry in listed}
            if limits is not None:
                # Reading JSON takes up to some hundred bytes per value, and each value follows one of these characters.
                limits.check("values", sum(members[index].count(mark) for mark in (b",", b"[", b"{")), "values")
            return Archive(members, sealed)
    except ValueError:
        raise
    except Exception as error:  # zipfile passes on errors of many kinds, such as those of zlib
        raise ValueError(f"not {what}, or cut short ({in_one_line(error)})") from None


def in_one_line(error: Exception) -> str:
    """The text of an error in one line of bounded length."""
    # A stranger's file must not control the terminal through a message.
    text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in " ".join(str(error).split()))
    if isinstance(error, KeyError):
        text = f"incomplete, {text} is missing"
    elif not isinstance(error, ValueError | OSError | zipfile.BadZipFile):
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= 500 else f"{text[:500]} ..."


def _listed(path: Path, size: int) -> int:
    """The largest number of members for which the list of a zip file has room; reading needs memory for each of them."""
    with path.open("rb") as file:
        file.seek(max(0, size - END_SIZE - WIDTH - LONG_END_SIZE))
        end = file.read()
    place = end.rfind(END, max(0, len(end) - END_SIZE - WIDTH))
    if place < 0 or place + END_SIZE > len(end):
        raise zipfile.BadZipFile("File is not a zip file")
    (listed,) = struct.unpack_from("<I", end, place + 12)
    if end[place - LONG_END_SIZE :][:4] == LONG_END and place >= LONG_END_SIZE:  # the record of a long list
        (listed,) = struct.unpack_from("<Q", end, place - LONG_END_SIZE + 40)
    return int(listed // ENTRY_SIZE)


def _checked_seal(path: Path, size: int) -> bool:
    """Whether a file has a seal. A seal that does not match the content is refused."""
    digest, left = hashlib.blake2b(digest_size=32), size - WIDTH
    with path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        seal = file.read()
    if not seal.startswith(SEAL):
        return False
    if seal != SEAL + digest.hexdigest().encode():
        raise ValueError("damaged, since its digest is not that of its content; write or copy it again")
    return True


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        return file.read(entry.file_size + 1)  # read() would unpack everything, whatever size the list says


def _seal(content: bytes) -> bytes:
    return SEAL + hashlib.blake2b(content, digest_size=32).hexdigest().encode()


def packed(array: np.ndarray) -> bytes:
    """An array as a member."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpacked(content: bytes) -> np.ndarray:
    """The array of a member. An array that claims to be larger than its member is refused before memory is allocated."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array of an unknown format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} is not what its size says")
    stream.seek(0)
    return np.asarray(np.load(stream, allow_pickle=False))
