"""The trainings of a backtest so far, in one file: an interrupted backtest resumes to the same bits."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dffl.archive import in_one_line, packed, read, unpacked, write
from dffl.federation import Federation
from dffl.files import require_target, write_whole
from dffl.training.checkpoint import AS_LARGE_AS_IT_IS, EVERY, run_fingerprint
from dffl.training.settings import Settings

FORMAT = "dffl-backtest-1"


class Kept:
    """The predictions of every method at every finished origin."""

    def __init__(self, path: Path, belongs_to: str):
        self._path, self._belongs_to = path, belongs_to
        require_target(path, "checkpoint")
        self._tables: dict[str, np.ndarray] = self._read() if path.exists() else {}
        self._written = time.monotonic()

    @classmethod
    def of(cls, path: str | PathLike[str], federation: Federation, recipe: Any) -> Kept:
        """The file of a backtest of this federation with this recipe: values with a complete ``repr``."""
        data = run_fingerprint(federation, None, Settings())
        return cls(Path(path), hashlib.blake2b(f"{data} {recipe!r}".encode(), digest_size=16).hexdigest())

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tables:  # a backtest that ends early stores what it has
            self.close()

    def stored(self, origin: int, label: str, clients: int) -> list[np.ndarray] | None:
        """The predictions of a method at an origin, for each client; None if it was not trained there yet."""
        names = [_name(origin, label, place) for place in range(clients)]
        return [self._tables[name] for name in names] if all(name in self._tables for name in names) else None

    def keep(self, origin: int, label: str, tables: Sequence[np.ndarray]) -> None:
        """Store predictions; the file is written every few seconds."""
        self._tables |= {_name(origin, label, place): np.asarray(table) for place, table in enumerate(tables)}
        if time.monotonic() - self._written > EVERY:
            self.close()

    def close(self) -> None:
        """Write the file."""
        members = {"about.json": json.dumps({"format": FORMAT, "backtest": self._belongs_to}).encode()}
        members |= {name: packed(table) for name, table in self._tables.items()}
        write_whole(self._path, lambda where: write(where, members), mode=0o600)  # it may reveal data of clients
        self._written = time.monotonic()

    def remove(self) -> None:
        """The backtest is complete: delete the file."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, np.ndarray]:
        try:
            members, sealed = read(self._path, "about.json", "a checkpoint of a backtest", AS_LARGE_AS_IT_IS)
            about = json.loads(members.pop("about.json"))
            if not sealed or about["format"] != FORMAT:
                raise ValueError("it is not a complete checkpoint of a backtest")
            arrays = {name: unpacked(content) for name, content in members.items()}
            belongs_to = about["backtest"]
        except Exception as error:  # an edited file can cause any error
            fix = "name another file, or delete it to start again"
            raise ValueError(f"checkpoint: {self._path} cannot be read ({in_one_line(error)}); {fix}") from None
        if belongs_to != self._belongs_to:
            raise ValueError(f"checkpoint: {self._path} belongs to another backtest; delete it, or name another file")
        return arrays


def _name(origin: int, label: str, place: int) -> str:
    return json.dumps([origin, label, place])
