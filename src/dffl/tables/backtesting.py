"""`dffl backtest`: a backtest of all rows of a federation's file, training and test rows together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from dffl.federation import Client, Federation
from dffl.tables.description import Description
from dffl.time.backtest import CANDIDATES, REFIT, WINDOW, backtest
from dffl.time.outcome import Backtest
from dffl.time.timeline import NUMBERS, SECONDS


@dataclass(frozen=True)
class OwnBacktest:
    """A backtest, and what a user should know of the data."""

    found: Backtest
    notes: Sequence[str]

    def show(self, console: Console) -> None:
        """Print the verdict first, then the table, then notes on the data."""
        self.found.show(console)
        for line in self.notes:
            console.print(line, style="yellow")

    def as_json(self) -> dict[str, Any]:
        return {**self.found.as_json(), "notes": list(self.notes)}


def run(
    description: Description,
    start: str | None = None,
    refit: int = REFIT,
    window: int = WINDOW,
    methods: Sequence[str] | None = None,
    progress: bool | None = None,
) -> OwnBacktest:
    """The backtest of a federation's file: of its settings of training, the seed alone counts."""
    if description.order is None:
        fix = 'write order = "COLUMN" under [federation], the column of dates or numbers by which the rows follow each other'
        raise ValueError(f"{description.path}: federation.order: is missing; {fix}")
    found = backtest(
        whole(description),
        list(methods) if methods else CANDIDATES,
        start=start if description.dates or start is None else _number(start),
        refit=refit,
        window=window,
        clock=SECONDS if description.dates else NUMBERS,
        progress=progress,
        seed=int(description.settings.get("seed", 0)),
    )
    return OwnBacktest(found, description.notes)


def whole(description: Description) -> Federation:
    """The clients with training and test rows together, in their order."""
    return Federation([_joined(client, description.test[client.name]) for client in description.train])


def _joined(train: Client, test: Client) -> Client:
    assert train.times is not None, "a file with an order has times"
    assert test.times is not None, "and so do its test rows"
    times = np.concatenate([train.times, test.times])
    rows = np.argsort(times, kind="stable")
    x, c = (np.concatenate([getattr(train, name), getattr(test, name)])[rows] for name in ("x", "c"))
    forecast = None if train.forecast is None else x[:, -c.shape[1] :]
    return Client(
        train.name, x, c, train.set, train.maximize, feature_names=train.feature_names, cost_names=train.cost_names,
        times=times[rows], forecast=forecast,
    )  # fmt: skip


def _number(text: str) -> float | str:
    """A number, or the text itself, which is refused where it is used."""
    try:
        return float(text)
    except ValueError:
        return text
