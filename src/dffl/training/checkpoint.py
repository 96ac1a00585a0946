"""An interrupted run resumes where it was, to the same bits.

One file contains, for every training of the run, its result, or the state of the server after the last written round with
the state of the clients and the history. It is a sealed zip of plain arrays, written completely or not at all; nothing is
pickled.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dffl.archive import in_one_line, packed, read, unpacked, write
from dffl.federation import Client, Federation
from dffl.files import require_target, write_whole
from dffl.limits import Limits
from dffl.networks import draws, quiet
from dffl.parquet_federation import ParquetFederation
from dffl.training.history import DivergenceError
from dffl.training.settings import Settings

Arrays = dict[str, np.ndarray]
FORMAT, UNSEALED = "dffl-checkpoint-2", "dffl-checkpoint-1"
COMPUTES = "0.2.0"
"""The version of dffl that last changed what a training computes. Checkpoints of later versions resume to the same bits. Raise
it with every such change.
"""
AS_LARGE_AS_IT_IS = Limits(bytes=math.inf, parts=math.inf)
"""A checkpoint grows with its run; its description is small."""
EVERY = 5.0
"""Seconds between two writes of an unfinished training: the most that is lost when the process is killed."""


class Saved(NamedTuple):
    """One training: its state or result, the memory of the server, the state of clients, and the history."""

    done: bool
    state: Arrays
    memory: Arrays
    kept: dict[str, Arrays]
    history: Arrays


class Checkpoint:
    """The file of one run."""

    def __init__(self, path: str | PathLike[str], fingerprint: str):
        self._path, self._fingerprint = Path(path), fingerprint
        require_target(self._path, "checkpoint")
        self._jobs: dict[str, Saved] = self._read() if self._path.exists() else {}
        self._pending: Callable[[], None] | None = None
        self._written = time.monotonic()
        self._continued = False

    def saved(self, job: str, done: bool) -> Saved | None:
        """A training that is finished, or one that was interrupted."""
        job_state = self._jobs.get(job)
        if job_state is None or job_state.done != done:
            return None
        self._continued = True
        return job_state

    def explain(self, error: BaseException | None) -> None:
        """Name the file if a run that resumed from it fails: an edited file can cause any error.

        A training that diverges is reported without the file: it would diverge without it, too.
        """
        if self._continued and isinstance(error, Exception) and not isinstance(error, OSError | MemoryError | DivergenceError):
            fix = "if the file was edited, delete it to start again"
            raise ValueError(
                f"checkpoint: {self._path}: the run that it continues fails ({in_one_line(error)}); {fix}"
            ) from error

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._written > EVERY

    def reached(
        self, job: str, state: Mapping[str, Any], client_state: dict[str, Arrays], history: Callable[[], Arrays]
    ) -> None:
        """Store the state of a training. It is written every few seconds, and when the run ends early."""

        def keep() -> None:
            plain = {name: np.asarray(state[name]) for name in ("round", "shared")}
            self._jobs[job] = Saved(False, plain, dict(state["memory"]), client_state, history())
            self._write()

        self._pending = keep
        if self.due:
            self.close()

    def finish(self, job: str, result: Any, client_state: dict[str, Arrays], history: Arrays) -> None:
        """Store the result of a training."""
        leaves = {str(number): np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(result))}
        self._pending = None
        self._jobs[job] = Saved(True, leaves, {}, client_state, history)
        self._write()

    def close(self) -> None:
        """Write what has changed since the last write."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending()

    def remove(self) -> None:
        """The run is complete: delete the file."""
        self._pending = None
        self._path.unlink(missing_ok=True)

    def rebuilt(self, saved: Saved, blank: Any) -> Any:
        """A training's result in the form of ``blank``."""
        leaves, treedef = jax.tree.flatten(blank)
        if len(leaves) != len(saved.state) or any(np.shape(a) != saved.state[str(k)].shape for k, a in enumerate(leaves)):
            raise ValueError("its models have another form")
        return jax.tree.unflatten(treedef, [saved.state[str(number)] for number in range(len(leaves))])

    def _write(self) -> None:
        self._written = time.monotonic()
        about = {"format": FORMAT, "run": self._fingerprint, "done": {job: s.done for job, s in self._jobs.items()}}
        members = {"about.json": json.dumps(about).encode()}
        for number, saved in enumerate(self._jobs.values()):
            members |= {f"{number}/{json.dumps(name)}": packed(array) for name, array in _flat(saved).items()}
        write_whole(self._path, lambda where: write(where, members), mode=0o600)  # it may reveal training data

    def _read(self) -> dict[str, Saved]:
        try:
            members, sealed = read(self._path, "about.json", "a checkpoint", AS_LARGE_AS_IT_IS)
            about = json.loads(members.pop("about.json"))
            if about["format"] != (FORMAT if sealed else UNSEALED):
                raise ValueError(f"its format is {about['format']!r:.80}, with{'' if sealed else 'out'} a digest")
            arrays: dict[int, dict[tuple[str, ...], np.ndarray]] = {}
            for entry, content in members.items():
                number, _, name = entry.partition("/")
                arrays.setdefault(int(number), {})[tuple(json.loads(name))] = unpacked(content)
            jobs = {job: _deep(done, arrays.get(place, {})) for place, (job, done) in enumerate(about["done"].items())}
            run = about["run"]
        except Exception as error:  # an edited file can cause any error
            fix = "name another file, or delete it to start again"
            raise ValueError(f"checkpoint: {self._path} cannot be read as a checkpoint ({in_one_line(error)}); {fix}") from None
        if run != self._fingerprint:
            fix = "delete it, or name another file"
            raise ValueError(f"checkpoint: {self._path} belongs to a run with other data or settings; {fix}")
        return jobs


