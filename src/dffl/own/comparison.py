"""Several methods on a federation of one's own, from several starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.console import Console

from dffl.comparing import compare as compare_methods
from dffl.data.description import Description
from dffl.jsonable import jsonable
from dffl.own.training import BESIDE, reading, regrets_by_client
from dffl.training.keywords import MethodChoice


@dataclass(frozen=True)
class Comparison:
    """The table of `dffl.compare`, the method that the federation's file names, and what to know of the data."""

    table: pd.DataFrame
    method: str
    starts: int
    notes: Sequence[str]

    def show(self, console: Console) -> None:
        """Print each client's regret under each method."""
        for line in self.notes:
            console.print(line, style="yellow")
        console.print(regrets_by_client(self.table, self.method))
        console.print(reading(self.table, self.method, self.starts))

    def as_json(self) -> dict[str, Any]:
        rows = self.table.astype({"harmed": object}).to_dict("records")
        plain = [{str(name): None if value is pd.NA else value for name, value in row.items()} for row in rows]
        return {"method": self.method, "starts": self.starts, "clients": jsonable(plain)}


def compare(description: Description, methods: Sequence[str] | None, starts: int, progress: bool | None) -> Comparison:
    """Compare these methods, by default the one of the description, with what stands beside it."""
    own: MethodChoice = (description.method, description.options)
    asked: list[MethodChoice] = [*(methods or []), *([] if description.method in (methods or []) else [own])]
    asked += [name for name in BESIDE if name not in (methods or []) and name != description.method]
    table = compare_methods(
        description.train, asked, test=description.test, starts=starts, progress=progress, **description.settings
    )
    return Comparison(table, description.method, starts, description.notes)
