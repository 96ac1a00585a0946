"""Units of sums: what decisions cost is a sum of costs, and a row is a day, an hour or what a federation's file calls it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

PARTS = re.compile(r"\s*/\s*|\s+per\s+")
"""What stands between the two units of a price."""
PERIODS = {"d": "day", "day": "day", "h": "hour", "hour": "hour", "week": "week", "month": "month", "year": "year"}
PER = re.compile(r"(?:(?:an?|per)\s+)?([^\W\d_][\w-]*(?: [\w-]+)*)")
ROW, MOST = "row", 30
"""What a row is called without a name of its own, and the most letters of one."""


def unit_of_sums(unit: str | None) -> str | None:
    """The unit of what decisions cost. That of EUR/MWh is EUR: what is decided is in the other unit."""
    if unit is None:
        return None
    first = PARTS.split(unit, maxsplit=1)[0].strip()
    return first if re.search(r"[^\W\d_]|[$€£¥]", first) else unit


def units_of_sums(units: Mapping[str, str]) -> dict[str, str]:
    """As `unit_of_sums`, for each client."""
    return {name: str(unit_of_sums(unit)) for name, unit in units.items()}


def unit_notes(where: str, units: Sequence[str]) -> list[str]:
    """One line for each unit that is a price: in which unit sums are shown, and what that takes for granted."""
    notes = []
    for unit in dict.fromkeys(units):
        money = unit_of_sums(unit)
        if money == unit:
            continue
        other = PARTS.split(unit, maxsplit=1)[1].strip()
        fix = f'what decisions cost is shown in {money}, where a decision of 1 is one {other}; else write unit = "{money}"'
        if other.lower() in PERIODS:
            fix = f'write unit = "{money}" and per = "{PERIODS[other.lower()]}"'
        notes.append(f"{where}: unit {unit!r} has two parts; {fix}")
    return notes


def is_per(value: Any) -> bool:
    """Whether it is a name of what a row is, such as day."""
    return isinstance(value, str) and len(value) <= MOST and PER.fullmatch(value) is not None


def plain_per(value: str) -> str:
    """Such a name without an article."""
    found = PER.fullmatch(value)
    assert found is not None, "it was checked"
    return found[1]


def each(per: str | None) -> str:
    """What a row is, with its article: a day, an hour."""
    name = per or ROW
    return f"{'an' if name[0].lower() in 'aeio' or name.lower().startswith('hour') else 'a'} {name}"
