"""What an oracle on the host was asked: counts, and answers that are kept so that nothing is solved twice."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dffl.sets._errors import RowFailure

REMEMBERED_BYTES = 1 << 26
"""The most memory that the kept answers of one set take."""


@dataclass
class Calls:
    """How often an oracle was asked, and how it answered."""

    asked: int = 0
    """Cost vectors that were asked for."""
    repeated: int = 0
    """Those that had been answered before: nothing was solved."""
    limited: int = 0
    """Those that ended at a limit of nodes or of seconds: the answer is feasible, and may not be the best."""
    largest_gap: float = 0.0
    """Of those, the largest share of the objective by which a better decision may exist."""

    unproven: int = 0
    """Those with costs of such different sizes that the answer could not be proven to be the best."""
    widest: float = 1.0
    """Of those, the largest cost over the smallest one."""

    def note_unproven(self, width: float) -> None:
        """Count a call without a proof."""
        self.unproven += 1
        self.widest = max(self.widest, width)

    def note_gap(self, gap: float) -> None:
        """Count a call that ended at a limit."""
        self.limited += 1
        self.largest_gap = max(self.largest_gap, gap)

    def __sub__(self, earlier: Calls) -> Calls:
        """What has come since; the largest gap and the widest costs are those of all calls."""
        return Calls(
            asked=self.asked - earlier.asked,
            repeated=self.repeated - earlier.repeated,
            limited=self.limited - earlier.limited,
            largest_gap=self.largest_gap,
            unproven=self.unproven - earlier.unproven,
            widest=self.widest,
        )


class CallLimits:
    """Notes the calls of some oracles that end at a limit, or without a proof, while it is open; warns of each in one line."""

    def __init__(self, calls: Mapping[str, Calls], what: str):
        self._calls, self._what = calls, what
        self._before = {name: replace(counts) for name, counts in calls.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        since = {name: counts - self._before[name] for name, counts in self._calls.items()}
        limited = [
            f"{name}: {counts.limited} of {counts.asked}, gap up to {counts.largest_gap:.2%}"
            for name, counts in since.items()
            if counts.limited
        ]
        if limited:
            fix = "a better decision may exist; raise nodes= or seconds= of the set"
            warnings.warn(f"{self._what} ended at a limit ({_first(limited)}): {fix}", stacklevel=3)
        unproven = [
            f"{name}: {counts.unproven} of {counts.asked}, largest cost {counts.widest:.1e} times the smallest"
            for name, counts in since.items()
            if counts.unproven
        ]
        if unproven:
            fix = "a better decision may exist; bring penalties and prices closer together"
            warnings.warn(f"{self._what} are not proven to be the best ({_first(unproven)}): {fix}", stacklevel=3)


def _first(lines: list[str], most: int = 5) -> str:
    return "; ".join(lines[:most]) + (f"; and {len(lines) - most} more" if len(lines) > most else "")


class Remembered:
    """Answers by the exact bytes of the costs; those that were used longest ago are forgotten first."""

    def __init__(self, most_bytes: int):
        self._answers: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._most_bytes = most_bytes

    def fill(self, rows: np.ndarray, solve: Callable[[np.ndarray], np.ndarray], calls: Calls) -> np.ndarray:
        """An answer for each row: a kept one, or that of ``solve``, which is asked once for equal rows."""
        keys = [row.tobytes() for row in rows]
        new = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self._answers}
        places = sorted(new.values())
        calls.repeated += len(keys) - len(places)
        try:
            answers = dict(zip((keys[place] for place in places), solve(rows[places]), strict=True)) if places else {}
        except RowFailure as error:
            raise error.placed(places) from None
        out = []
        for key in keys:
            if key not in answers:
                answers[key] = self._answers[key]
                self._answers.move_to_end(key)
            out.append(answers[key])
        self._answers.update({keys[place]: answers[keys[place]].copy() for place in places})
        room = self._most_bytes // max(1, 2 * rows.shape[1] * rows.itemsize)
        while len(self._answers) > room:
            self._answers.popitem(last=False)
        return np.array(out)
