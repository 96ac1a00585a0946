"""What a solver's process does: it builds solvers that it is sent, and answers rows of costs, until its parent is gone.

Messages are pickles with their length in front, on standard input and output. The parent is ``dffl.sets._pool``.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing import spawn
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from dffl.solving.rows import RowError, in_one_line

MOST = 64
"""Solvers that one process keeps; the one that was asked longest ago is built again when it is needed."""
_LENGTH = struct.Struct("<Q")

Solving = Callable[[np.ndarray], Iterator[np.ndarray]]
"""What a maker builds: one answer (d,) for each row of costs (n, d), each as soon as it is there."""


class SolverRecipe(NamedTuple):
    """How to build a solver in another process."""

    first: tuple[str, ...]
    """Modules to import before all others."""
    main: dict[str, Any] | None
    """How to import the script of the parent, where the maker needs it."""
    maker: bytes
    """A pickled function without arguments that builds a `Solving`."""


def send(pipe: BinaryIO, message: Any) -> None:
    """Write one message."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)) + content)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message; `EOFError` where the other side is gone."""
    head = _exactly(pipe, _LENGTH.size)
    return pickle.loads(_exactly(pipe, _LENGTH.unpack(head)[0]))


def _exactly(pipe: BinaryIO, size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content


def main() -> None:
    """Serve the parent until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides
    # Solvers print: what they print must not stand between messages.
    orders, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders, waiting), daemon=True).start()
    _serve(waiting, replies)


def _listen(orders: BinaryIO, waiting: SimpleQueue[Any]) -> None:
    """Pass messages on. When the parent is gone, end at once, also while a solver runs: its answer is for nobody."""
    try:
        while True:
            waiting.put(receive(orders))
    except BaseException:
        os._exit(0)


def _serve(waiting: SimpleQueue[Any], replies: BinaryIO) -> None:
    built: OrderedDict[bytes, Solving] = OrderedDict()
    while True:
        key, rows = waiting.get()
        if key not in built:
            send(replies, ("who", None))
            recipe = waiting.get()
            try:
                built[key] = _build(recipe)
            except (Exception, SystemExit) as error:
                send(replies, ("unbuilt", in_one_line(error)))
                continue
            while len(built) > MOST:
                built.popitem(last=False)
        built.move_to_end(key)
        send(replies, ("ready", None))
        try:
            for answer in built[key](rows):
                send(replies, ("row", answer))
        except RowError as error:
            send(replies, ("error", error))
        except (Exception, SystemExit) as error:
            send(replies, ("error", RowError(0, in_one_line(error), len(rows) - 1)))


def _build(recipe: SolverRecipe) -> Solving:
    for name in recipe.first:
        import_module(name)
    if recipe.main is not None and sys.modules["__main__"].__name__ != "__mp_main__":  # that is the script, once imported
        spawn.prepare(recipe.main)
    return pickle.loads(recipe.maker)()
