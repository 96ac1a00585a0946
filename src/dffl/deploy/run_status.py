"""Follows a run by its folder: live progress, and the result for each site."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.table import Table

from dffl.deploy.ledger import ACCEPTED, OUTCOMES, RoundRecord, counted, read_ledger, unused
from dffl.deploy.locks import lock_owner
from dffl.deploy.run_state import FINISHED, LOST, STOPPED, TRAINING, WAITING, CoordinatorFolder, read_status
from dffl.deploy.server_process import FAILED, ask, last_started

POLL_SECONDS = 0.2
"""Seconds between two reads of the folder."""
SERVING_SECONDS = 30.0
"""How long a request for a run waits for a coordinator that was just started."""
ENDED = (FINISHED, LOST, STOPPED, FAILED)
GONE_SECONDS = 2.0
"""A coordinator whose lock is free for this long is gone."""


@dataclass(frozen=True)
class RunResult:
    """The state or the end of a run: one row per site."""

    folder: Path
    status: str
    sites: tuple[str, ...]
    records: list[RoundRecord]
    about: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, sites: tuple[str, ...]) -> RunResult:
        about = read_status(folder)
        return cls(folder, about["status"], sites, read_ledger(folder / "rounds.jsonl"), about)

    @property
    def bytes_per_site(self) -> float:
        """Mean bytes of messages to and from a site in a round."""
        asked = sum(len(record.outcomes) for record in self.records)
        return sum(record.sent + record.received for record in self.records) / asked if asked else 0.0

    def show(self, console: Console) -> None:
        counts, results = counted(self.records, self.sites), self.about.get("results", {})
        table = Table(title=f"Run {self.folder.name}: {self.status}, {self._rounds}", title_justify="left")
        table.add_column("site", overflow="fold")
        for outcome in OUTCOMES:
            table.add_column(outcome, justify="right")
        names = sorted({name for scalars in results.values() for name in scalars})
        for name in names:
            table.add_column(name, justify="right")
        for site in self.sites:
            numbers = [f"{results[site][name]:.4g}" if name in results.get(site, {}) else "-" for name in names]
            table.add_row(site, *(str(counts[site][outcome]) for outcome in OUTCOMES), *numbers)
        console.print(table)
        if rule := self.about.get("rule"):
            console.print(f"chosen rule: {rule}")
        for line in self.unused:
            console.print(line, style="yellow", soft_wrap=True)
        if self.records:
            seconds = np.median([record.seconds for record in self.records])
            console.print(f"median round {seconds:.2f} s; {self.bytes_per_site / 1024:.1f} KiB to and from a site in a round")
        if "why" in self.about:
            console.print(self.about["why"], soft_wrap=True)

    @property
    def _rounds(self) -> str:
        """The number of rounds so far; a method may train more than one shared model."""
        trainings = len({record.job for record in self.records})
        return f"{len(self.records)} rounds" + (f" in {trainings} trainings" if trainings > 1 else "")

    @property
    def unused(self) -> list[str]:
        """A line for each site with refused or left out updates: their number, and the reason for the last one."""
        last = {
            site: f"job {record.job}, round {record.round}: {record.outcomes[site]}"
            for record in self.records
            for site in unused([record])
        }
        counts = unused(self.records)
        return [f"{site}: {count} updates were not used; the last: {last[site]}" for site, count in counts.items()]

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.folder.name, "status": self.status, "sites": list(self.sites),
            "rounds": [record.as_json() for record in self.records], "results": self.about.get("results", {}),
            "why": self.about.get("why", ""), "unused": unused(self.records), "rule": self.about.get("rule", ""),
        }  # fmt: skip


def begin(folder: CoordinatorFolder, new: bool) -> Path:
    """Request a run from the coordinator, and return its folder when the run has started; a current run is followed."""
    served = wait_for(lambda: lock_owner(folder.lock) is not None, SERVING_SECONDS)
    latest = folder.latest()
    if served and latest is not None and not new and read_status(latest)["status"] == TRAINING:
        return latest
    before, asked = last_started(folder), uuid.uuid4().hex
    ask(folder, "train", new=new, asked=asked)
    # Another command may have requested a run at the same time. The last request counts, and its run is followed.
    while not wait_for(lambda: last_started(folder) != before, GONE_SECONDS):
        if lock_owner(folder.lock) is None:
            raise _coordinator_gone(folder)
        taken = not (folder.control / "train").exists()
        if taken and not wait_for(lambda: last_started(folder) != before, GONE_SECONDS):  # by a coordinator that then ended
            ask(folder, "train", new=new, asked=asked)
    return folder.runs / str(last_started(folder)["run"])


def wait_for(ready: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition becomes true within this many seconds."""
    deadline = time.monotonic() + seconds
    while not (is_ready := ready()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 2)
    return is_ready


