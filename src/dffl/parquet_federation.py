"""A federation larger than memory: rows stay in Parquet files, and a client is read when it is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dffl.batched import in_parts
from dffl.federation import Client, Federation
from dffl.named import listed
from dffl.sets import FeasibleSet

SHOWN = 5
"""Names in a line."""


class Piece(NamedTuple):
    """Rows of one client: the number of its file, the first row there, and how many follow."""

    file: int
    start: int
    rows: int


class File(NamedTuple):
    """A file as it was when the federation was opened."""

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> File:
        """As it is now."""
        now = path.stat()
        return cls(path, now.st_size, now.st_mtime_ns)


class ParquetFederation(Sequence[Client]):
    """Clients in a folder of Parquet files: one file for each client, or files with a column of clients' names.

    Opening reads the clients' names and numbers of rows. Rows are read when a round draws the client, and forgotten after it.
    """

    feature_names: tuple[str, ...]
    cost_names: tuple[str, ...]
    has_forecast, item_features = False, 0

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        features: Sequence[str],
        costs: Sequence[str],
        set: FeasibleSet | Callable[[str], FeasibleSet],
        client: str | None = None,
        maximize: bool = False,
    ):
        """Open a folder, or one file.

        - ``features``, ``costs``: the columns of x and c.
        - ``set``: the set of all clients, or a function from a client's name to its set.
        - ``client``: the column with the clients' names; rows of a client are together. It may also be in the folders' names,
          such as ``site=mill/part-0.parquet``. Without it every file is a client, named after the file.
        """
        for name, columns in (("features", features), ("costs", costs)):
            if isinstance(columns, str) or not columns or not all(isinstance(column, str) for column in columns):
                raise ValueError(f"{name} must be a list of names of columns, found {columns!r:.80}")
        if not isinstance(set, FeasibleSet) and not callable(set):
            raise ValueError(
                f"set must be a feasible set, or a function from a client's name to one, found {type(set).__name__}"
            )
        self.path, self.feature_names, self.cost_names = Path(path), tuple(features), tuple(costs)
        self._set, self._column, self._maximize = set, client, maximize
        self._files: list[File] = []
        self._opened: tuple[Any, Any, Any] = (None, None, None)
        self._decoded: tuple[Any, Any] = (None, None)
        found: dict[str, list[Piece]] = {}
        for file in _files_of(self.path, nested=client is not None):
            for name, piece in self._pieces(file):
                found.setdefault(name, []).append(piece)
        if not found:
            raise ValueError(f"{self.path}: must hold Parquet files with rows, found none")
        self.names, self._held = list(found), list(found.values())
        self.counts = [sum(piece.rows for piece in pieces) for pieces in self._held]
        self.places = {name: place for place, name in enumerate(self.names)}
        """Each name's position."""
        self.oracle_of(0)

    def _pieces(self, path: Path) -> Iterator[tuple[str, Piece]]:
        """The clients of a file and their rows, once its columns are checked."""
        file, number = tried(path, None, lambda: File.of(path)), len(self._files)
        self._files.append(file)
        folders = [part.partition("=") for part in path.relative_to(self.path).parts[:-1] if "=" in part]
        in_folders = {column: unquote(value) for column, _, value in folders}
        about = tried(path, None, lambda: pq.read_metadata(path))
        schema = about.schema.to_arrow_schema()
        owner = path.stem if self._column is None else in_folders.get(self._column)
        wanted = [*self.feature_names, *self.cost_names, *([self._column] if owner is None and self._column else [])]
        if missing := [name for name in wanted if name not in schema.names]:
            who = "" if owner is None else f" client {owner!r}:"
            raise ValueError(
                f"{path}:{who} must have the columns {listed(missing, SHOWN)}; it has {listed(schema.names, SHOWN)}"
            )
        for name in (*self.feature_names, *self.cost_names):
            kind = schema.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
                raise ValueError(f"{path}: column {name!r} must hold numbers, found {kind}")
        if owner is not None:
            if not about.num_rows:
                raise ValueError(f"{path}: client {owner!r}: must have at least one row")
            yield owner, Piece(number, 0, about.num_rows)
            return
        for name, start, rows in _runs(path, str(self._column)):
            yield name, Piece(number, start, rows)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, key: object) -> bool:
        """Whether there is a client of this name."""
        return key in self.places

    def __getitem__(self, key: Any) -> Any:
        """A client by its name or position, read now."""
        if isinstance(key, str) and key not in self.places:
            raise ValueError(f"no client {key!r} in {self.path}; it has {listed(map(repr, self.names), SHOWN)}")
        return self.client(self.places[key] if isinstance(key, str) else range(len(self))[key])

    def __iter__(self) -> Iterator[Client]:
        return map(self.client, range(len(self)))

    def __repr__(self) -> str:
        shape = f"{sum(self.counts)} samples, {self.features} features, {self.dim} decisions"
        return f"ParquetFederation({str(self.path)!r}, {len(self)} clients, {shape})"

    @property
    def features(self) -> int:
        """The number of features p."""
        return len(self.feature_names)

    @property
    def dim(self) -> int:
        """The number of decisions d."""
        return len(self.cost_names)

    def oracle_of(self, place: int) -> FeasibleSet:
        """What losses are computed on, of the client at a position."""
        return self._set_of(self.names[place]).lifted

    def oracles(self) -> Iterator[tuple[str, FeasibleSet]]:
        """The clients' names and oracles; where all have one set, only the first."""
        for place in range(1 if isinstance(self._set, FeasibleSet) else len(self)):
            yield self.names[place], self.oracle_of(place)

    def relaxed(self) -> ParquetFederation:
        """The same clients on sets without integer conditions, where they have some."""
        whole = self._set
        return self._with(_set=whole.relaxed if isinstance(whole, FeasibleSet) else lambda name: whole(name).relaxed)

    def some(self, places: Sequence[int]) -> ParquetFederation:
        """The clients at these positions, on disk."""
        names = [self.names[place] for place in places]
        return self._with(
            names=names,
            counts=[self.counts[place] for place in places],
            places={name: place for place, name in enumerate(names)},
            _held=[self._held[place] for place in places],
        )

    def _with(self, **other: Any) -> ParquetFederation:
        made = ParquetFederation.__new__(ParquetFederation)
        made.__dict__ |= self.__dict__ | other
        return made

    def read(self, places: Sequence[int]) -> Federation:
        """The clients at these positions, in memory."""
        return Federation([self.client(place) for place in places])

    def stretches(self, places: Sequence[int]) -> Iterator[Sequence[int]]:
        """The positions in order, as many at once as memory is meant to hold."""
        for part in in_parts([self.counts[place] * (self.features + self.dim) for place in places]):
            yield places[part]

    def parts(self) -> Iterator[Federation]:
        """All clients in order, as many at once as memory is meant to hold."""
        for places in self.stretches(range(len(self))):
            yield self.read(places)

    def client(self, place: int) -> Client:
        """The client at a position."""
        name, pieces = self.names[place], self._held[place]
        columns = np.concatenate([self._rows(name, piece) for piece in pieces], axis=1)
        x, c = columns[: self.features].T, columns[self.features :].T  # laid out as those of a data frame: sums round as there
        try:
            return Client(
                name, x, c, self._set_of(name), self._maximize,
                feature_names=self.feature_names, cost_names=self.cost_names,
            )  # fmt: skip
        except ValueError as error:
            raise ValueError(f"{self._files[pieces[0].file].path}: {error}") from None

    def about(self, place: int) -> tuple[str, int, FeasibleSet, bool]:
        """A client's name, number of samples, set and sense: what is known without its rows."""
        name = self.names[place]
        return name, self.counts[place], self._set_of(name).matched(self.cost_names), bool(self._maximize)

    def fingerprint(self) -> str:
        """What tells these data from others without reading them: files, their sizes and times, columns and sets."""
        files = [(str(file.path.relative_to(self.path)), file.size, file.changed) for file in self._files]
        words = [files, self.feature_names, self.cost_names, self._column, self._maximize]
        words += [(name, type(s).__name__, *_words(s.spec())) for name, s in self.oracles()]
        return hashlib.blake2b(repr(words).encode(), digest_size=16).hexdigest()

    def _set_of(self, name: str) -> FeasibleSet:
        if isinstance(self._set, FeasibleSet):
            return self._set
        found = self._set(name)
        if not isinstance(found, FeasibleSet):
            raise ValueError(f"client {name!r}: set must be a feasible set such as dffl.TopK, found {type(found).__name__}")
        return found

    def _rows(self, name: str, piece: Piece) -> np.ndarray:
        """Features and costs of a piece, (columns, rows), from a file that is as it was."""
        file = self._files[piece.file]
        now = tried(file.path, name, lambda: File.of(file.path))
        if now != file:
            raise ValueError(
                f"{file.path}: client {name!r}: the file has changed since the federation was opened; open it again"
            )
        start, table = self._table(name, piece)
        return table[:, piece.start - start : piece.start - start + piece.rows]

    def _table(self, name: str, piece: Piece) -> tuple[int, np.ndarray]:
        """The row groups that hold a piece, decoded, and the first of their rows; neighbours need not decode them again."""
        path = self._files[piece.file].path

        def decode() -> tuple[int, np.ndarray]:
            number, source, ends = self._opened
            if number != piece.file:
                source = pq.ParquetFile(path)
                sizes = [source.metadata.row_group(group).num_rows for group in range(source.metadata.num_row_groups)]
                ends = np.cumsum([0, *sizes])
                self._opened = piece.file, source, ends
            first = int(np.searchsorted(ends, piece.start, side="right")) - 1
            last = int(np.searchsorted(ends, piece.start + piece.rows, side="left"))
            known, table = self._decoded
            if known != (piece.file, first, last):
                columns = [*self.feature_names, *self.cost_names]
                read = source.read_row_groups([*range(first, last)], columns=[*dict.fromkeys(columns)], use_threads=False)
                table = np.stack([read[column].to_numpy().astype(np.float64) for column in columns])
                self._decoded = (piece.file, first, last), table
            return int(ends[first]), table

        return tried(path, name, decode)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": (None, None, None), "_decoded": (None, None)}


