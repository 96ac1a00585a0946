"""Calls a function for each row of costs and checks its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Asked = Callable[[np.ndarray], Any]


class RowError(ValueError):
    """An error, and the row of the costs at which it occurred; for several rows at once, the first of them."""

    def __init__(self, row: int, words: str, last: int | None = None):
        super().__init__(row, words, last)
        self.row, self.words, self.last = row, words, last

    def __str__(self) -> str:
        rows = f"row {self.row}" if self.last in (None, self.row) else f"rows {self.row} to {self.last}"
        return f"{rows}: {self.words}"

    def shifted(self, by: int) -> RowError:
        """The same error with another first row."""
        return RowError(self.row + by, self.words, None if self.last is None else self.last + by)


def answers(function: Asked, batched: bool, rows: np.ndarray) -> Iterator[np.ndarray]:
    """One checked minimiser (d,) for each row; all rows (n, d) at once if the function is batched."""
    if batched:
        last = len(rows) - 1
        yield from _checked(_asked(function, rows.copy(), 0, last), rows.shape, 0, last)
        return
    for number, row in enumerate(rows):
        # A copy: a function may change its arguments.
        yield _checked(_asked(function, row.copy(), number), row.shape, number)


def in_one_line(error: BaseException) -> str:
    """The kind of an exception and its words."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def _asked(function: Asked, costs: np.ndarray, row: int, last: int | None = None) -> Any:
    try:
        return function(costs)
    except (Exception, SystemExit) as error:  # any error of a function is reported as the function's own
        raise RowError(row, in_one_line(error), last) from None


def _checked(answer: Any, shape: tuple[int, ...], row: int, last: int | None = None) -> np.ndarray:
    wanted = (
        f"its answer must be {shape[0]} numbers" if last is None else f"its answer must be a table of numbers of shape {shape}"
    )
    try:
        array = np.asarray(answer)
    except Exception:  # lists of different lengths, or an object that refuses to be an array
        raise RowError(row, f"{wanted}, found {answer!r:.80}", last) from None
    if array.dtype.kind not in "fiub":
        raise RowError(row, f"{wanted}, found {_kind(answer)}", last)
    if array.shape != shape:
        raise RowError(row, f"{wanted}, found shape {array.shape}", last)
    # A copy again: a function may answer with one array that it changes later.
    array = np.array(array, dtype=np.float64)
    if not np.isfinite(array).all():
        at = int(np.argmax(~np.isfinite(array.reshape(-1, shape[-1])).all(axis=1)))
        raise RowError(row + at, f"its answer must be finite, found {array[~np.isfinite(array)][0]}")
    return array


def _kind(answer: Any) -> str:
    return "None" if answer is None else f"{type(answer).__name__} {' '.join(repr(answer).split()):.80}"
