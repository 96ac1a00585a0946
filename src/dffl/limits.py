"""Limits for the files of strangers, checked before anything is built from them.

A model file is data, not code. Even so, a few bytes can ask for a huge set, a long search or a column of billions of rows.
Every such request is compared with one of these limits first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dffl.checks import require_number


@dataclass(frozen=True)
class Limits:
    """The limits of a file. ``dffl.load(path, limits={"clients": 50_000})`` raises some of them."""

    bytes: float = 2**28
    """The size of the file."""
    parts: float = 60_000
    """Arrays and other parts of the file."""
    values: float = 1_000_000
    """Values in the file's description."""
    clients: float = 10_000
    dim: float = 20_000
    """Features, and decisions of one client."""
    models: float = 1_000
    """Predictors inside one client's predictor, and those inside all predictors of different forms together."""
    cells: float = 10_000_000
    """Numbers of one set, of the history, and of one step of a prediction for two rows."""
    numbers: float = 20_000_000
    """Numbers and decisions of all different sets together."""
    texts: float = 4_000_000
    """Characters of all different model files (LP, MPS) together: they are parsed when the fit is read."""
    nodes: float = 1_000_000
    """Nodes of branch and bound for one decision."""
    seconds: float = 600.0
    """Seconds of the solver for one decision, and until a set is ready for the first one."""

    def __post_init__(self) -> None:
        for field in fields(self):
            require_number(f"limits: {field.name}", getattr(self, field.name), 0.0, math.inf, "above 0", closed=True)

    @classmethod
    def of(cls, value: Limits | Mapping[str, float] | None) -> Self:
        """The usual limits, with the changes in a mapping."""
        if isinstance(value, cls):
            return value
        known = [field.name for field in fields(cls)]
        if value is not None and not (isinstance(value, Mapping) and set(value) <= set(known)):
            raise ValueError(f"limits must be a mapping of some of {', '.join(known)} to numbers, found {value!r:.80}")
        return cls(**(value or {}))

    def check(self, name: str, asked: Any, what: str) -> None:
        """Refuse a value above the limit of this name. Values that are not numbers are checked where they are used."""
        try:
            number = float(asked)
        except (TypeError, ValueError):
            return
        except OverflowError:  # a whole number with hundreds of digits
            number = math.inf
        if number <= getattr(self, name):
            return
        fix = f"if you trust its origin, load it with limits={{{name!r}: {_short(number)}}}"
        raise ValueError(f"it asks for {_short(number)} {what}, and at most {getattr(self, name):,} are allowed; {fix}")


class Asked:
    """What the parts of one file have asked for so far: each sum has the limit of its name."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.sets: dict[Any, Any] = {}
        """The sets that are built, by their content: equal ones of several parts are one."""
        self.texts = set[str]()
        """The model files that are counted, as the file describes them."""
        self._sums: dict[str, float] = {}

    def add(self, name: str, amount: float, what: str) -> None:
        """Count an amount, and refuse a sum above the limit of this name."""
        self._sums[what] = self._sums.get(what, 0.0) + amount
        self.limits.check(name, self._sums[what], what)


def _short(number: float) -> str:
    return str(int(number)) if number < 1e15 and number == int(number) else f"{number:g}"
