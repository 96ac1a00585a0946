"""All that is wrong with a description, collected and told at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType


class DescriptionError(ValueError):
    """What is wrong with a federation that a file describes: one line for each problem."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems
        """The lines, each with its file and key, or its file, line and column."""


class Problems:
    """The problems found so far; a reader adds to them and continues, so that a user can correct all of them at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: str) -> None:
        """Add one problem; a message of several lines becomes one."""
        line = " ".join(line.split("\n")).strip()
        if line not in self.lines:  # two clients of one table may meet the same cell
            self.lines.append(line)

    @contextmanager
    def catching(self, where: str = "") -> Iterator[None]:
        """Add what is refused inside as a problem, preceded by its place, and continue after the block."""
        try:
            yield
        except DescriptionError as error:
            for line in error.problems:
                self.add(line)
        except ValueError as error:
            self.add(f"{where}: {error}" if where else str(error))

    def stop(self) -> None:
        """Raise what was found, if anything was."""
        if self.lines:
            raise DescriptionError(self.lines)


@contextmanager
def named_at(where: str, words: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """What is refused inside is refused, preceded by its place, and with some words replaced."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for old, new in words.items():
            text = text.replace(old, new)
        raise ValueError(f"{where}: {text}") from None
