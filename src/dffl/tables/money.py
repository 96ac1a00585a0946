"""Units of sums. A decision costs a sum of costs; a row is a day, an hour, or what a federation's file calls it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

PARTS = re.compile(r"\s*/\s*|\s+per\s+")
"""The separators between the two units of a price."""
PERIODS = {"d": "day", "day": "day", "h": "hour", "hour": "hour", "week": "week", "month": "month", "year": "year"}
PER = re.compile(r"(?:(?:an?|per)\s+)?([^\W\d_][\w-]*(?: [\w-]+)*)")
ROW, MOST = "row", 30
"""The default name of a row, and the most letters of a name."""


def unit_of_sums(unit: str | None) -> str | None:
    """The unit of a sum of costs. For EUR/MWh it is EUR: decisions are amounts in the other unit."""
    if unit is None:
        return None
    first = PARTS.split(unit, maxsplit=1)[0].strip()
    return first if re.search(r"[^\W\d_]|[$€£¥]", first) else unit


def units_of_sums(units: Mapping[str, str]) -> dict[str, str]:
    """As `unit_of_sums`, for each client."""
    return {name: str(unit_of_sums(unit)) for name, unit in units.items()}


def unit_notes(where: str, units: Sequence[str]) -> list[str]:
    """One line for each unit that is a price: the unit of the sums, and the assumption behind it."""
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
    """Whether it is a name for a row, such as day."""
    return isinstance(value, str) and len(value) <= MOST and PER.fullmatch(value) is not None


def plain_per(value: str) -> str:
    """The name of a row without its article."""
    match = PER.fullmatch(value)
    assert match is not None, "it was checked"
    return match[1]


def each(per: str | None) -> str:
    """The name of a row, with its article: a day, an hour."""
    name = per or ROW
    return f"{'an' if name[0].lower() in 'aeio' or name.lower().startswith('hour') else 'a'} {name}"
