"""Tables of many lengths, cut into tiles of one length, so that row-by-row computations need few compiled programs.

XLA compiles a program for every shape, and clients have all sizes. So their tables are cut into tiles with equal numbers of
rows, each with its owner (a set, a predictor), and a dispatch takes a rounded number of tiles. The last tile of a table is
filled up; results for these rows are not used.

The rounding of XLA depends on the size of a dispatch. The size therefore follows from the client's own size, as if it were
alone: its results are the same to the last bit, whatever else is computed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dffl.cache import free_programs_in_time
from dffl.shapes import round_up

HEIGHTS = (256, 64, 16)
"""The possible numbers of rows of a tile. With fewer than eight, XLA uses other instructions, which round differently."""
LARGE = 4096
"""XLA computes arrays with at least this many numbers in another way than smaller ones (jax 0.10, on a CPU)."""
BYTES = 1 << 26
"""The most memory for the owners of a dispatch; each is repeated for its tiles."""

Program = Callable[..., Any]
"""From a stack of owners (tiles, ...) and tables (tiles, rows, ...) to results (tiles, rows, ...)."""


def over_tiles(
    program: Program, owners: Sequence[Any], tables: Sequence[Sequence[np.ndarray]], width: int | Sequence[int]
) -> list[np.ndarray]:
    """``program(owner, *table)`` row by row for every owner and its tables; owners of one form are computed together.

    - ``tables``: for each owner, one or more arrays with equal numbers of rows, at least one.
    - ``width``: how many numbers a row adds up, for all owners or for each.

    Rows that fill up a tile are copies of one of its rows. For owners that compute ``on_host`` they are NaN, so that no solver
    is asked for them.
    """
    free_programs_in_time()
    results: dict[int, np.ndarray] = {}
    flat = [Flat(owner) for owner in owners]
    widths = [width] * len(tables) if isinstance(width, int) else width
    rooms = [room(len(table[0]), wide) for table, wide in zip(tables, widths, strict=True)]
    for places in places_by((part.form, space) for part, space in zip(flat, rooms, strict=True)):
        mine, first = [tables[place] for place in places], places[0]
        tiles = Tiles([len(table[0]) for table in mine], rooms[first], blank=getattr(owners[first], "on_host", False))
        parts = _alike(program, [flat[place] for place in places], mine, tiles)
        results |= dict(zip(places, parts, strict=True))
    return [results[place] for place in range(len(owners))]


def room(n: int, width: int) -> tuple[int, int]:
    """The fewest and the most rows of a dispatch that rounds like one of n rows, each with ``width`` numbers."""
    if n * width < LARGE:
        return 1, (LARGE - 1) // width
    return (-(-LARGE // width), LARGE // 2) if n < LARGE else (LARGE, LARGE)


def _alike(program: Program, owners: list[Flat], tables: list[Sequence[np.ndarray]], tiles: Tiles) -> list[np.ndarray]:
    """`over_tiles` for owners of one form."""
    columns = [tiles.laid_out(column) for column in zip(*tables, strict=True)]
    answers = []
    for some in tiles.dispatches(BYTES // max(1, owners[0].size)):
        stack = owners[0].stack([owners[place] for place in tiles.owner[some]])
        answers.append(np.asarray(program(stack, *(column[tiles.index[some]] for column in columns))))
    return tiles.joined(np.concatenate(answers))


class Tiles:
    """The positions of the rows of some tables in tiles of one height."""

    def __init__(self, counts: Sequence[int], room: tuple[int, int], blank: bool = False):
        sizes, (fewest, most) = np.asarray(counts), room
        self.blank = blank
        self.height = _height(sizes, most)
        self._fewest, self._most = -(-fewest // self.height), most // self.height
        each = -(-sizes // self.height)
        self.owner = np.repeat(np.arange(len(sizes)), each)
        """For each tile, the number of its table."""
        number = np.arange(len(self.owner)) - np.repeat(np.cumsum(each) - each, each)
        row = number[:, None] * self.height + np.arange(self.height)
        self._real = row < sizes[self.owner, None]
        ends = np.cumsum(sizes)
        spare = ends[-1] if blank else ends[self.owner, None] - 1
        self.index = np.where(self._real, (ends - sizes)[self.owner, None] + row, spare)
        """For each tile, its rows, counted over all tables."""
        self._cuts = ends[:-1]

    def __len__(self) -> int:
        return len(self.owner)

    def dispatches(self, most: int) -> Iterator[np.ndarray]:
        """The tiles of each dispatch, by number: equally many, up to a limit. At the end, the last tile is repeated."""
        most = max(1, min(most, self._most))
        even = -(-len(self) // -(-len(self) // most))
        size = min(most, max(self._fewest, round_up(even, bits=2)))
        for start in range(0, len(self), size):
            yield np.minimum(np.arange(start, start + size), len(self) - 1)

    def laid_out(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The tables as one table, for `index`."""
        if self.blank:
            tables = [*tables, np.full((1, *tables[0].shape[1:]), np.nan)]
        return np.concatenate(tables)

    def joined(self, tiles: np.ndarray) -> list[np.ndarray]:
        """The inverse of the cut: the tables of which the tiles were made."""
        return np.split(tiles[: len(self)][self._real], self._cuts)


def _height(sizes: np.ndarray, most: int) -> int:
    """The highest tiles for which filling up adds at most half as many rows."""
    heights = [height for height in HEIGHTS if height <= most]
    fair = [height for height in heights if height * np.sum(-(-sizes // height)) <= 1.5 * sizes.sum()]
    return (fair or heights[-1:] or HEIGHTS[-1:])[0]


class Flat:
    """An owner in parts: its arrays, and the ``form`` that owners must have in common to be stacked."""

    def __init__(self, owner: Any):
        leaves, self._treedef = jax.tree.flatten(owner)
        self._leaves = [_on_host(leaf) if is_array(leaf) else leaf for leaf in leaves]
        self.form: Hashable = (self._treedef, tuple(_kind(leaf) for leaf in self._leaves))
        try:
            hash(self.form)
        except TypeError:  # what cannot be compared is equal only to itself
            self.form = id(owner)

    @property
    def size(self) -> int:
        """The bytes of its arrays."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in self._leaves if is_array(leaf))

    def stack(self, owners: Sequence[Flat]) -> Any:
        """Owners of this form as one: every array gets a leading axis, and the rest is that of this owner."""
        columns = zip(*(owner._leaves for owner in owners), strict=True)
        return jax.tree.unflatten(self._treedef, [_stacked(column) for column in columns])


def _kind(leaf: Any) -> Hashable:
    return (leaf.shape, leaf.dtype) if is_array(leaf) else (type(leaf), leaf)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of NumPy or JAX."""
    return isinstance(leaf, np.ndarray | jax.Array)


def places_by(keys: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal keys, together: owners of one shape share a compiled program."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _on_host(array: Any) -> Any:
    """The array as one of NumPy, if it has numbers: stacking these needs no compilation."""
    return array if jnp.issubdtype(array.dtype, jax.dtypes.extended) else np.asarray(array)


def _stacked(leaves: Sequence[Any]) -> Any:
    first = leaves[0]
    return np.stack(leaves) if isinstance(first, np.ndarray) else jnp.stack(leaves) if is_array(first) else first
