"""Several methods on a user's federation, with several random seeds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.comparing import Start, against, judge_starts
from dffl.fitting import Fit
from dffl.jsonable import jsonable
from dffl.report import require_page, write
from dffl.tables.chosen import compared, rules_table
from dffl.tables.description import Description
from dffl.tables.over_time import method_of, naive_over_time, with_rules
from dffl.tables.reading import reading, regrets_by_client, report_of, trained_baselines
from dffl.time.outcome import CHOSEN, Backtest
from dffl.training.keywords import MethodChoice


@dataclass(frozen=True)
class Comparison:
    """The table of `dffl.compare`, the method that the federation's file names, and notes on the data."""

    table: pd.DataFrame
    method: str
    starts: int
    notes: Sequence[str]
    report: Path | None = None

    def show(self, console: Console) -> None:
        """Print each client's regret under each method."""
        console.print(reading(self.table, self.method, self.starts))
        console.print(
            rules_table(self.table) if CHOSEN in set(self.table["method"]) else regrets_by_client(self.table, self.method)
        )
        for line in self.notes:
            console.print(line, style="yellow")
        if self.report is not None:
            console.print(f"Page: {self.report}", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        rows = self.table.astype({"harmed": object}).to_dict("records")
        plain = [{str(name): None if value is pd.NA else value for name, value in row.items()} for row in rows]
        page = None if self.report is None else str(self.report)
        return {
            "method": self.method,
            "starts": self.starts,
            "clients": jsonable(plain),
            "notes": list(self.notes),
            "report": page,
        }


def compare(
    description: Description, methods: Sequence[str] | None, starts: int, progress: bool | None, report: Path | None = None
) -> Comparison:
    """Compare these methods, by default the one of the description, with its baselines. Writes a ``report`` if asked for."""
    if report is not None:
        require_page(report)
    method, notes = method_of(description)
    description = replace(description, method=method, notes=[*notes, *description.notes])
    if CHOSEN in (method, *(methods or [])):
        return _with_choice(description, methods, starts, progress, report)
    chosen: MethodChoice = (description.method, description.options)
    named = [chosen if name == description.method else name for name in methods or []]
    asked: list[MethodChoice] = [*named, *([] if chosen in named else [chosen])]
    asked += [name for name in trained_baselines(description) if name not in (methods or []) and name != description.method]
    fits: dict[str, Fit] = {}
    runs = judge_starts(
        description.train, asked, test=description.test, starts=starts, progress=progress, keep=fits, **description.settings
    )
    if description.order is not None:
        lost = naive_over_time(description)
        runs = [with_rules(run, lost, description.train, description.test) for run in runs]
    return _compared(description, methods, runs, fits, report)


def _with_choice(
    description: Description, methods: Sequence[str] | None, starts: int, progress: bool | None, report: Path | None
) -> Comparison:
    """The comparison with the choice among methods: over time if there is an order, else by out-of-fold regret."""
    others = [name for name in methods or [] if name != CHOSEN]
    named = [description.method] if description.method not in (CHOSEN, *others) else []
    comparison = compared(description, [*named, *others], starts, progress)
    return _compared(comparison.description, methods, comparison.runs, comparison.fits, report, comparison.first)


def _compared(
    description: Description, methods: Sequence[str] | None, runs: list[Start], fits: dict[str, Fit], report: Path | None,
    choices: Backtest | None = None,
) -> Comparison:  # fmt: skip
    starts = len(runs)
    if report is not None:
        command = shlex.join(
            ["dffl", "compare", description.path.name, *(word for name in methods or [] for word in ("--method", name))]
        )
        write(report_of(description, runs, fits, f"{command} --starts {starts}", choices), report)
    return Comparison(against(runs, description.test), description.method, starts, description.notes, report)
