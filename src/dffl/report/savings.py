"""The savings of a method compared with others, and its test rows over time, from the regrets of single rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dffl.cells import shown_moment
from dffl.comparing import Start
from dffl.federation import Client, Federation, optima
from dffl.harm import ENOUGH_STARTS, interval, interval_of_sum
from dffl.report.money import Course, DecidedRows, OverTime, RefitTime, Saving
from dffl.report.numbers import plain
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.outcome import CHOSEN, Backtest
from dffl.time.timeline import DAY
from dffl.training.sharing import alike_rows

YEAR = 365.25
FEWEST_DAYS = 28
"""A shorter test says nothing about a year."""
STRETCHES = 180
"""The most points of a course: more rows are added up in stretches."""
SHOWN_ROWS, ALL_ROWS = 42, 3000
"""The most rows of a client whose decisions are shown, and of all clients together; each client has at least a week."""
MOST_ITEMS = 100
"""Decisions on more items cannot be read in a picture."""
WITHOUT_MODEL = "mean-cost"


class Judged(NamedTuple):
    """Regrets by row, and what is needed to interpret them."""

    runs: Sequence[Start]
    test: Federation
    main: str
    units: Mapping[str, str]
    dates: bool
    """Whether the times of the test rows are dates, in seconds."""
    confidence: float = 0.95

    @property
    def unit(self) -> str:
        """The common unit of all clients; empty if there is none."""
        units = {self.units.get(client.name, "") for client in self.test}
        return units.pop() if len(units) == 1 else ""

    def lost(self, method: str, place: int) -> np.ndarray:
        """Regrets of a client, (seeds, rows)."""
        return np.stack([run.lost[method][place] for run in self.runs])

    @property
    def once(self) -> bool:
        """Whether rows alone are enough for a judgement: the choice trains at each refit, and naive rules never train."""
        return self.main in (CHOSEN, FORECAST, *NAIVE) and len(self.runs) < ENOUGH_STARTS and self.ordered

    @property
    def ordered(self) -> bool:
        return all(client.times is not None for client in self.test)


def now_of(judged: Judged) -> str | None:
    """The user's rule without a model, as far as known: the forecast, or the average that loses least on these rows."""
    there = judged.runs[0].lost
    if FORECAST in there:
        return FORECAST
    naive = [rule for rule in NAIVE if rule in there]
    if naive:
        means = {rule: np.mean([row["relative_regret"] for row in judged.runs[0].rows[rule]]) for rule in naive}
        return min(means, key=lambda rule: means[rule])
    return WITHOUT_MODEL if WITHOUT_MODEL in there else None


def kept(rules: Mapping[str, str] | None) -> str | None:
    """The rule without training that all clients are advised to keep; None if they are advised to use another one."""
    names = set((rules or {}).values())
    return next(iter(names)) if len(names) == 1 and names <= {*NAIVE, FORECAST} else None


def savings(judged: Judged, now: str, alone: str | None) -> tuple[Saving, ...]:
    """The savings of all clients together against each method, and of each client against the two most important ones."""
    others = [name for name in judged.runs[0].lost if name != judged.main]
    all_rows = _all_rows(judged)
    together = [_saving(judged, "", judged.unit, all_rows, other) for other in others]
    each = [
        _saving(judged, client.name, judged.units.get(client.name, ""), _rows(judged, place), other)
        for other in dict.fromkeys([now, alone])
        if other in others
        for place, client in enumerate(judged.test)
    ]
    return tuple(saving for saving in [*together, *each] if saving is not None)


class _Rows(NamedTuple):
    """Regrets of several clients, or of one, as one series."""

    places: Sequence[int]
    sizes: Sequence[float]
    """The divisor of a client's regrets: 1 for money."""
    times: Sequence[float] | None
    alike: Sequence[np.ndarray]
    """Without times: a number for each row of each of them, the same for rows that are no independent evidence."""


