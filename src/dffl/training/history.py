"""The history of training by round and client, and the check for divergence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.training.engines.base import Note
from dffl.training.update import Diagnostics

HISTORY_COLUMNS = ("job", "round", "client", "loss", "clipped", "norm")


class DivergenceError(RuntimeError):
    """A loss or a model is not finite."""


class _Entry(NamedTuple):
    job: str
    label: str
    round: int
    members: np.ndarray
    seen: Diagnostics

    @property
    def title(self) -> str:
        return f"{self.job}/{self.label}" if self.label else self.job


class History:
    """Rows of (job, round, client, loss, clipped, norm).

    Results are checked some rounds later, so that the device never waits for the host.
    """

    LAG = 8

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self._entries: list[_Entry] = []
        self._checked = 0

    def add(self, job: str, note: Note) -> None:
        """Add the results of some clients in one call of the client update."""
        self._entries.append(_Entry(job, note.label, note.number, note.members, note.seen))
        while self._checked < len(self._entries) - self.LAG:
            self._check()

    def latest(self, job: str) -> dict[str, float]:
        """The results of the first client in the last call of a job without a label."""
        self.flush()
        job_entries = (entry for entry in reversed(self._entries) if entry.job == job and not entry.label)
        return next(({name: float(value[0]) for name, value in entry.seen._asdict().items()} for entry in job_entries), {})

    def flush(self) -> None:
        """Check all results that have not been checked."""
        while self._checked < len(self._entries):
            self._check()

    def _check(self) -> None:
        entry = self._entries[self._checked]
        real = len(entry.members)
        seen = Diagnostics(*(np.asarray(value)[:real] for value in entry.seen))
        if not np.isfinite(seen.loss).all():
            member = entry.members[~np.isfinite(seen.loss)][0]
            raise DivergenceError(
                f"client {self.names[member]!r}: training ({entry.title}) diverged in round {entry.round}: its loss is not "
                "finite; try a smaller learning_rate, or check this client's costs for values far out of scale"
            )
        self._entries[self._checked] = entry._replace(seen=seen)
        self._checked += 1

    def frame(self, only: Collection[str] | None = None) -> pd.DataFrame:
        """The rows of these jobs, or all rows, as a table sorted by job, round and client, for every engine."""
        self.flush()
        entries = [entry for entry in self._entries if only is None or entry.job in only]
        if not entries:
            return pd.DataFrame({name: pd.Series(dtype=float) for name in HISTORY_COLUMNS})
        columns = _columns(entries)
        titles = np.array([entry.title for entry in entries], dtype=object)[columns["entry"]]
        table = {"job": titles, "round": columns["round"], "client": np.array(self.names, dtype=object)[columns["member"]]}
        table |= {name: columns[name] for name in Diagnostics._fields}
        place = {name: k for k, name in enumerate(dict.fromkeys(titles))}
        order = np.lexsort(np.array([columns["member"], columns["round"], [place[name] for name in titles]]))
        return pd.DataFrame(table).iloc[order].reset_index(drop=True)

    # Saved and restored with an unfinished training.

    def forget(self, job: str, since: int) -> None:
        """Delete the history of a job from this round on; the round will be repeated."""
        self.flush()
        self._entries = [entry for entry in self._entries if entry.job != job or entry.round < since]
        self._checked = len(self._entries)

    def saved(self, job: str, before: int | None = None) -> dict[str, np.ndarray]:
        """The entries of a job, or those before a round, as arrays: one row for each client and call."""
        self.flush()
        job_entries = [entry for entry in self._entries if entry.job == job and (before is None or entry.round < before)]
        return _columns(job_entries) if job_entries else {}

    def restore(self, job: str, saved: dict[str, np.ndarray]) -> None:
        """Restore the arrays of `saved`."""
        self.flush()
        for number in np.unique(saved["entry"]) if saved else ():
            rows = saved["entry"] == number
            seen = Diagnostics(*(saved[name][rows] for name in Diagnostics._fields))
            first = {name: saved[name][rows][0] for name in ("label", "round")}
            self._entries.append(_Entry(job, str(first["label"]), int(first["round"]), saved["member"][rows], seen))


def _columns(entries: list[_Entry]) -> dict[str, np.ndarray]:
    """The entries as arrays, one row for each client and call."""
    columns = {name: [np.asarray(getattr(entry.seen, name)) for entry in entries] for name in Diagnostics._fields}
    columns |= {name: [np.full(len(event.members), getattr(event, name)) for event in entries] for name in ("label", "round")}
    columns["member"] = [entry.members for entry in entries]
    columns["entry"] = [np.full(len(entry.members), number) for number, entry in enumerate(entries)]
    return {name: np.concatenate(parts) for name, parts in columns.items()}
