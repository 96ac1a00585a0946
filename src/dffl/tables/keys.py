"""The keys of a federation's file. Each is checked when it is read, and one error lists all problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from dffl.named import nearest
from dffl.randomness import checked_seed


class Keys:
    """One table of the file. ``where`` begins its messages: file, name, and the separator before a key."""

    def __init__(self, table: Mapping[str, Any], where: str, problems: Problems):
        self.table, self.where, self.problems = table, where, problems
        self._taken: list[str] = []

    def take(self, key: str, wanted: str, fits: Any, default: Any = None) -> Any:
        """A value, or the default if it is absent or wrong. ``fits`` returns whether a value is right."""
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
        """A text that is not empty, or None."""
        return self.take(key, "a text", _is_text)

    def texts(self, key: str, wanted: str) -> list[str] | None:
        """A text or a list of texts, as a list."""
        texts = self.take(key, wanted, lambda value: _is_text(value) or _are_texts(value))
        return [texts] if isinstance(texts, str) else texts

    def choice(self, key: str, allowed: Sequence[str], default: Any = None) -> Any:
        """One of some words. For any other, the message names the most similar one."""
        self._taken.append(key)
        value = self.table.get(key, default)
        if key in self.table and value not in allowed:
            self.refuse(key, f"must be {' or '.join(map(repr, allowed))}, found {value!r:.60}{nearest(value, allowed)}")
            return default
        return value

    def rest(self) -> dict[str, Any]:
        """The keys that were not read, with their values."""
        return {key: value for key, value in self.table.items() if key not in self._taken}

    def finish(self) -> None:
        """Refuse the keys that were not read."""
        allowed = list(dict.fromkeys(self._taken))
        for key in self.rest():
            self.refuse(key, f"no such key{nearest(key, allowed)} (allowed: {', '.join(allowed)})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()  # it will be printed on a terminal


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(text) for text in value)


DATABASES = ("sqlite", "duckdb")
"""The kinds of database that a query may be for."""


class DescriptionError(ValueError):
    """The problems of a federation's description: one line for each."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems
        """The lines, each with its file and key, or its file, line and column."""


class Problems:
    """The problems so far. A reader adds to them and continues, so that a user can correct all of them at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: str) -> None:
        """Add one problem; a message of several lines becomes one."""
        line = " ".join(line.split("\n")).strip()
        if line not in self.lines:  # two clients of one table may find the same cell
            self.lines.append(line)

    @contextmanager
    def catching(self, where: str = "") -> Iterator[None]:
        """Add an error of the block as a problem, with its place, and continue after the block."""
        try:
            yield
        except DescriptionError as error:
            for line in error.problems:
                self.add(line)
        except ValueError as error:
            self.add(f"{where}: {error}" if where else str(error))

    def stop(self) -> None:
        """Raise all problems, if there are any."""
        if self.lines:
            raise DescriptionError(self.lines)


@contextmanager
def named_at(where: str, words: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Add the place to an error of the block, and replace some of its words."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for old, new in words.items():
            text = text.replace(old, new)
        raise ValueError(f"{where}: {text}") from None


def is_table(value: Any) -> bool:
    """Whether a value names a table: a path, or a database and a query."""
    if isinstance(value, Mapping):
        kinds = [kind for kind in DATABASES if kind in value]
        return (
            len(kinds) == 1
            and set(value) == {kinds[0], "query"}
            and all(isinstance(text, str) and text for text in value.values())
        )
    return isinstance(value, str) and bool(value.strip())


def are_tables(value: Any) -> bool:
    """Whether it is a list of tables, as ``[[client]]`` gives."""
    return isinstance(value, list) and bool(value) and all(isinstance(table, Mapping) for table in value)


def is_seed(value: Any) -> bool:
    """Whether it is a seed."""
    try:
        return checked_seed(value) >= 0
    except ValueError:
        return False


def is_fraction(value: Any) -> bool:
    """Whether it lies between 0 and 1."""
    return isinstance(value, float) and 0 < value < 1


def are_columns(value: Any) -> bool:
    """Different names; an empty list is allowed."""
    return isinstance(value, list) and all(is_name(name) for name in value) and len(set(value)) == len(value)


def are_categories(value: Any) -> bool:
    """Lists of different texts or whole numbers, not empty."""
    return isinstance(value, Mapping) and all(
        isinstance(texts, list) and bool(texts) and all(is_category(text) for text in texts)
        and len({str(text).strip() for text in texts}) == len(texts)
        for texts in value.values()
    )  # fmt: skip


def is_category(value: Any) -> bool:
    """Whether it is a text or a whole number."""
    return is_name(value) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53)


def is_name(value: Any) -> bool:
    """Whether it is a text that can be printed."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()