def _flat(saved: Saved) -> dict[tuple[str, ...], np.ndarray]:
    parts = ("state", "memory", "history")
    flat = {(part, name): value for part in parts for name, value in getattr(saved, part).items()}
    return flat | {("kept", client, name): value for client, arrays in saved.kept.items() for name, value in arrays.items()}


def _deep(done: bool, flat: dict[tuple[str, ...], np.ndarray]) -> Saved:
    saved = Saved(done, {}, {}, {}, {})
    for (where, *names), value in flat.items():
        if where == "kept":
            saved.kept.setdefault(names[0], {})[names[1]] = value
        else:
            getattr(saved, where)[names[0]] = value
    return saved


def computation(settings: Settings, features: int, dim: int) -> str:
    """The computation of a custom network, as JAX prints it: two networks of one function have the same name."""
    if settings.network is None:
        return ""
    network, x = settings.factory(jax.random.key(0), features, dim), np.zeros(features)
    arrays, rest = eqx.partition(quiet(network), eqx.is_array)
    traced = str(jax.make_jaxpr(lambda own, x: eqx.combine(own, rest)(x))(arrays, x))
    if draws(network, x):  # then training computes something else
        arrays, rest = eqx.partition(network, eqx.is_array)
        called: Any = lambda own, x, key: eqx.combine(own, rest)(x, key=key)  # noqa: E731
        traced += str(jax.make_jaxpr(called)(arrays, x, jax.random.key(0)))
    return re.sub(r"0x[0-9a-f]+", "", traced)


def run_fingerprint(federation: Federation | ParquetFederation, validation: Federation | None, settings: Settings) -> str:
    """The content of a run: its data, sets, settings and what they compute. Engines are left out, as they change no numbers."""
    computes = computation(settings, federation.features, federation.dim)
    words = settings.telling() | {"dffl": COMPUTES, "computes": computes}
    content = hashlib.blake2b(repr(words).encode(), digest_size=16)
    if isinstance(federation, ParquetFederation):
        content.update(federation.fingerprint().encode())
        return content.hexdigest()
    for client in [*federation, *(validation or [])]:
        _take_in(client, content)
    return content.hexdigest()


def data_fingerprint(client: Client) -> str:
    """A client's data: its samples, its set and its sense."""
    content = hashlib.blake2b(digest_size=16)
    _take_in(client, content)
    return content.hexdigest()


def _take_in(client: Client, content: hashlib.blake2b) -> None:
    content.update(f"{client.name} {client.maximize} {client.x.shape} {client.c.shape} {type(client.set)}".encode())
    for name, value in [("x", client.x), ("c", client.c), *client.set.spec().items()]:
        array = np.ascontiguousarray(value)  # for an object such as None it is the address, which differs by process
        content.update(repr(value).encode() if array.dtype == object else array.tobytes())
        if client.set.on_host:  # it leaves out missing arguments: rows with <= and with = would have the same bytes
            content.update(f"{name} {array.shape}".encode())
    if client.item_features or client.forecast is not None:  # the same columns of x may be features of the rows
        content.update(f"{client.item_features} {client.forecast is not None}".encode())
    for rule, values in (("keys", client.keys), ("times", client.times)):
        if values is not None:
            content.update(rule.encode() + values.tobytes())
