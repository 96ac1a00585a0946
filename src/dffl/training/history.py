"""What was seen in training, round by round and client by client; and the watch for divergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.training.update import Diagnostics


class DivergenceError(RuntimeError):
    """Training left the numbers: a loss or a model is no longer finite."""


class _Entry(NamedTuple):
    job: str
    round: int
    members: np.ndarray
    seen: Diagnostics


class History:
    """Rows of (job, round, client, loss, clipped, norm).

    Results are looked at some rounds after they were asked for, so that the device never waits for the host.
    """

    LAG = 8

    def __init__(self, names: list[str]):
        self.names = names
        self._entries: list[_Entry] = []
        self._checked = 0

    def add(self, job: str, round: int, members: np.ndarray, seen: Diagnostics) -> None:
        """Note what a chunk's clients saw in one round."""
        self._entries.append(_Entry(job, round, members, seen))
        while self._checked < len(self._entries) - self.LAG:
            self._check()

    def flush(self) -> None:
        """Look at everything that has not been looked at."""
        while self._checked < len(self._entries):
            self._check()

    def _check(self) -> None:
        entry = self._entries[self._checked]
        real = len(entry.members)
        seen = Diagnostics(*(np.asarray(value)[:real] for value in entry.seen))
        if not np.isfinite(seen.loss).all():
            member = entry.members[~np.isfinite(seen.loss)][0]
            raise DivergenceError(
                f"client {self.names[member]!r}: training ({entry.job}) diverged in round {entry.round}; try a smaller "
                "learning_rate, or check this client's costs for values far out of scale"
            )
        self._entries[self._checked] = entry._replace(seen=seen)
        self._checked += 1

    def frame(self, only: Sequence[str] = ()) -> pd.DataFrame:
        """The rows of these jobs, or all rows, as a table."""
        self.flush()
        entries = [entry for entry in self._entries if not only or entry.job in only]
        columns: dict[str, list[np.ndarray]] = {k: [] for k in ("job", "round", "client", "loss", "clipped", "norm")}
        names = np.array(self.names, dtype=object)
        for job, round, members, seen in entries:
            columns["job"].append(np.full(len(members), job, dtype=object))
            columns["round"].append(np.full(len(members), round))
            columns["client"].append(names[members])
            for name, values in seen._asdict().items():
                columns[name].append(values)
        if not entries:
            return pd.DataFrame({k: pd.Series(dtype=float) for k in columns})
        return pd.DataFrame({k: np.concatenate(v) for k, v in columns.items()})
