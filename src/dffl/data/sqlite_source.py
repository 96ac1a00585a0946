"""Tables that a query to an SQLite file gives. Nothing is ever written."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from dffl.data.coding import composed_name
from dffl.data.sources import require_file
from dffl.data.tables import _checked_names

READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33)  # 33 is SQLITE_RECURSIVE
MAGIC = b"SQLite format 3\0"


class SqliteSource:
    """The rows of a query, in the order in which the database gives them; messages count them from 1."""

    def __init__(self, path: Path, query: str):
        require_file(path)
        self.path, self.query, self.name = path, query, f"{path} (query)"
        self._frame = _answer(path, query)
        self.columns = _checked_names(path, [composed_name(name) for name in self._frame.columns])
        self._frame.columns = self.columns

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        return self._frame[list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def _answer(path: Path, query: str) -> pd.DataFrame:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path}: is not an SQLite database")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            base.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
            cursor = base.execute(query)
            if cursor.description is None:
                raise ValueError(f"{path}: query must be a SELECT, found {query!r:.80}")
            names = [column[0] for column in cursor.description]
            rows: list[Any] = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
        raise ValueError(f"{path}: the query fails ({error}): {query!r:.80}") from None
    frame = pd.DataFrame({place: [row[place] for row in rows] for place in range(len(names))})
    return frame.set_axis(names, axis=1)
