"""A progress bar with the time left, shown only for jobs that take long."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

DELAY = 1.0
"""Seconds of work before the bar appears."""
SPEED_PERIOD = 120.0
"""Seconds over which the speed is averaged, for the time left."""


class Progress:
    """Counts the work that is done. ``show=None`` shows a bar in an interactive terminal.

    ``runs`` is the number of equal runs that share one bar.
    """

    def __init__(self, show: bool | None = None, runs: int = 1):
        self.show = sys.stderr.isatty() if show is None else show
        self._runs_left = runs
        self.total, self.done = 0.0, 0.0
        self._label, self._started = "", time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def expect(self, units: float, done: float = 0.0) -> None:
        """Set the total work, and how much of it an earlier run has done."""
        self.total, self.done = units, done

    def begin_run(self, units: float) -> None:
        """Set the work of the next run. Later runs are expected to be as long."""
        self.expect(self.done + self._runs_left * units, self.done)
        self._runs_left -= 1

    def advance(self, units: float, label: str) -> None:
        """Report that some work is done, and name the current work."""
        self.done += units
        self._label = label
        if self.show and self._bar is None and time.monotonic() - self._started > DELAY:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=min(self.done, self.total), total=self.total or None, description=label)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description:<22}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        clocks = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self._bar = Progress(
            *columns, *clocks, console=Console(stderr=True), transient=True, speed_estimate_period=SPEED_PERIOD
        )
        self._task = self._bar.add_task(self._label, total=self.total or None, completed=self.done)
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
