"""What each client's options over time have lost, row by row, in a backtest: the evidence of advice over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dffl.federation import Federation
from dffl.time.backtest import CANDIDATES, WINDOW, backtest, choices_of
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.outcome import CHOSEN, Backtest
from dffl.training.keywords import MethodChoice

TOGETHER, ALONE = "together", "alone"
"""The choice among all rules, models that are trained with the others among them; and that among what a client has alone."""
SHARED = {"fedavg": "local", "ridge-pooled": None}
"""Candidates that need the others, and what a client trains in their place."""


@dataclass(frozen=True, eq=False)
class Record:
    """The judged rows of one client."""

    client: str
    times: np.ndarray
    lost: Mapping[str, np.ndarray]
    """The regret of each row under ``together``, ``alone``, the forecast and the rules that need no training."""
    best: np.ndarray
    """The size of the best objective of each row."""
    rules: Mapping[str, str]
    """The rule that ``together`` and ``alone`` have chosen last."""

    def take(self, rows: np.ndarray | slice) -> Record:
        """Some of its rows."""
        lost = {name: values[rows] for name, values in self.lost.items()}
        return replace(self, times=self.times[rows], lost=lost, best=self.best[rows])


def alone_candidates() -> tuple[MethodChoice, ...]:
    """The candidates of a backtest as one client would train them without the others: the same networks and settings."""
    found: list[MethodChoice] = []
    for one in CANDIDATES:
        name, options = (one, {}) if isinstance(one, str) else one
        if (own := SHARED.get(name, name)) is not None:
            found.append((own, options))
    return tuple(found)


def records(federation: Federation, start: Any = None, progress: bool | None = None, **keywords: Any) -> list[Record]:
    """The record of each client from ``start`` on, by default the later half; ``keywords`` are those of `dffl.backtest`."""
    together = backtest(federation, CANDIDATES, start=start, progress=progress, **keywords)
    alone = by_own_record(backtest(federation, alone_candidates(), start=start, progress=progress, **keywords), **keywords)
    found = []
    for place, client in enumerate(together.clients):
        rows = together.reported(place)
        lost = {TOGETHER: together.regrets(CHOSEN, place)[rows], ALONE: alone.regrets(CHOSEN, place)[rows]}
        lost |= {name: together.lost[name][place][rows] for name in (FORECAST, *NAIVE) if name in together.lost}
        when = together.timeline.times[place]
        times = when[len(when) - client.n :][rows]
        rules = {name: one.choices[-1].rules[place] for name, one in ((TOGETHER, together), (ALONE, alone))}
        found.append(Record(client.name, times, lost, client.z_star_size[rows], rules))
    return found


def by_own_record(found: Backtest, window: int = WINDOW, **_: Any) -> Backtest:
    """The same backtest, in which each client chooses by what it has lost itself."""
    by_client = []
    for place, client in enumerate(found.clients):
        timeline = replace(found.timeline, times=(found.timeline.times[place],))
        lost = {rule: [values[place]] for rule, values in found.lost.items()}
        by_client.append(choices_of([client], lost, timeline, window, "fleet", found.base, found.trained, found.own))
    choices = [
        one._replace(rules=tuple(each[number].rules[0] for each in by_client)) for number, one in enumerate(found.choices)
    ]
    return replace(found, choices=choices)
