"""Decisions in words: the chosen items by their names, and hours that follow each other as one range of the clock.

Only decisions that choose items have words; one or two items may be chosen in part. Amounts, such as those of a battery, are
only in the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dffl.named import listed
from dffl.sets import ConsecutiveHours, FeasibleSet, FractionalKnapsack, TopK

WHOLE = 1e-6
"""The largest distance from 0 or 1 of the entry of an item that is not chosen or chosen."""
SHOWN = 12
"""The most items or ranges in a line."""
DAY = 24 * 60
"""Minutes of a day."""
LENGTHS = (15, 30, 60)
"""The length of a period in minutes, if some periods of the day are left out."""
PERIODS_OF_A_DAY = (24, 48, 96)
"""This number of numbered prices means all periods of a day."""
CLOCK = re.compile(r"(.*?)(?<!\d)(\d\d?):(\d\d)(?:\s?-\s?\d\d?:\d\d)?")
"""A name that ends with one time, or with two."""
NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
HOURS = re.compile(r"(?:^|[^a-z])(?:h|hr|hour|stunde|std|heure)[ _.-]?$", re.IGNORECASE)
"""The prefix of the number of an hour."""
PRICE = re.compile(r"price|preis|prix|lmp", re.IGNORECASE)
SHARED = 2
"""The most items that may be chosen in part."""


def in_words(s: FeasibleSet, names: Sequence[str], maximize: bool, decisions: np.ndarray) -> list[str | None]:
    """For each decision (n, d) of a set: what it takes, by the names of its columns. None if it has no words."""
    items = Items.of(names[: s.dim], maximize, isinstance(s, TopK | ConsecutiveHours))
    shares = isinstance(s, TopK | FractionalKnapsack)
    return [items.words(decision, shares) for decision in decisions[:, : s.dim]]


class Items(NamedTuple):
    """The names of the items and, if these are periods of a day, their times."""

    names: Sequence[str]
    verb: str
    begins: Sequence[int] | None
    """Minutes after midnight at which the periods begin."""
    length: int
    """Minutes of a period."""

    @classmethod
    def of(cls, names: Sequence[str], maximize: bool, periods: bool) -> Items:
        """Names of columns, as they are read. With ``periods``, as many prices as a day has periods are those of a day."""
        priced = periods and all(PRICE.search(name) for name in names)
        verb = ("sell" if maximize else "buy") if priced else "choose"
        begins = _times(names) or _hours(names, priced)
        if begins is None:
            return cls(names, verb, None, 0)
        gaps = {later - earlier for earlier, later in pairwise(begins)}
        length = min(gaps, default=60)
        usual = len(gaps) <= 1 or (length in LENGTHS and all(gap % length == 0 for gap in gaps))
        fits = usual and begins[-1] + length <= DAY
        return cls(names, verb, begins, length) if fits else cls(names, verb, None, 0)

    def words(self, decision: np.ndarray, shares: bool) -> str | None:
        """What a decision (d,) takes; None if it does not choose items."""
        partly = np.flatnonzero(np.abs(decision - np.round(decision)) > WHOLE).tolist()
        chosen = np.flatnonzero(np.abs(decision - 1) <= WHOLE).tolist()
        if decision.min(initial=0) < -WHOLE or decision.max(initial=0) > 1 + WHOLE or len(partly) > SHARED * shares:
            return None
        parts = listed(self._parts(chosen), SHOWN) if chosen else ""
        some = [f"{decision[place]:.0%} of {self._parts([place])[0]}" for place in partly]
        return f"{self.verb} {', '.join([*([parts] if parts else []), *some]) or 'nothing'}"

    def _parts(self, places: list[int]) -> list[str]:
        return self._ranges(places) if self.begins is not None else self._named(places)

    def _ranges(self, places: list[int]) -> list[str]:
        assert self.begins is not None, "it was asked"
        starts = [self.begins[place] for place in places]
        blocks = _blocks(starts, self.length)
        return [f"{_clock(starts[first])}-{_clock(starts[last] + self.length)}" for first, last in blocks]

    def _named(self, places: list[int]) -> list[str]:
        """The names; of three or more that are numbered consecutively only the first and the last."""
        matches = [NUMBERED.fullmatch(self.names[place]) for place in places]
        numbers = [int(match[2]) for match in matches if match is not None]
        alike = len(numbers) == len(places) and len({(match[1], match[3]) for match in matches if match is not None}) == 1
        if not alike:
            return [self.names[place] for place in places]
        parts = []
        for first, last in _blocks(numbers, 1):
            names = [self.names[place] for place in places[first : last + 1]]
            parts += names if len(names) < 3 else [f"{names[0]} to {names[-1]}"]
        return parts


def _blocks(values: Sequence[int], step: int) -> list[tuple[int, int]]:
    """The first and the last place of each run of values that increase by one step."""
    cuts = [place for place in range(1, len(values)) if values[place] != values[place - 1] + step]
    return list(zip([0, *cuts], [*(cut - 1 for cut in cuts), len(values) - 1], strict=True))


def _times(names: Sequence[str]) -> list[int] | None:
    """The start of each period, if the names say it, as in 00:15 or price_00:15."""
    matches = [CLOCK.fullmatch(name) for name in names]
    known = [match for match in matches if match is not None]
    if len(known) < len(names) or len({match[1] for match in known}) > 1:
        return None
    return _ascending([60 * int(match[2]) + int(match[3]) for match in known if int(match[3]) < 60])


def _hours(names: Sequence[str], priced: bool) -> list[int] | None:
    """The start of numbered periods: h00 to h23 or some of them, or as many prices as a day has periods.

    With names h1 to h24, the first hour ends at one o'clock. If some hours contain neither 0 nor 24, it is unknown whether
    they are counted from 0 or from 1.
    """
    matches = [NUMBERED.fullmatch(name) for name in names]
    known = [match for match in matches if match is not None]
    if not known or len(known) < len(names) or len({(match[1], match[3]) for match in known}) > 1:
        return None
    numbers, count = [int(match[2]) for match in known], len(names)
    first, hours = numbers[0], HOURS.search(known[0][1]) or known[0][3].lower() in ("h", "uhr")
    if (priced or hours) and count in PERIODS_OF_A_DAY and numbers == list(range(first, first + count)) and first in (0, 1):
        return [(number - first) * (DAY // count) for number in numbers]
    if hours and (0 in numbers) != (24 in numbers) and max(numbers) <= 24:
        return _ascending([60 * (number - (24 in numbers)) for number in numbers])
    return None


def _ascending(minutes: list[int]) -> list[int] | None:
    return minutes if minutes and all(earlier < later for earlier, later in pairwise(minutes)) else None


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
