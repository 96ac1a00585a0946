"""``[items]`` of a federation's file: columns of features that each cost has for itself, and features that never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dffl.forecasts import chosen, paired
from dffl.tables.keys import Keys, named_at
from dffl.tables.sources import Source

SAID = {"forecast column": "column", "would forecast": "would belong to", " forecast ": " "}
"""What messages of a forecast say, in the words of items."""


def read_items(keys: Keys) -> tuple[list[str], dict[str, Any]]:
    """The patterns of columns, and for each feature that never changes its values, as the file has them."""
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
    """The columns of items; the first table that has them says which names the others must have."""

    def __init__(self, where: str, patterns: Sequence[str]):
        self.where, self.patterns = f"{where}: items.features", patterns
        self.names: list[str] = []
        """Item after item, in the order of the costs."""

    def of(self, source: Source, taken: Sequence[str]) -> dict[str, list[str]]:
        """The columns of each pattern, which are not among those that are ``taken``."""
        columns = [name for name in source.columns if name not in taken]
        found = {pattern: chosen(f"{source.name}: items.features", pattern, columns) for pattern in self.patterns}
        names = [name for own in found.values() for name in own]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise ValueError(f"{self.where}: two patterns choose the column {twice!r}; a column is one feature of one item")
        return found

    def in_cost_order(self, source: Source, found: Mapping[str, list[str]], costs: Sequence[str]) -> list[str]:
        """The columns item after item."""
        own = []
        for pattern, names in found.items():
            with named_at(f"{source.name}: items.features", SAID):
                own.append(paired(repr(pattern), names, costs, len(costs), pattern))
        made = [name for item in zip(*own, strict=True) for name in item]
        if self.names and made != self.names:
            mine, other = next(pair for pair in zip(self.names, made, strict=True) if pair[0] != pair[1])
            what = f"has {other!r} where another table has {mine!r}; the names must be the same at all clients"
            raise ValueError(f"{source.name}: items.features: {what}")
        self.names = made
        return made
