"""How an error of a host model leaves a compiled program: as one line, not as a traceback of JAX.

An exception inside a callback reaches the caller as ``JaxRuntimeError``, or from a program's second call on as ``ValueError``,
with a printed traceback as its text. So the exception is noted here under a number, and the number is part of what JAX carries;
whoever waits for a program looks it up again.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from dffl.interrupts import noticed
from dffl.solving.rows import RowError

MOST = 256
"""Errors that are remembered: one for each program that fails at the same time is enough."""
_noted: OrderedDict[int, tuple[BaseException, bytes]] = OrderedDict()
Whose = Iterable[tuple[str, Any] | tuple[str, Any, np.ndarray]]
"""Clients as names and single sets; and the costs of their samples, where these are what is asked for."""
_numbers = count(1)
_MARK = re.compile(r"\[error (\d+) of a host model\]")


class HostFailure(ValueError):
    """What a host model could not do, in one line."""

    digest: bytes = b""
    """The fingerprint of the set, by which its client is found."""
    costs: np.ndarray | None = None
    """The costs at which it failed, where they are known."""
    without_row: str = ""
    """What is said where the sample is known, which says more than a row of a call."""
    named: bool = False
    """Whether the line names the client already."""


class RowFailure(ValueError):
    """What a model could not do at one row of the costs that it was asked for."""

    def __init__(self, who: str, error: RowError):
        super().__init__(f"{who}: {error}")
        self.who, self.error = who, error

    def placed(self, places: Sequence[int] | np.ndarray) -> RowFailure:
        """The same where the rows were some of others, at these places."""
        last = None if self.error.last is None else int(places[self.error.last])
        return RowFailure(self.who, RowError(int(places[self.error.row]), self.error.words, last))


class _Passing(Exception):
    """What JAX carries."""


def passed_out(error: BaseException, digest: bytes, rows: np.ndarray) -> Exception:
    """What to raise inside a callback in place of ``error``, which a model raised whose set has this fingerprint."""
    number = next(_numbers)
    alone = _alone(error)
    if isinstance(alone, HostFailure) and isinstance(error, RowFailure):
        alone.costs, alone.without_row = rows[error.error.row].copy(), f"{error.who}: {error.error.words}"
    _noted[number] = alone, digest
    while len(_noted) > MOST:
        _noted.popitem(last=False)
    return _Passing(f"{_line(error)} [error {number} of a host model]")


@contextmanager
def host_errors(clients: Whose = ()) -> Iterator[None]:
    """Around what waits for programs: errors of host models come out as themselves, with the clients whose set it was.

    ``clients`` are looked at after an error only.
    """
    try:
        with noticed():
            yield
    except HostFailure as error:
        if error.named:
            raise
        raise _told(error, error.digest, clients) from None
    except (RuntimeError, ValueError) as error:
        mark = _MARK.search(str(error))
        noted = _noted.pop(int(mark[1]), None) if mark else None
        if noted is None:
            raise
        raise _told(*noted, clients) from None


def _alone(error: BaseException) -> BaseException:
    """The error without its tracebacks, whose frames would keep models alive."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    return RuntimeError(_line(error)) if isinstance(error, RuntimeError) else HostFailure(_line(error))


def _told(error: BaseException, digest: bytes, clients: Whose) -> BaseException:
    if not isinstance(error, HostFailure):
        return error
    mine = [
        client for client in clients if getattr(client[1], "digest", None) is not None and client[1].digest.tobytes() == digest
    ]
    samples = [(client[0], _sample(error.costs, client[2])) for client in mine if len(client) == 3]
    known = [f"client {name!r}, sample {sample}" for name, sample in samples if sample is not None]
    if known:
        told = HostFailure(f"{known[0]}: {error.without_row}")
    else:
        told = HostFailure(f"{_whose([client[0] for client in mine])}: {error}" if mine else str(error))
    told.digest, told.named, told.costs, told.without_row = digest, bool(mine), error.costs, error.without_row
    return told


def _sample(costs: np.ndarray | None, table: np.ndarray) -> int | None:
    """The first sample that has these costs."""
    if costs is None or costs.shape != table.shape[1:]:
        return None
    places = np.flatnonzero((table == costs).all(axis=1))
    return int(places[0]) if places.size else None


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
