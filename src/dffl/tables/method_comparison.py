"""Several methods on a user's federation, with several random seeds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.comparing import against, judge_starts
from dffl.fitting import Fit
from dffl.jsonable import jsonable
from dffl.report import require_page, write
from dffl.tables.description import Description
from dffl.tables.trained_model import baselines, reading, regrets_by_client, report_of
from dffl.training.keywords import MethodChoice


@dataclass(frozen=True)
class Comparison:
    """The table of `dffl.compare`, the method that the federation's file names, and what to know of the data."""

    table: pd.DataFrame
    method: str
    starts: int
    notes: Sequence[str]
    report: Path | None = None

    def show(self, console: Console) -> None:
        """Print each client's regret under each method."""
        for line in self.notes:
            console.print(line, style="yellow")
        console.print(regrets_by_client(self.table, self.method))
        console.print(reading(self.table, self.method, self.starts))
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
    """Compare these methods, by default the one of the description, with its baselines; and write a ``report``."""
    if report is not None:
        require_page(report)
    own: MethodChoice = (description.method, description.options)
    named = [own if name == description.method else name for name in methods or []]
    asked: list[MethodChoice] = [*named, *([] if own in named else [own])]
    asked += [name for name in baselines(description) if name not in (methods or []) and name != description.method]
    fits: dict[str, Fit] = {}
    found = judge_starts(
        description.train, asked, test=description.test, starts=starts, progress=progress, keep=fits, **description.settings
    )
    if report is not None:
        command = shlex.join(
            ["dffl", "compare", description.path.name, *(word for name in methods or [] for word in ("--method", name))]
        )
        write(report_of(description, found, fits, f"{command} --starts {starts}"), report)
    return Comparison(against(found, description.test), description.method, starts, description.notes, report)
