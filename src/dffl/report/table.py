"""A table of a page: sortable columns on a screen, one block for each row on a phone, complete on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PageColumn:
    """A heading, with a note below it."""

    label: str
    note: str = ""
    numeric: bool = True
    kind: str = ""
    """A class of the style sheet."""


@dataclass(frozen=True)
class PageCell:
    """The text of a cell, and its value for sorting if that differs."""

    text: str
    value: float | str | None = None
    small: str = ""
    """The text below."""
    mark: str = ""
    """The word of a verdict, shown with its sign instead of the text."""
    sign: str = ""
    """The word of a verdict, whose sign precedes the text."""
    title: str = ""


@dataclass(frozen=True)
class PageRow:
    """The cells of a row; the first one is its heading."""

    cells: tuple[PageCell, ...]
    main: bool = False
    standing: str = ""
    """The word by which rows are filtered."""


@dataclass(frozen=True)
class PageTable:
    """A table of a page, with its place."""

    name: str
    caption: str
    columns: tuple[PageColumn, ...]
    rows: tuple[PageRow, ...]
    even: bool = False
    """Whether its columns are equally wide, because their headings are names."""

    @property
    def long(self) -> bool:
        """Whether it is left out on paper because a chart has the same numbers."""
        return len(self.rows) > MOST_ON_PAPER


MOST_ON_PAPER = 30
MOST_COLUMNS = 8
"""The most columns of numbers that fit a page; more are in further tables."""


def number(value: float | None, text: str, small: str = "") -> PageCell:
    """A cell that is sorted by its value; one without a value is sorted last."""
    return PageCell(text, "" if value is None else value, small)


def parts(names: Sequence[str], most: int = MOST_COLUMNS) -> list[list[str]]:
    """Columns in parts of nearly equal length, so that none is cut."""
    if not names:
        return []
    count = -(-len(names) // most)
    length = -(-len(names) // count)
    return [list(names[place : place + length]) for place in range(0, len(names), length)]
