"""How an error of a host model leaves a compiled program: as one line, not as a traceback of JAX.

An exception inside a callback reaches the caller as ``JaxRuntimeError``, or from a program's second call on as ``ValueError``,
with a printed traceback as its text. So the exception is noted here under a number, and the number is part of what JAX carries;
whoever waits for a program looks it up again.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

MOST = 256
"""Errors that are remembered: one for each program that fails at the same time is enough."""
_noted: OrderedDict[int, tuple[BaseException, bytes]] = OrderedDict()
_numbers = count(1)
_MARK = re.compile(r"\[error (\d+) of a host model\]")


class HostFailure(ValueError):
    """What a host model could not do, in one line."""

    digest: bytes = b""
    """The fingerprint of the set, by which its client is found."""
    named: bool = False
    """Whether the line names the client already."""


class _Passing(Exception):
    """What JAX carries."""


def passed_out(error: BaseException, digest: bytes) -> Exception:
    """What to raise inside a callback in place of ``error``, which a model raised whose set has this fingerprint."""
    number = next(_numbers)
    _noted[number] = _alone(error), digest
    while len(_noted) > MOST:
        _noted.popitem(last=False)
    return _Passing(f"{_line(error)} [error {number} of a host model]")


@contextmanager
def host_errors(clients: Iterable[tuple[str, Any]] = ()) -> Iterator[None]:
    """Around what waits for programs: errors of host models come out as themselves, with the clients whose set it was.

    ``clients`` are names and single sets; they are looked at after an error only.
    """
    try:
        yield
    except HostFailure as error:
        if error.named:
            raise
        raise _told(error, error.digest, clients) from None
    except (RuntimeError, ValueError) as error:
        found = _MARK.search(str(error))
        noted = _noted.pop(int(found[1]), None) if found else None
        if noted is None:
            raise
        raise _told(*noted, clients) from None


def _alone(error: BaseException) -> BaseException:
    """The error without its tracebacks, whose frames would keep models alive."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    return RuntimeError(_line(error)) if isinstance(error, RuntimeError) else HostFailure(_line(error))


def _told(error: BaseException, digest: bytes, clients: Iterable[tuple[str, Any]]) -> BaseException:
    if not isinstance(error, HostFailure):
        return error
    owners = [name for name, s in clients if hasattr(s, "digest") and s.digest.tobytes() == digest]
    told = HostFailure(f"{_whose(owners)}: {error}" if owners else str(error))
    told.digest, told.named = digest, bool(owners)
    return told


def _line(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, ValueError | RuntimeError) and words else f"{type(error).__name__}: {words}"


def _whose(owners: list[str], most: int = 3) -> str:
    if len(owners) == 1:
        return f"client {owners[0]!r}"
    shown = ", ".join(repr(name) for name in owners[:most])
    return f"one of the clients {shown}{f' and {len(owners) - most} more' if len(owners) > most else ''}, which share a set"


class _Unlogged(logging.Filter):
    """JAX logs the traceback of every exception in a callback; of ours, the caller gets the line itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], _Passing))


logging.getLogger("jax._src.callback").addFilter(_Unlogged())
