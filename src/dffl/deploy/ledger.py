"""The record of a run: for every round, exactly one outcome of every selected site.

A round is written when it closes, as one line of a file, before the state after it. After a crash, the file may therefore be
one round ahead of the state, but never behind. That round is dropped from the file and run again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dffl.files import naming, write_text

ACCEPTED, LEFT_OUT, REFUSED, LATE, DEAD = "accepted", "left out", "refused", "late", "dead"
OUTCOMES = (ACCEPTED, LEFT_OUT, REFUSED, LATE, DEAD)
"""A refused answer cannot be used. A left out answer is valid, but changes the model far more than the others."""


@dataclass(frozen=True)
class RoundRecord:
    """One round of one training of a run."""

    job: int
    round: int
    outcomes: dict[str, str]
    """For each selected site, one of `OUTCOMES`; ``refused`` and ``left out`` are followed by a colon and the reason."""
    seconds: float
    training_seconds: float
    """The longest training time of a site, at most the time from its order to its answer."""
    sent: int
    """Bytes of messages to the sites."""
    received: int
    scalars: dict[str, float]
    """Means over the accepted sites of the scalars in the plan."""

    @property
    def accepted(self) -> list[str]:
        """The sites whose updates are used."""
        return [name for name, outcome in self.outcomes.items() if outcome == ACCEPTED]

    @property
    def left_out(self) -> dict[str, str]:
        """The sites whose answers were left out, each with the reason."""
        return {name: why.partition(": ")[2] for name, why in self.outcomes.items() if why.startswith(LEFT_OUT)}

    @property
    def taken(self) -> list[str]:
        """The sites whose answers were valid, including left out ones: such a site keeps its new state."""
        return [*self.accepted, *self.left_out]

    def as_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


class Ledger:
    """The rounds of a run, on disk."""

    def __init__(self, path: Path):
        self.path = path
        self.records: list[RoundRecord] = read_ledger(path)

    def add(self, record: RoundRecord) -> None:
        """Write a round that has closed."""
        line = json.dumps(record.as_json(), separators=(",", ":")) + "\n"
        with naming(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.records.append(record)

    def keep_before(self, job: int, round: int) -> None:
        """Delete the rounds from this one on; they will be run again."""
        earlier = [record for record in self.records if (record.job, record.round) < (job, round)]
        lines = "".join(json.dumps(record.as_json(), separators=(",", ":")) + "\n" for record in earlier)
        write_text(self.path, lines)
        self.records = earlier

    def last_taken(self, job: int, name: str) -> int:
        """The last round of a training in which a site's answer was valid, or -1."""
        for record in reversed(self.records):  # in order, so for an active site it is one of the last
            if record.job == job and name in record.taken:
                return record.round
            if record.job < job:
                break
        return -1


def read_ledger(path: Path) -> list[RoundRecord]:
    """The rounds of a file; an incomplete last line is ignored."""
    if not path.exists():
        return []
    records = []
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate([*lines, last], start=1):
        try:
            if line:
                records.append(RoundRecord(**json.loads(line)))
        except (ValueError, TypeError):
            if number > len(lines):
                break  # the machine stopped during the write
            raise ValueError(f"{path}, line {number}: is damaged; the record of this run cannot be trusted") from None
    return records


def unused(records: Iterable[RoundRecord]) -> dict[str, int]:
    """The number of refused or left out updates of each site that has some."""
    counts = Counter(name for record in records for name, why in record.outcomes.items() if why.startswith((REFUSED, LEFT_OUT)))
    return dict(counts)


def counted(records: Iterable[RoundRecord], sites: Iterable[str]) -> dict[str, Mapping[str, int]]:
    """For each site, the number of rounds with each outcome."""
    counters: dict[str, Counter[str]] = {name: Counter() for name in sites}
    for record in records:
        for name, outcome in record.outcomes.items():
            counters[name][outcome.partition(":")[0]] += 1
    return {name: {outcome: counts[outcome] for outcome in OUTCOMES} for name, counts in counters.items()}