def _coordinator_gone(folder: CoordinatorFolder) -> OSError:
    return OSError(f"{folder.path}: the coordinator is gone; dffl federation serve {folder.path} resumes the run")


def follow(folder: CoordinatorFolder, run: Path, sites: tuple[str, ...], shown: bool) -> RunResult:
    """Wait for the end of a run and show its progress; fail if the coordinator is gone."""
    with (_ProgressBar() if sys.stderr.isatty() else _ProgressLines()) if shown else nullcontext() as progress:
        for result in _poll(folder, run, sites):
            if progress is not None:
                progress.update(result)
    return RunResult.of(run, sites)


def _poll(folder: CoordinatorFolder, run: Path, sites: tuple[str, ...]) -> Iterator[RunResult]:
    seen = time.monotonic()
    while True:
        result = RunResult.of(run, sites)
        yield result
        if result.status in ENDED:
            return
        if lock_owner(folder.lock) is not None:
            seen = time.monotonic()
        elif time.monotonic() - seen > GONE_SECONDS:
            raise _coordinator_gone(folder)
        time.sleep(POLL_SECONDS)


def _progress_text(result: RunResult) -> str:
    """The progress of a run in one line: the missing sites, or round, outcomes, loss and bytes."""
    if result.status == WAITING:
        return "waiting for the coordinator"
    if result.status in ENDED:
        return result.status
    if missing := result.about.get("missing", []):
        return f"waiting for {', '.join(missing)}"
    if not result.records:
        return "the first round is under way"
    last = result.records[-1]
    others = [f"{site} {outcome.partition(':')[0]}" for site, outcome in last.outcomes.items() if outcome != ACCEPTED]
    words = [f"round {len(result.records)} of {result.about.get('rounds')}", f"{len(last.accepted)} accepted", *others[:3]]
    words += [f"{name} {value:.4g}" for name, value in last.scalars.items()]
    words.append(f"{sum(record.sent + record.received for record in result.records) / 2**20:.1f} MiB")
    return ", ".join(words)


class _ProgressLines:
    """Progress for a file or another program: a line for each change, and ten lines during the rounds."""

    def __init__(self) -> None:
        self._last: object = None

    def __enter__(self) -> Self:
        return self

    def update(self, result: RunResult) -> None:
        words, total = _progress_text(result), result.about.get("rounds") or 1
        in_rounds = result.records and result.status not in ENDED and not result.about.get("missing")
        stage: object = 10 * len(result.records) // total if in_rounds else words
        if stage != self._last:
            print(words, file=sys.stderr, flush=True)
            self._last = stage

    def __exit__(self, *_: object) -> None:
        """There is nothing to end."""


class _ProgressBar:
    """Progress for a terminal: a bar with the remaining time."""

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("left"))
        self._bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("waiting for sites", total=None)
        return self

    def update(self, result: RunResult) -> None:
        total = result.about.get("rounds") if result.records else None
        self._bar.update(self._task, completed=len(result.records), total=total, description=_progress_text(result))

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
