"""`dffl backtest`: a backtest of all rows of a federation's file, training and test rows together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dffl.tables.description import Description
from dffl.tables.over_time import keywords_of, require_order, whole
from dffl.time.backtest import CANDIDATES, backtest
from dffl.time.choosing import require_same_frequency
from dffl.time.outcome import Backtest


@dataclass(frozen=True)
class OwnBacktest:
    """A backtest, and the notes on the data."""

    backtest: Backtest
    notes: Sequence[str]

    def show(self, console: Console) -> None:
        """Print the verdict first, then the table, then notes on the data."""
        self.backtest.show(console)
        for line in self.notes:
            console.print(line, style="yellow")

    def as_json(self) -> dict[str, Any]:
        return {**self.backtest.as_json(), "notes": list(self.notes)}


def run(
    description: Description,
    start: str | None = None,
    refit: int | None = None,
    window: int | None = None,
    methods: Sequence[str] | None = None,
    progress: bool | None = None,
    checkpoint: Path | None = None,
    jobs: int | None = None,
) -> OwnBacktest:
    """The backtest of a file. From [training] it uses only the seed. Options that are typed replace those under [time]."""
    require_order(description)
    keywords = keywords_of(description)
    typed = {"refit": refit, "window": window}
    federation = whole(description)
    require_same_frequency(federation.clients)
    outcome = backtest(
        federation,
        list(methods) if methods else CANDIDATES,
        start=start if description.dates or start is None else _number(start),
        progress=progress,
        checkpoint=checkpoint,
        jobs=jobs,
        **{**keywords, **{name: value for name, value in typed.items() if value is not None}},
    )
    return OwnBacktest(outcome, description.notes)


def _number(text: str) -> float | str:
    """The number that a text means, or the text itself, which is refused where it is used."""
    try:
        return float(text)
    except ValueError:
        return text
