"""A federation's file as a time series: all rows in their order, the begin of the test, and the keys of ``[time]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dffl.cells import shown_moment
from dffl.comparing import Start
from dffl.federation import Client, Federation
from dffl.fitting import DEFAULT_METHOD
from dffl.judging import judged, regrets_at_each
from dffl.tables.description import Description
from dffl.tables.plan import Plan
from dffl.time.ahead import Clock
from dffl.time.bases import MEANS, STEADY, USUAL_WEIGHT, plain_mean, steady
from dffl.time.outcome import CHOSEN
from dffl.time.past import Past
from dffl.time.timeline import DAY, FEWEST, NUMBERS, SECONDS

NOT_OF_REFITS = ("seed", "split", "period", "validation_blocks")
"""Settings of a file that hold out rows. A backtest always holds out the later rows."""


def require_order(description: Description) -> None:
    """Refuse a file without an order, or with two rows of the same moment."""
    if description.order is None:
        fix = 'write order = "COLUMN" under [federation], the column of dates or numbers by which the rows follow each other'
        raise ValueError(f"{description.path}: federation.order: is missing; {fix}")
    for name, why in description.twice.items():
        fix = "put the rows of one day into one row, or write a time of day too"
        raise ValueError(f"{why} (client {name!r}); decisions over time need one row for each moment: {fix}")


def whole(description: Description) -> Federation:
    """The clients with training and test rows together, in their order."""
    return Federation([_joined(client, description.test[client.name]) for client in description.train])


def _joined(train: Client, test: Client) -> Client:
    times = np.concatenate([_times(train), _times(test)])
    rows = np.argsort(times, kind="stable")
    x, c = (np.concatenate([getattr(train, name), getattr(test, name)])[rows] for name in ("x", "c"))
    return train.with_rows(x, c, times[rows])


def _times(client: Client) -> np.ndarray:
    assert client.times is not None, "a file with an order has times"
    return client.times


def begins(description: Description) -> float:
    """The moment of the first test row."""
    return float(min(_times(client)[0] for client in description.test))


def past_of(description: Description | Plan) -> Past:
    """The features of the past that the file asks for."""
    arguments: dict[str, Any] = {}
    for name in ("lags", "means", "known_after"):
        if (value := description.time.get(name)) is not None:
            arguments[name] = tuple(value) if isinstance(value, list) else value
    return Past(**arguments)


def keywords_of(description: Description) -> dict[str, Any]:
    """The keywords of `dffl.backtest` that follow from a file."""
    keys = {name: value for name, value in description.time.items() if name not in ("lags", "means", "known_after")}
    clock = SECONDS if description.dates else NUMBERS
    return {"past": past_of(description), "clock": clock, "seed": int(description.settings.get("seed", 0)), **keys}


def start_of(description: Description) -> str | float:
    """The begin of the test, in the form of `dffl.backtest`."""
    moment = begins(description)
    return shown_moment(moment, True) if description.dates else moment


def method_of(description: Description) -> tuple[str, list[str]]:
    """The method of a file or its default, and a note if the default is not the usual one."""
    if description.named:
        return description.method, []
    if description.order is None:
        return DEFAULT_METHOD, []
    needed, first = _needed(past_of(description)), begins(description)
    counts = {client.name: int(np.searchsorted(_times(client), first)) for client in whole(description)}
    poor = min(counts, key=lambda name: counts[name])
    if counts[poor] >= needed:
        return CHOSEN, []
    what = f"client {poor!r} has {counts[poor]} rows before the test, and the choice over time needs {needed}"
    return DEFAULT_METHOD, [f"{description.path}: {what}; {DEFAULT_METHOD} is trained instead"]


def _needed(past: Past) -> int:
    return past.longest + past.known_after + FEWEST


def notes_of(description: Description, federation: Federation) -> list[str]:
    """Notes on rows in their order: lost rows, gaps, and a forecast that is too good to be true."""
    past, notes = past_of(description), []
    if past.longest:
        lost = min(client.n for client in federation)
        lost = min(lost, past.longest)
        ends = [_times(client)[lost - 1] for client in federation]
        latest = " at the latest" if min(ends) < max(ends) else ""
        until = f"up to {shown_moment(float(max(ends)), description.dates)}{latest}"
        why = "have too little past for lags and means: only models without these see them"
        notes.append(f"the first {lost} rows of each client ({until}) {why}")
    for client in federation:
        clock, gaps = Clock.of(_times(client), description.dates), np.diff(_times(client))
        if (wide := gaps > clock.usual * 1.5).any():
            worst = int(np.argmax(gaps))
            after = clock.shown(_times(client)[worst])
            what = f"{wide.sum()} unusual {'gap' if wide.sum() == 1 else 'gaps'} in {description.order!r}"
            notes.append(
                f"client {client.name!r}: {what}, the longest of {clock.long(gaps[worst])} after {after}; lags count rows"
            )
    return notes


def divided(federation: Federation, moment: float) -> tuple[Federation, Federation]:
    """The rows before a moment, and the rows from this moment on."""
    cuts = [int(np.searchsorted(_times(client), moment)) for client in federation]
    before = [client.rows(slice(0, cut)) for client, cut in zip(federation, cuts, strict=True)]
    return Federation(before), Federation(
        [series.rows(slice(cut, series.n)) for series, cut in zip(federation, cuts, strict=True)]
    )


def settings_of(description: Description) -> dict[str, Any]:
    """The settings of trainings in a backtest: those in the file."""
    return {name: value for name, value in description.settings.items() if name not in NOT_OF_REFITS}


def naive_over_time(description: Description) -> dict[str, list[np.ndarray]]:
    """The regret of each test row under the naive rules over time. Empty if rows have no moments.

    The steady average has its usual weight: a choice of the weight would take more solves than all other rules together.
    """
    together = [(train, test) for train, test in zip(description.train, description.test, strict=True)]
    if any(len(np.unique(np.concatenate([_times(a), _times(b)]))) < a.n + b.n for a, b in together):
        return {}
    clients, wait = whole(description).clients, past_of(description).known_after
    tests = [np.isin(_times(client), _times(test)) for client, (_, test) in zip(clients, together, strict=True)]
    days = [_times(client) / DAY if description.dates else None for client in clients]
    tables = {rule: [plain_mean(rule, client.c, wait) for client in clients] for rule in MEANS}
    tables[STEADY] = [steady(client.c, USUAL_WEIGHT, when, wait) for client, when in zip(clients, days, strict=True)]
    held_out = list(description.test)
    return {
        rule: regrets_at_each(held_out, [table[some] for table, some in zip(costs_of_rule, tests, strict=True)])
        for rule, costs_of_rule in tables.items()
    }


def with_rules(start: Start, lost: Mapping[str, list[np.ndarray]], before: Federation, test: Federation) -> Start:
    """The results of one seed, with rules that were not fitted by it."""
    rows = {
        rule: [
            {"client": client.name, "method": rule, "n": train.n, "n_test": client.n, "took_part": True, **judged(mine, client)}
            for train, client, mine in zip(before, test, by, strict=True)
        ]
        for rule, by in lost.items()
    }
    return Start(start.rows | rows, start.lost | dict(lost))
