"""Tables as people hand them in: read with the line of every row kept, so that what is wrong can be found again."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection
from lzma import LZMAError
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ZONE = ("zone", "client_name", "client_id")
"""What the column of zones may be called: ours, and the paper's authors'."""
EMPTY = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"]
"""What an empty cell may hold. A zone may be called so."""
UNREADABLE = (OSError, EOFError, ValueError, ZlibError, LZMAError, BadZipFile, pa.ArrowException)
T = TypeVar("T")


def read_table(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and the line (of Parquet: the row) that each of its rows stands in.

    Empty rows are left out, and so are columns without a name.
    """
    if not path.is_file():
        raise ValueError(f"{path}: {'a folder, not a table' if path.is_dir() else 'there is no such file'}")
    table, first = (_parquet(path), 1) if is_parquet(path) else (_csv(path), 2)
    filled = table.notna().any(axis=1).to_numpy()
    if not filled.any():
        raise ValueError(f"{path}: must have at least one row below its header, found none")
    lines = np.arange(len(table)) + first
    return (table, lines) if filled.all() else (table.loc[filled].reset_index(drop=True), lines[filled])


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its name; any other is CSV."""
    return path.suffix.lower() == ".parquet"


def as_numbers(values: pd.Series) -> pd.Series:
    """A column as numbers, NaN where a cell is empty or holds none: texts are read, moments are no numbers."""
    if pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values):
        return pd.Series(np.nan, index=values.index)
    return pd.to_numeric(values, errors="coerce")


def some(names: Collection[str], most: int = 20) -> str:
    """Names for a message, in order, with an end."""
    shown = ", ".join(sorted(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _parquet(path: Path) -> pd.DataFrame:
    """The whole file; an index that pandas has written is columns like others."""

    def read() -> pd.DataFrame:
        with pq.ParquetFile(path) as file:
            # One column after another: else a large table is in memory twice, as it is read and as it is used.
            return pd.DataFrame({name: file.read(columns=[name]).column(0).to_pandas() for name in names}, copy=False)

    names = _tried(path, "Parquet", lambda: [name for name in pq.read_schema(path).names if not _is_unnamed(name)])
    plain = _once(path, [name.strip() for name in names])
    return _tried(path, "Parquet", read).set_axis(plain, axis=1)


def _csv(path: Path) -> pd.DataFrame:
    """The whole file, with its blank lines."""
    # A column without a name gets one that no file has, and goes again.
    names = _once(path, [name or f"\0{place}" for place, name in enumerate(_header(path))])

    def read() -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path, header=0, names=names, index_col=False, skip_blank_lines=False, low_memory=False, encoding="utf-8-sig",
                dtype={name: str for name in (*ZONE, "date") if name in names},  # zone 007 stays so
                na_values={name: EMPTY[:1] if name in ZONE else EMPTY for name in names}, keep_default_na=False,
            )  # fmt: skip

    return _tried(path, "CSV", read).loc[:, [name for name in names if not _is_unnamed(name)]]


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV."""
    options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False, "skip_blank_lines": False}
    line = _tried(path, "CSV", lambda: pd.read_csv(path, encoding="utf-8-sig", **options))
    names = [name.strip() for name in line.iloc[0]]
    for sign, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and sign in names[0]:
            raise ValueError(f"{path}: has {word} between its columns; save it with commas there, and with points in decimals")
    return names


def _is_unnamed(column: str) -> bool:
    """Whether a column has no name of its own, as one of row numbers that pandas has written."""
    return not column.strip() or column.startswith(("\0", "__index_level_"))


def _once(path: Path, names: list[str]) -> list[str]:
    """The names, if each is there once."""
    if twins := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{path}: two columns are named {twins[0]!r}; rename one")
    return names


def _tried(path: Path, kind: str, read: Callable[[], T]) -> T:
    """What ``read`` returns, or one line on why it cannot."""
    fix = "write decimals with a point, texts with commas in quotes, and the names of all columns in the first line"
    try:
        return read()
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path}: its first line must name the columns, found nothing there") from None
    except pd.errors.ParserWarning:
        raise ValueError(f"{path}, line 2: has more cells than the header; {fix}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: cannot be read as {kind}, as it is not text in UTF-8; save it as CSV in UTF-8") from None
    except UNREADABLE as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if cells := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason):
            found = f"has {cells[3]} cells, where {cells[1]} were expected"
            raise ValueError(f"{path}, line {cells[2]}: {found}; {fix}") from None
        raise ValueError(f"{path}: cannot be read as {kind} ({reason})") from None
