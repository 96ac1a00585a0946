"""``[items]`` of a federation's file: columns with features of each cost, and features of costs that never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dffl.forecasts import chosen, paired
from dffl.tables.keys import Keys, named_at
from dffl.tables.sources import Source

SAID = {"forecast column": "column", "would forecast": "would belong to", " forecast ": " "}
"""Replaces words of messages about forecasts by those about items."""


def read_items(keys: Keys) -> tuple[list[str], dict[str, Any]]:
    """The patterns of columns and, for each feature that never changes, its values as in the file."""
    patterns = keys.texts("features", 'patterns such as ["wind_*", "load_*"], each with one column for each cost') or []
    for pattern in patterns:
        if pattern.count("*") != 1:
            keys.refuse("features", f"each must have one star, such as 'wind_*', found {pattern!r:.60}")
    if len(set(patterns)) < len(patterns):
        keys.refuse("features", "a pattern is listed twice; remove one")
    known = keys.take(
        "known",
        'a table such as { weight = { file = "items.csv", column = "weight" } }',
        lambda value: isinstance(value, Mapping),
        {},
    )
    keys.finish()
    if not keys.table.get("features") and not keys.table.get("known"):
        keys.refuse("features", 'is missing; give features, such as ["wind_*"], or known')
    return patterns, dict(known)


class ItemColumns:
    """The columns of items. The first table sets their names, and all other tables must have the same."""

    def __init__(self, where: str, patterns: Sequence[str]):
        self.where, self.patterns = f"{where}: items.features", patterns
        self.names: list[str] = []
        """The names, item after item, in the order of the costs."""

    def of(self, source: Source, taken: Sequence[str]) -> dict[str, list[str]]:
        """The columns that each pattern matches, without those that are ``taken``."""
        columns = [name for name in source.columns if name not in taken]
        columns_of = {pattern: chosen(f"{source.name}: items.features", pattern, columns) for pattern in self.patterns}
        names = [name for matched in columns_of.values() for name in matched]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise ValueError(f"{self.where}: two patterns choose the column {twice!r}; a column is one feature of one item")
        return columns_of

    def in_cost_order(self, source: Source, columns_of: Mapping[str, list[str]], costs: Sequence[str]) -> list[str]:
        """The columns, item after item."""
        by_pattern = []
        for pattern, names in columns_of.items():
            with named_at(f"{source.name}: items.features", SAID):
                by_pattern.append(paired(repr(pattern), names, costs, len(costs), pattern))
        ordered = [name for item in zip(*by_pattern, strict=True) for name in item]
        if self.names and ordered != self.names:
            mine, other = next(pair for pair in zip(self.names, ordered, strict=True) if pair[0] != pair[1])
            what = f"has {other!r} where another table has {mine!r}; the names must be the same at all clients"
            raise ValueError(f"{source.name}: items.features: {what}")
        self.names = ordered
        return ordered
