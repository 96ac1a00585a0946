"""What a careful reader would notice in a market's prices, and what is done about it: one note each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dffl.named import listed
from dffl_studies.energy.data import Panel

STUCK = 7
"""Days in a row on which one price, always the same, looks like a meter that is stuck."""
PAST = 56
"""Days of a zone before the first test day: 28 for means of the past, and 28 to train on."""
FEWEST = 10
"""The fewest test days of a zone."""
LATER = 7
"""Days by which the default first test day may be later, so that zones that lack a few days have enough before it."""
YEAR = 364
"""Days by which markets of other years are moved: whole weeks, so that weekdays stay."""


def noted(panel: Panel) -> Panel:
    """The panel with a note on everything odd in its prices."""
    return panel.noted(note for zone in panel.names for note in _odd(panel, zone))


def _odd(panel: Panel, zone: str) -> Iterator[str]:
    rows = panel.rows(zone)
    prices, dates = panel.prices[rows], panel.dates[rows]
    flat = np.ptp(prices, axis=1) == 0
    for first, last in _runs(flat[1:] & flat[:-1] & (prices[1:, 0] == prices[:-1, 0])):
        last += 1  # each place compares a day with the next
        if last - first + 1 >= STUCK:
            yield (
                f"zone {zone}: the price is {prices[first, 0]:g} in every period from {dates[first]} to {dates[last]}: "
                "is a meter stuck? these days were kept; nothing can be lost on them"
            )
    if (prices < 0).all():
        yield f"zone {zone}: all prices are negative, from {dates[0]} to {dates[-1]}: is the sign right? they were kept"


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """The first and last place of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]


def only(panel: Panel, zones: list[str]) -> Panel:
    """The panel with some of its zones."""
    some = [panel.names.index(zone) for zone in zones]
    rows = np.concatenate([np.arange(*pair) for pair in [list(pairwise(panel.starts.tolist()))[place] for place in some]])
    counts = np.diff(panel.starts)[some]
    return replace(
        panel, names=tuple(zones), starts=np.concatenate([[0], np.cumsum(counts)]), dates=panel.dates[rows],
        prices=panel.prices[rows], covariates=panel.covariates[rows], demands=panel.demands[some], places=panel.places[some],
        forecast=None if panel.forecast is None else panel.forecast[rows],
    )  # fmt: skip


def without_choice(panel: Panel, other_sets: set[str]) -> Panel:
    """The panel without zones that buy nothing, or every period: whatever they expect, they decide alike."""
    idle = {
        zone: demand
        for zone, demand in zip(panel.names, panel.demands, strict=True)
        if demand in (0, panel.periods) and zone not in other_sets
    }
    zones_left = [zone for zone in panel.names if zone not in idle]
    if not zones_left:
        raise ValueError(f"{panel.source}: every zone has a demand of 0 or of all periods: there is nothing to decide")
    notes = [
        f"zone {zone}: its demand is {demand:g} of {panel.periods} periods: there is nothing to decide, so it was left out"
        for zone, demand in idle.items()
    ]
    return (only(panel, zones_left) if idle else panel).noted(notes)


class Placed(NamedTuple):
    """A panel whose zones can be judged on the same days, and the first test day."""

    panel: Panel
    first_test: str


def side_by_side(panel: Panel) -> Panel:
    """Move the days of markets that share no day with the newest one by whole weeks, near to a year each, until they do.

    So markets of different years can be judged together: nothing that is shared depends on the day itself.
    """
    ends = {zone: (panel.dates[rows][0], panel.dates[rows][-1]) for zone, rows in panel.zones.items()}
    newest = max(last for _, last in ends.values())
    dates, notes = panel.dates.copy(), []
    for zone, (_, last) in ends.items():
        years = int((newest - last).astype(int) + YEAR // 2) // YEAR
        if years and last < min(first for first, end in ends.values() if end == newest):
            dates[panel.rows(zone)] += years * YEAR
            notes.append(f"zone {zone}: its days end {last}, before the newest market's begin: moved by {years * YEAR} days")
    return replace(panel, dates=dates).noted(notes) if notes else panel


def placed(panel: Panel, split: str | None) -> Placed:
    """The first test day, and the zones with enough days before and after it."""
    panel = side_by_side(panel)
    days = panel.days
    if split is not None:
        first = np.datetime64(split, "D")
        if not days[0] < first <= days[-1]:
            raise ValueError(f"--split must be after {days[0]} and not after {days[-1]}, found {split}")
    else:
        first = days[min(max(len(days) // 2, PAST), len(days) - 1)]
        ready = [panel.dates[rows][PAST] for rows in panel.zones.values() if rows.stop - rows.start > PAST + FEWEST]
        first = max([first, *(day for day in ready if day <= first + LATER)])  # a zone that lacks a few days is not lost
    short = {}
    for zone, rows in panel.zones.items():
        before = int((panel.dates[rows] < first).sum())
        after = rows.stop - rows.start - before
        if before < PAST or after < FEWEST:
            short[zone] = f"zone {zone} has {before} days before {first} and {after} from then on"
    zones_left = [zone for zone in panel.names if zone not in short]
    if not zones_left:
        worst = next(iter(short.values()))
        raise ValueError(f"{panel.source}: {worst}; at least {PAST} and {FEWEST} are needed; split elsewhere with --split")
    notes = [f"left out: {why}, where at least {PAST} and {FEWEST} are needed" for why in short.values()]
    return Placed((only(panel, zones_left) if short else panel).noted(notes), str(first))


def fleet(panel: Panel) -> list[str]:
    """What to say of fleets of one or two zones."""
    if len(panel.names) > 2:
        return []
    names = listed(panel.names)
    lone = "one zone" if len(panel.names) == 1 else "two zones"
    return [f"{lone} ({names}): what is shared is learned from little; compare with local models (--methods fedavg,local)"]
