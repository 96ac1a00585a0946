"""The tables of a federation's file: every key is checked when it is taken, and those that nobody takes are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dffl.data.problems import Problems
from dffl.named import nearest


class Keys:
    """One table of the file; ``where`` is the beginning of messages: its file and name, and the sign before a key."""

    def __init__(self, table: Mapping[str, Any], where: str, problems: Problems):
        self.table, self.where, self.problems = table, where, problems
        self._taken: list[str] = []

    def take(self, key: str, wanted: str, fits: Any, default: Any = None) -> Any:
        """A value, or the default if it is absent or wrong; ``fits`` says whether it is right."""
        self._taken.append(key)
        if key not in self.table:
            return default
        value = self.table[key]
        if fits(value):
            return value
        self.refuse(key, f"must be {wanted}, found {value!r:.60}")
        return default

    def refuse(self, key: str, why: str) -> None:
        """Add a problem of a key."""
        self.problems.add(f"{self.where}{key}: {why}")

    def text(self, key: str) -> str | None:
        """A text that is not empty."""
        return self.take(key, "a text", _is_text)

    def texts(self, key: str, wanted: str) -> list[str] | None:
        """A text or a list of texts, as a list."""
        found = self.take(key, wanted, lambda value: _is_text(value) or _are_texts(value))
        return [found] if isinstance(found, str) else found

    def choice(self, key: str, allowed: Sequence[str], default: Any = None) -> Any:
        """One of some words; another is named with the nearest of them."""
        self._taken.append(key)
        value = self.table.get(key, default)
        if key in self.table and value not in allowed:
            self.refuse(key, f"must be {' or '.join(map(repr, allowed))}, found {value!r:.60}{nearest(value, allowed)}")
            return default
        return value

    def rest(self) -> dict[str, Any]:
        """The values that nobody has taken."""
        return {key: value for key, value in self.table.items() if key not in self._taken}

    def finish(self) -> None:
        """Refuse the keys that nobody has taken."""
        allowed = list(dict.fromkeys(self._taken))
        for key in self.rest():
            self.refuse(key, f"no such key{nearest(key, allowed)} (allowed: {', '.join(allowed)})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()  # it reaches a terminal


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(one) for one in value)
