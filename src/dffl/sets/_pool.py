"""Solver processes of this process: shared by all sets, started when they are first needed, ended with this process.

They are started anew, never forked, because JAX has threads. A call's rows are divided over some of them and its answers are
put back in their order, so nothing depends on timing. A worker runs ``dffl.solving.worker``.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import spawn
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from dffl.cores import core_count
from dffl.solving.rows import RowError
from dffl.solving.worker import SolverRecipe, Solving, receive, send

BUILDING = 120.0
"""Seconds that a process gets to start and to build a solver, beside those of an answer: it may import PyTorch."""
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from dffl.solving.worker import main; main()"
_ENDED = ("ended", None)


class Job(NamedTuple):
    """A solver that workers can build."""

    name: str
    kind: str
    """Workers serve one kind only: libraries that cannot be in one process are of different kinds."""
    key: bytes
    recipe: SolverRecipe


def job(name: str, maker: Callable[[], Solving], kind: str = "", first: tuple[str, ...] = ()) -> Job:
    """A solver for workers, from a function without arguments that builds it there and that can be pickled."""
    try:
        content = pickle.dumps(maker)
    except Exception as error:  # anything can refuse to be pickled, in any way
        raise ValueError(unpicklable(name, error)) from None
    main = None
    if b"__main__" in content or b"__mp_main__" in content:  # the script, here or in a process that was itself started from it
        words = spawn.get_preparation_data(name)
        main = {key: value for key, value in words.items() if key.startswith("init_main")}
    return Job(name, kind, hashlib.blake2b(content, digest_size=16).digest(), SolverRecipe(first, main, content))


def unpicklable(name: str, error: Exception) -> str:
    """What a refusal says of a solver that cannot be sent."""
    fix = "define it at the top of a module, not as a lambda or inside a function"
    return f"solver {name!r}: it cannot be sent to another process; {fix} ({' '.join(str(error).split())})"


class _Died(Exception):
    """A worker ended, or was ended, instead of answering: how, and at which of its rows (None before the first)."""

    def __init__(self, how: str, row: int | None, by_itself: bool):
        super().__init__(how)
        self.how, self.row, self.by_itself = how, row, by_itself


class _Worker:
    """One process, and a thread that reads what it says."""

    def __init__(self, kind: str):
        self.kind = kind
        # A session of its own: Ctrl-C in a terminal does not reach it, not even before it can ignore that.
        # One thread each, unless the user says otherwise: there are as many workers as cores.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps([os.path.abspath(path) for path in sys.path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={"OMP_NUM_THREADS": "1"} | os.environ,
        )
        self._said: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True, name=f"dffl solver process {self.pid}").start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, job: Job, rows: np.ndarray) -> None:
        with suppress(OSError):  # one that is gone is noticed when its answer is awaited
            send(self._process.stdin, (job.key, rows))  # type: ignore[arg-type]

    def finish(self, job: Job, rows: np.ndarray, seconds: float) -> np.ndarray | RowError:
        """Its answers; each may take ``seconds``."""
        out = np.empty(rows.shape)
        done, limit = -1, BUILDING + seconds
        while done < len(rows):
            what, value = self._next(limit, None if done < 0 else done)
            if what == "who":
                with suppress(OSError):
                    send(self._process.stdin, job.recipe)  # type: ignore[arg-type]
            elif what == "ready":
                done, limit = 0, seconds
            elif what == "row":
                out[done] = value
                done += 1
            elif what == "unbuilt":
                raise ValueError(f"solver {job.name!r}: its process cannot build it: {value}")
            else:
                return value
        return out

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]

    def _next(self, limit: float, row: int | None) -> tuple[str, Any]:
        try:
            what, value = self._said.get(timeout=limit)
        except Empty:
            self.kill()
            raise _Died(f"gave no answer within {limit:g} seconds and was ended", row, by_itself=False) from None
        if (what, value) == _ENDED:
            code = self._process.wait()
            how = f"ended (exit code {code})" if code >= 0 else f"was killed by signal {-code}"
            raise _Died(f"{how}, as it did when it was tried before", row, by_itself=True)
        return what, value

    def _listen(self) -> None:
        pipe = self._process.stdout
        try:
            while True:
                self._said.put(receive(pipe))  # type: ignore[arg-type]
        except Exception:
            self._said.put(_ENDED)
            pipe.close()  # type: ignore[union-attr]


class Pool:
    """Workers, lent to one call at a time; at most as many work at once as there are cores."""

    def __init__(self, cores: int):
        self.cores = cores
        self._free = threading.Condition()
        self._busy: list[_Worker] = []
        self._idle: list[_Worker] = []
        atexit.register(self.close)

    def solve(self, job: Job, rows: np.ndarray, processes: int, seconds: float) -> np.ndarray:
        """One answer (d,) for each row (n, d), by at most ``processes`` workers; a `RowError` is of the first bad row."""
        workers = self._lease(job.kind, max(1, min(processes, len(rows))))
        places = np.array_split(np.arange(len(rows)), len(workers))
        answers: list[np.ndarray | RowError] = []
        try:
            for worker, some in zip(workers, places, strict=True):
                worker.begin(job, rows[some])
            for number, some in enumerate(places):
                answers.append(self._finished(workers, number, job, rows[some], int(some[0]), seconds))
        finally:
            # A call that ends early, by Ctrl-C say, leaves workers in the middle of theirs: nobody else may have those.
            for worker in workers[len(answers) :]:
                worker.kill()
            self._give_back(workers)
        for start, part in zip((int(some[0]) for some in places), answers, strict=True):
            if isinstance(part, RowError):
                raise part.shifted(start)
        return np.concatenate([part for part in answers if not isinstance(part, RowError)])

    def close(self) -> None:
        """End all workers."""
        with self._free:
            for worker in [*self._busy, *self._idle]:
                worker.kill()
            self._idle.clear()

    @property
    def pids(self) -> list[int]:
        """The processes, for tests and for the curious."""
        with self._free:
            return [worker.pid for worker in [*self._busy, *self._idle]]

    def _finished(
        self, workers: list[_Worker], number: int, job: Job, rows: np.ndarray, start: int, seconds: float
    ) -> np.ndarray | RowError:
        """A worker's answers. One that dies is replaced, and its rows are tried once more."""
        again = True
        while True:
            try:
                return workers[number].finish(job, rows, seconds)
            except _Died as died:
                if not (died.by_itself and again):
                    where = "before its first row" if died.row is None else f"row {start + died.row}"
                    raise ValueError(f"solver {job.name!r}: {where}: its process {died.how}") from None
            again = False
            workers[number] = self._replaced(workers[number])
            workers[number].begin(job, rows)

    def _lease(self, kind: str, wanted: int) -> list[_Worker]:
        """As many workers as there are free places, one at least."""
        with self._free:
            while len(self._busy) >= self.cores:
                self._free.wait(1.0)
            number = min(wanted, self.cores - len(self._busy))
            self._idle = [worker for worker in self._idle if worker.alive]
            known = [worker for worker in self._idle if worker.kind == kind][:number]
            self._idle = [worker for worker in self._idle if worker not in known]
            leased = [*known, *(_Worker(kind) for _ in range(number - len(known)))]
            self._busy += leased
            return leased

    def _replaced(self, old: _Worker) -> _Worker:
        old.kill()
        with self._free:
            self._busy.remove(old)
            new = _Worker(old.kind)
            self._busy.append(new)
            return new

    def _give_back(self, workers: Iterable[_Worker]) -> None:
        with self._free:
            for worker in workers:
                if worker in self._busy:
                    self._busy.remove(worker)
                if worker.alive:
                    self._idle.append(worker)
            self._free.notify_all()


_lock = threading.Lock()
_shared: dict[int, Pool] = {}
"""By the process that uses it: one that was forked from here must not speak with our workers."""


def shared() -> Pool:
    """The pool of this process."""
    with _lock:
        if os.getpid() not in _shared:
            _shared.clear()
            _shared[os.getpid()] = Pool(core_count())
        return _shared[os.getpid()]
