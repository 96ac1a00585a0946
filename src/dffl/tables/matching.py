"""Columns by their names or by patterns with stars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

SIGNS = frozenset("*?[")


def is_pattern(text: str) -> bool:
    """Whether a text stands for several names."""
    return bool(SIGNS & set(text))


def matching(patterns: str | Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that patterns choose: in the order of the patterns, and for one pattern in the natural order of the names.

    It does not depend on the order of the columns in a file. A name that is a column stands for itself, also with a star in
    it; one that is none stays in the list, so that a check of the columns can name it.
    """
    known, found = set(columns), []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if pattern in known or not is_pattern(pattern):
            found.append(pattern)
        else:
            found += sorted((name for name in known if fnmatchcase(name, pattern)), key=natural)
    return list(dict.fromkeys(found))


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key for sorting in which price_2 comes before price_10."""
    parts = re.split(r"0*([0-9]+)", name)  # texts and numbers by turns; a longer number is a larger one
    return [(len(part), part) if number % 2 else (0, part) for number, part in enumerate(parts)], name
