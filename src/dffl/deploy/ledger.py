"""The record of a run: for every round exactly one outcome of every site that was selected.

A round is written when it closes, in one line of a file, before the state that follows from it. So after a crash the file may
be one round ahead of the state, never behind: what is ahead is dropped, and the round is held again.
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
"""A refused answer cannot be used. One that is left out was a good answer, but changes far more than the others'."""


@dataclass(frozen=True)
class RoundRecord:
    """One round of one training of a run."""

    job: int
    round: int
    outcomes: dict[str, str]
    """For each selected site one of `OUTCOMES`; after ``refused`` and ``left out`` a colon and why."""
    seconds: float
    training_seconds: float
    """The longest time that a site has trained, as far as the coordinator can tell: from its order to its answer."""
    sent: int
    """Bytes of messages to the sites."""
    received: int
    scalars: dict[str, float]
    """Means over the accepted sites of what the plan names."""

    @property
    def accepted(self) -> list[str]:
        """The sites whose updates count."""
        return [name for name, outcome in self.outcomes.items() if outcome == ACCEPTED]

    @property
    def left_out(self) -> dict[str, str]:
        """The sites whose answers were left out, each with the reason."""
        return {name: why.partition(": ")[2] for name, why in self.outcomes.items() if why.startswith(LEFT_OUT)}

    @property
    def taken(self) -> list[str]:
        """The sites whose answers were taken, also those that were then left out: such a site keeps its own state."""
        return [*self.accepted, *self.left_out]

    def as_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


class Ledger:
    """The rounds so far, on disk."""

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
        """Drop what is ahead of a state: rounds that were recorded, and will be held again."""
        kept = [one for one in self.records if (one.job, one.round) < (job, round)]
        lines = "".join(json.dumps(one.as_json(), separators=(",", ":")) + "\n" for one in kept)
        write_text(self.path, lines)
        self.records = kept

    def last_taken(self, job: int, name: str) -> int:
        """The last round of a training in which a site's answer was taken, or -1."""
        for one in reversed(self.records):  # they are in order, and of a site that takes part it is one of the last
            if one.job == job and name in one.taken:
                return one.round
            if one.job < job:
                break
        return -1


def read_ledger(path: Path) -> list[RoundRecord]:
    """The rounds of a file; a last line that was cut short does not count."""
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
                break  # the machine stopped while it was written
            raise ValueError(f"{path}, line {number}: is damaged; the record of this run cannot be trusted") from None
    return records


def unused(records: Iterable[RoundRecord]) -> dict[str, int]:
    """For each site with refused or left out updates how many there were."""
    found = Counter(name for record in records for name, why in record.outcomes.items() if why.startswith((REFUSED, LEFT_OUT)))
    return dict(found)


def counted(records: Iterable[RoundRecord], sites: Iterable[str]) -> dict[str, Mapping[str, int]]:
    """For each site how often it had which outcome."""
    found: dict[str, Counter[str]] = {name: Counter() for name in sites}
    for record in records:
        for name, outcome in record.outcomes.items():
            found[name][outcome.partition(":")[0]] += 1
    return {name: {outcome: counts[outcome] for outcome in OUTCOMES} for name, counts in found.items()}