def _rows(judged: Judged, place: int) -> _Rows:
    client = judged.test[place]
    size = 1.0 if judged.units.get(client.name) else float(client.z_star_size.mean())
    return _Rows([place], [size], *_times_or_alike([client]))


def _times_or_alike(clients: Sequence[Client]) -> tuple[list[float] | None, list[np.ndarray]]:
    """The moments of the clients' rows; where some have none, which rows are no independent evidence."""
    if any(client.times is None for client in clients):
        return None, alike_rows(clients)
    times = np.concatenate([_times(client) for client in clients])
    return (times if len(clients) == 1 else np.unique(times)).tolist(), []


def _all_rows(judged: Judged) -> _Rows:
    """All clients: the sum of their money, or the mean of shares if there is no common unit."""
    count = len(judged.test)
    times, alike = _times_or_alike(judged.test.clients)
    # Each client's share counts alike, also where it has no row at some moments.
    there = [1.0 if times is None else client.n / len(times) for client in judged.test]
    shares = [count * part * float(client.z_star_size.mean()) for part, client in zip(there, judged.test, strict=True)]
    sizes = [1.0] * count if judged.unit else shares
    return _Rows(range(count), sizes, times, alike)


def _saving(judged: Judged, client: str, unit: str, rows: _Rows, other: str) -> Saving | None:
    if not all(size > 0 for size in rows.sizes):
        return None  # if the best value is 0, no share can be given
    series = [
        [(judged.lost(name, place)) / size for place, size in zip(rows.places, rows.sizes, strict=True)]
        for name in (other, judged.main)
    ]
    if rows.times is not None and len(rows.places) > 1:
        series = [[_by_moment(judged, each, np.array(rows.times))] for each in series]
    gains = [theirs - mine for theirs, mine in zip(*series, strict=True)]
    value, low, high = _interval(gains, judged, rows)
    lost, against = (float(sum(table.mean() for table in each)) for each in (series[1], series[0]))
    a_year = _a_year(rows.times, judged.dates)
    high = min(high, against)  # a loss is never below 0, so a saving is never more than the loss of the other rule
    return Saving(client, other, value, plain(low), plain(high), lost, against, unit, a_year)


def _interval(gains: Sequence[np.ndarray], judged: Judged, rows: _Rows) -> tuple[float, float, float]:
    """The sum over clients of their means, and its ends; ``gains`` are (starts, rows) of each client, or of all together."""
    if rows.times is None:
        return interval_of_sum(gains, rows.alike, judged.confidence)
    [table] = gains
    table = np.tile(table.mean(axis=0), (ENOUGH_STARTS, 1)) if judged.once else table
    return interval(table, judged.confidence, ordered=True, groups=np.array(rows.times))


def _times(client: Client) -> np.ndarray:
    assert client.times is not None, "it was asked before"
    return np.asarray(client.times, np.float64)


def _by_moment(judged: Judged, tables: Sequence[np.ndarray], moments: np.ndarray) -> np.ndarray:
    """The sum over clients at each moment, (starts, moments)."""
    total = np.zeros((len(moments), len(tables[0])))
    for client, table in zip(judged.test, tables, strict=True):
        np.add.at(total, np.searchsorted(moments, _times(client)), table.T)
    return total.T


def _a_year(times: Sequence[float] | None, dates: bool) -> float | None:
    """Rows in a year at the rate of these; None for a test of less than four weeks."""
    if times is None or not dates or len(times) < 2:
        return None
    days = (times[-1] - times[0]) / DAY
    rate = (len(times) - 1) / days if days > 0 else math.inf
    return YEAR * rate if len(times) / rate >= FEWEST_DAYS else None


