"""The section ``[time]`` of a federation's file: the base of models, their features of the past, and how they are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dffl.tables.keys import Keys

BASES = ("steady", "forecast")
WAYS = ("fleet", "shrunk")
ADAPTIVE = "adaptive"
MOST = 10**6
"""The largest number of rows that a key may name."""


def read_time(keys: Keys, has_forecast: bool) -> dict[str, Any]:
    """The keys in the file, by their names; ``choose`` becomes ``choice`` and ``window``, ``ranges`` becomes ``share``."""
    values: dict[str, Any] = {"base": keys.choice("base", BASES)}
    if values["base"] == "forecast" and not has_forecast:
        keys.refuse("base", 'needs a forecast; name its columns as federation.forecast, or write base = "steady"')
    for name, what in (("lags", "[1, 2, 7]"), ("means", "[7, 14, 28]")):
        values[name] = keys.take(name, f"a list of whole numbers of rows from 1 on, such as {what}", _are_rows)
    values["known_after"] = keys.take(
        "known_after", "a whole number of rows: 0 if costs are known before the next row", _is_delay
    )
    values["refit"] = keys.take("refit", "a whole number of rows from 1 on, such as 28", _is_row)
    choose = keys.take("choose", 'a table such as { by = "fleet", window = 90 }', lambda value: isinstance(value, Mapping), {})
    inner = Keys(choose, f"{keys.where}choose.", keys.problems)
    values["choice"] = inner.choice("by", WAYS)
    values["window"] = inner.take("window", "a whole number of rows from 1 on, such as 90", _is_row)
    inner.finish()
    share = keys.take("ranges", f'"{ADAPTIVE}", or the share of costs that they are to hold, such as 0.8', _is_range)
    values["share"] = None if share == ADAPTIVE else share
    keys.finish()
    return {name: value for name, value in values.items() if value is not None}


def _is_row(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _is_delay(value: Any) -> bool:
    return (value == 0 and not isinstance(value, bool | float)) or _is_row(value)


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(_is_row(row) for row in value) and len(set(value)) == len(value)


def _is_range(value: Any) -> bool:
    return value == ADAPTIVE or (isinstance(value, float) and 0 < value < 1)
