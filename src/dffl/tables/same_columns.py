"""The columns that patterns choose: the same names in every table, in one order, however a table orders them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dffl.named import listed
from dffl.tables.matching import is_pattern, matching
from dffl.tables.sources import Source, require_columns


class SameColumns:
    """Features or costs; the first table that has them says which names the others must have."""

    def __init__(self, field: str, patterns: Sequence[str]):
        self.field, self.patterns = field, patterns
        self.names: list[str] = []
        self._like = ""

    @property
    def if_plain(self) -> list[str]:
        """The names, where they are known without a table."""
        return [] if any(is_pattern(one) for one in self.patterns) else list(dict.fromkeys(self.patterns))

    def of(self, source: Source, taken: Sequence[str], elsewhere: Sequence[str] = ()) -> list[str]:
        """The names, if this table has them and no others that fit. A pattern does not choose what is ``taken``.

        What is used ``elsewhere`` may be chosen, and is left out: the columns of a forecast may be listed as features too.
        """
        found = [name for name in matching(self.patterns, source.columns) if name in self.patterns or name not in taken]
        if not self.names:
            for pattern in self.patterns:
                if is_pattern(pattern) and not set(matching([pattern], source.columns)) & set(found):
                    has = f"it has {listed(source.columns, 12)}"
                    raise ValueError(f"{source.name}: no column fits {pattern!r} of federation.{self.field}; {has}")
            require_columns(source, found)
            self.names, self._like = [name for name in found if name not in elsewhere], source.name
        other = [name for name in found if name not in self.names and name not in elsewhere]
        if lacking := [name for name in self.names if name not in source.columns]:
            instead = f", and has {shown(other)} instead" if other else ""
            what = f"lacks {shown(lacking)} of federation.{self.field}, which {self._like} has{instead}"
            raise ValueError(f"{source.name}: {what}; the names must be the same at all clients")
        if other:
            what = f"has {shown(other)} of federation.{self.field}, which {self._like} lacks"
            raise ValueError(f"{source.name}: {what}; the names must be the same at all clients")
        return self.names


def shown(names: Iterable[str]) -> str:
    """Names of columns for a message."""
    return listed(map(repr, names), 8)