def over_time(judged: Judged, now: str, choices: Backtest | None, rules: Mapping[str, str] | None) -> OverTime | None:
    """The test rows in their order: their losses, the refits, and the decisions."""
    if not judged.ordered:
        return None
    moments = np.unique(np.concatenate([_times(client) for client in judged.test]))
    stretches = np.array_split(np.arange(len(moments)), min(len(moments), STRETCHES))
    ends = [shown_moment(float(moments[some[-1]]), judged.dates) for some in stretches]
    names = [client.name for client in judged.test]
    first, last = (shown_moment(float(moments[place]), judged.dates) for place in (0, -1))
    days = (float(moments[-1]) - float(moments[0])) / DAY if judged.dates else None
    result = OverTime(first, last, len(moments), days, tuple(ends), tuple(_courses(judged, now, moments, stretches)))
    if choices is None:
        return result
    refits = [choice for choice in choices.choices if choice.origin >= choices.timeline.start]
    shown = [RefitTime(choices.timeline.shown(choice.origin), dict(zip(names, choice.rules, strict=True))) for choice in refits]
    finite_ranges = {name: value for name, value in choices.ranges.items() if math.isfinite(value)}
    decided = tuple(_decided(choices, place) for place in range(len(names)) if choices.clients[place].c.shape[1] <= MOST_ITEMS)
    return replace(
        result, refits=tuple(shown), decided=decided, rules=dict(rules or {}), held=finite_ranges, share=choices.share
    )


def _courses(judged: Judged, now: str, moments: np.ndarray, stretches: Sequence[np.ndarray]) -> list[Course]:
    """Losses of all together, and of each client: in money if there is a unit, else in shares of the best possible result."""
    units = [judged.unit, *(judged.units.get(client.name, "") for client in judged.test)]
    names = ["", *(client.name for client in judged.test)]
    lines = [_lines(judged, method, moments) for method in (judged.main, now)]
    courses = [
        Course(name, _stretched(lines[0][number], stretches), _stretched(lines[1][number], stretches), unit)
        for number, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    return courses if len(judged.test) > 1 else courses[1:]


def _lines(judged: Judged, method: str, moments: np.ndarray) -> list[np.ndarray]:
    """Regrets at each moment, of all together and of each client; NaN if there is no row."""
    money, shares = np.full((2, len(judged.test), len(moments)), np.nan)
    for place, client in enumerate(judged.test):
        where = np.searchsorted(moments, _times(client))
        money[place, where] = 0.0
        np.add.at(money[place], where, judged.lost(method, place).mean(axis=0))
        shares[place] = money[place] / (float(client.z_star_size.mean()) or 1.0)
    total = np.nansum(money, axis=0) if judged.unit else np.nansum(shares, axis=0) / len(judged.test)
    lines = [
        line if judged.units.get(member.name) else part for member, line, part in zip(judged.test, money, shares, strict=True)
    ]
    return [total, *lines]


def _stretched(line: np.ndarray, stretches: Sequence[np.ndarray]) -> tuple[float | None, ...]:
    """Sums of stretches, to four digits: they are only looked at."""
    parts = [line[some] for some in stretches]
    return tuple(None if np.isnan(part).all() else float(f"{np.nansum(part):.4g}") for part in parts)


def _decided(choices: Backtest, place: int) -> DecidedRows:
    """The last rows of a client: decisions on the items whose costs it predicts."""
    client, timeline = choices.clients[place], choices.timeline
    some = choices.reported(place)
    most = max(min(SHOWN_ROWS, ALL_ROWS // len(choices.clients)), 7)
    some = slice(max(some.start, some.stop - most), some.stop)
    width = client.c.shape[1]
    times = timeline.times[place][len(timeline.times[place]) - client.n :][some]
    items = client.cost_names or tuple(f"item {number}" for number in range(1, width + 1))
    return DecidedRows(
        client.name,
        tuple(map(str, items)),
        tuple(shown_moment(float(when), timeline.dates) for when in times),
        _plain(choices.spans[place].decisions[some, :width]),
        _plain(optima([client])[0][some, :width]),
    )


def _plain(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.3g}") + 0.0 for value in row) for row in np.asarray(table, np.float64))