def tried(path: Path, client: str | None, read: Callable[[], Any]) -> Any:
    """What reading gives; its error in one line that names the file and the client."""
    try:
        return read()
    except FileNotFoundError:
        why = "the file is missing"
    except (OSError, pa.ArrowException) as error:
        why = f"cannot be read as Parquet ({(str(error).splitlines() or [type(error).__name__])[0]})"
    raise ValueError(f"{path}: {'' if client is None else f'client {client!r}: '}{why}") from None


def _files_of(path: Path, nested: bool) -> list[Path]:
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder")
    return [path] if path.is_file() else sorted(path.rglob("*.parquet") if nested else path.glob("*.parquet"))


def _runs(path: Path, column: str) -> list[tuple[str, int, int]]:
    """For each client of a file its name, first row and number of rows; rows that are apart are refused."""
    cells = tried(path, None, lambda: pq.read_table(path, columns=[column], use_threads=False))[column]
    if cells.null_count:
        raise ValueError(f"{path}: column {column!r} must name a client in every row, found {cells.null_count} empty cells")
    coded = cells.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(cells.type) else cells.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks().chunk(0)
    codes, names = coded.indices.to_numpy(zero_copy_only=False), [str(name) for name in coded.dictionary.to_pylist()]
    starts = np.flatnonzero(np.diff(codes, prepend=-1)) if len(codes) else np.empty(0, int)
    seen = [names[code] for code in codes[starts]]
    if len(set(seen)) < len(seen):
        twice = next(name for place, name in enumerate(seen) if name in seen[:place])
        raise ValueError(f"{path}: client {twice!r}: its rows must be together; sort the file by column {column!r}")
    return list(zip(seen, starts.tolist(), np.diff(starts, append=len(codes)).tolist(), strict=True))


def _words(spec: dict[str, Any]) -> list[str]:
    """A set's numbers, each as a short text."""
    return [f"{name}={hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8).hexdigest()}"
            if np.asarray(value).dtype != object else f"{name}={value!r}" for name, value in spec.items()]  # fmt: skip
