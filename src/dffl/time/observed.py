"""`Observed`: the realised rows of one client since a model was made, as a value and as a separate file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dffl.archive import in_one_line, is_sealed, packed, read, unpacked, write
from dffl.files import write_whole
from dffl.limits import Limits
from dffl.time.ahead import TimedRows

FORMAT = "dffl-observed-1"
TABLES = ("times", "x", "c")


@dataclass(frozen=True, eq=False)
class Observed:
    """The realised rows of one client since a model was made, as returned by `Chosen.observe`: a state next to the model."""

    client: str
    rows: TimedRows
    """The rows after those of the model."""
    regret: float
    """Their relative regret, each decided with what was known before it."""
    inside: float
    """The share of their costs inside the ranges stated before."""
    model: str
    """A digest of everything that the client's decisions depend on: another model refuses this state."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to one file, completely or not at all."""
        about: dict[str, Any] = {"format": FORMAT, "client": self.client, "model": self.model}
        about |= {
            name: None if np.isnan(value) else value for name, value in (("regret", self.regret), ("inside", self.inside))
        }
        members = {"observed.json": json.dumps(about).encode()}
        members |= {f"{name}.npy": packed(getattr(self.rows, name)) for name in TABLES}
        write_whole(Path(path), lambda where: write(where, members), mode=0o600)  # it contains rows

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Observed:
        """The inverse of `save`."""
        source = Path(path)
        try:
            members, sealed = read(source, "observed.json", "a state of dffl score", Limits())
            about = json.loads(members["observed.json"])
            if not sealed or about["format"] != FORMAT or not all(isinstance(about[name], str) for name in ("client", "model")):
                raise ValueError("it is not a complete state of dffl score")
            rows = TimedRows(*(unpacked(members[f"{name}.npy"]) for name in TABLES))
            _require_sound(rows)
            known = {name: float("nan") if about[name] is None else float(about[name]) for name in ("regret", "inside")}
        except Exception as error:  # an edited file can cause any error
            fix = "name the file that dffl score wrote, or a new one"
            raise ValueError(f"{source}: cannot be read as a state ({in_one_line(error)}); {fix}") from None
        return cls(about["client"], rows, **known, model=about["model"])

    def require_of(self, client: str, model: str) -> None:
        """Refuse the state of another client or of another model."""
        if self.client != client:
            raise ValueError(f"client {client!r}: what was observed is of client {self.client!r:.80}")
        if self.model != model:
            fix = "begin a new state for each model and client, in a file of its own"
            raise ValueError(f"client {client!r}: what was observed belongs to another model; {fix}")


def is_state(path: Path) -> bool:
    """Whether a file is a state that `Observed.save` wrote, by its seal and its members."""
    try:
        return is_sealed(path) and "observed.json" in read(path, "observed.json", "a state", Limits()).members
    except (ValueError, OSError):
        return False


def digest_of(*values: Any) -> str:
    """A digest of plain values and of the arrays of pytrees, such as predictors."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(values):
        is_array = hasattr(leaf, "dtype")
        digest.update(f"{leaf.shape} {leaf.dtype}".encode() if is_array else repr(leaf).encode())
        digest.update(np.ascontiguousarray(leaf).tobytes() if is_array else b";")
    return digest.hexdigest()


def _require_sound(rows: TimedRows) -> None:
    shapes = (rows.times.ndim, rows.x.ndim, rows.c.ndim)
    if shapes != (1, 2, 2) or not len(rows.times) == len(rows.x) == len(rows.c):
        raise ValueError("its tables must have one row for each moment")
    if not all(table.dtype == np.float64 and np.isfinite(table).all() for table in (rows.times, rows.x, rows.c)):
        raise ValueError("its tables must be finite numbers")
    if not np.all(np.diff(rows.times) > 0):
        raise ValueError("its rows must be in ascending order")
