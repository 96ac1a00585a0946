"""Tables in CSV, also compressed. Arrow reads them fast. The line of a row is found in a second pass, only if a message needs
it.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from dffl.cells import BLANK, DECIMAL_COMMA, EMPTY, NUMBER, composed_name
from dffl.tables.binary_sources import prepared
from dffl.tables.sources import UNREADABLE, checked_names, is_unnamed

SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}
OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: io.BufferedReader(pa.input_stream(str(path), compression="zstd")),
}
FOREIGN = {
    b"PK\x03\x04": "a zip or Excel file",
    b"\x1f\x8b": "compressed by gzip",
    b"PAR1": "Parquet",
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"SQLite": "an SQLite database",
}
"""The first bytes of files that are not CSV, whatever their names end with."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")
EXCEL_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?(sep=[,;\t|])"?\s.*', re.IGNORECASE | re.DOTALL)
"""A first line that tells Excel what stands between the columns."""
FIX = "write decimals with a point, texts with commas in quotes, and the names of all columns in the first line"
UTF8_FIX = "cannot be read as CSV, as it is not text in UTF-8; save it as CSV in UTF-8"
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
POINTED_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
HEXADECIMAL = "^ *[+-]?0[xX]"
CHUNK = 1 << 24


def _may_be_thousands(column: Any) -> bool:
    """Whether all numbers of a column could be thousands whose separating point was read as a decimal point."""
    if not pa.types.is_floating(column.type):
        return False
    numbers = column.drop_null().to_numpy()
    parts = np.abs(numbers[numbers != np.round(numbers)])
    return bool(
        len(numbers) and ((parts >= 1) & (parts < 1000) & np.isclose(1000 * parts, np.round(1000 * parts), 0, 1e-6)).all()
    )


class CsvSource:
    """A CSV file with commas, semicolons or tabs between its columns, with or without a byte-order mark."""

    def __init__(self, path: Path):
        self.path, self.name = path, str(path)
        self.delimiter, header = self._header()
        self.columns = checked_names(path, [name for name in header if not is_unnamed(name)])
        self._width = len(header)
        self._position = {name: place for place, name in enumerate(header) if not is_unnamed(name)}

    def load(self, columns: Sequence[str], texts: Collection[str] = ()) -> pd.DataFrame:
        """See `Source`. Decimal commas are read if the columns are separated by semicolons or tabs."""
        table = self._read(columns, texts)
        if self.delimiter != "," and self._has_decimal_commas(table, columns, texts):
            table = self._read(columns, texts, ",")
        elif self.delimiter != ",":
            self._refuse_pointed_thousands(table, [name for name in columns if name not in texts])
        prepared_table = pa.table({name: prepared(table.column(str(self._position[name]))) for name in columns})
        frame: pd.DataFrame = prepared_table.to_pandas()  # all at once: column by column is slow with thousands of columns
        return frame

    def place(self, row: int) -> str:
        return f"line {self._lines[row]}"

    def _read(self, columns: Sequence[str], texts: Collection[str], point: str = ".") -> Any:
        """The columns, named by their positions. In those of ``texts``, only "" is an empty cell."""
        places = [str(self._position[name]) for name in columns if name not in texts]
        as_texts = [str(self._position[name]) for name in columns if name in texts]
        parts = [self._arrow(places, EMPTY, {}, point)] if places else []
        # 13:00 stays 13:00, as in a column that is read as texts. Arrow would make 13:00:00 of it, and 31 of 0x1F.
        written = [place for part in parts for place in self._remade(part)]
        if written:
            parts.insert(0, self._arrow(written, EMPTY, dict.fromkeys(written, pa.string()), point))
            parts[1] = parts[1].drop_columns(written)
        parts += [self._arrow(as_texts, [""], dict.fromkeys(as_texts, pa.string()), point)] if as_texts else []
        return pa.table({place: part.column(place) for part in parts for place in part.column_names})

    def _remade(self, table: Any) -> list[str]:
        """The columns whose cells Arrow has changed to something that is not in the file."""
        kinds = {place: table.column(place).type for place in table.column_names}
        as_text = [place for place, kind in kinds.items() if pa.types.is_time(kind)]
        integers = [place for place, kind in kinds.items() if pa.types.is_integer(kind)]
        if self._may_be_hexadecimal and integers:
            raw = self._arrow(integers, EMPTY, dict.fromkeys(integers, pa.string()), ".")
            matches = {place: pc.match_substring_regex(raw.column(place), HEXADECIMAL) for place in integers}
            as_text += [place for place, match in matches.items() if pc.any(match).as_py()]
        return as_text

    def _arrow(self, places: list[str], empty: list[str], types: dict[str, Any], point: str) -> Any:
        reading = pacsv.ReadOptions(column_names=[str(place) for place in range(self._width)], skip_rows=1, block_size=CHUNK)
        parsing = pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=self._quoted)
        converting = pacsv.ConvertOptions(
            include_columns=places, null_values=empty, strings_can_be_null=True, column_types=types, decimal_point=point
        )
        try:
            with self._bytes() as file:
                table = pacsv.read_csv(file, read_options=reading, parse_options=parsing, convert_options=converting)
        except UNREADABLE as error:
            self._refuse(error)
        if self._quoted and table.num_rows + 1 != self._breaks:
            self._refuse_line_breaks()
        return table

    def _refuse(self, error: Exception) -> Any:
        """Name the line at which Arrow stopped; its own messages count rows."""
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if "Empty CSV" in reason or "skip initial" in reason:
            raise ValueError(f"{self.path}: must have at least one row below its header, found none") from None
        if "UTF8" in reason or "utf-8" in reason.lower():
            raise ValueError(f"{self.path}{self._not_utf8()}: {UTF8_FIX}") from None
        self._refuse_line_breaks()
        for line, cells in self._records():
            if len(cells) != self._width:
                problem = f"has {len(cells)} cells, where {self._width} were expected"
                raise ValueError(f"{self.path}, line {line}: {problem}; {FIX}") from None
        raise ValueError(f"{self.path}: cannot be read as CSV ({reason:.200})") from None

    def _refuse_line_breaks(self) -> None:
        """Refuse a cell of several lines: two stray quotes would join all rows between them."""
        for line, cells in self._records():
            for place, cell in enumerate(cells):
                if "\n" in cell or "\r" in cell:
                    name = next((name for name, position in self._position.items() if position == place), f"number {place + 1}")
                    fix = f"remove the line break, or the stray quotes around {cell[:30]!r}"
                    raise ValueError(
                        f"{self.path}, line {line}, column {name!r}: a cell goes over several lines; {fix}"
                    ) from None

    def _has_decimal_commas(self, table: Any, columns: Sequence[str], texts: Collection[str]) -> bool:
        """Whether numbers have decimal commas, as in 1,5. Refused if the meaning of a comma is not clear."""
        commas, points = None, None
        for name in columns:
            column = table.column(str(self._position[name]))
            if pa.types.is_floating(column.type):
                points = points or name
            if name in texts or not pa.types.is_string(column.type):
                continue
            cells = [cell.strip() for cell in column.unique().to_pylist() if cell is not None]
            numbers = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
            if not numbers or 2 * (len(numbers) + sum(bool(NUMBER.fullmatch(cell)) for cell in cells)) <= len(cells):
                continue  # a text column in which some cells may look like numbers
            if all(THOUSANDS.fullmatch(cell) for cell in numbers):
                problem = f"{numbers[0]!r} may be a decimal or thousands"
                raise ValueError(f"{self.path}, column {name!r}: {problem}; write decimals with a point and no thousands signs")
            commas = name
            self._refuse_among_commas(name, column, cells)
        if commas and points:
            problem = f"decimal commas in column {commas!r} and decimal points in column {points!r}"
            raise ValueError(f"{self.path}: has {problem}; write all decimals with a point")
        return commas is not None

    def _refuse_pointed_thousands(self, table: Any, columns: Sequence[str]) -> None:
        """Refuse a column in which all points may separate thousands, as in 1.061: files with semicolons often have these."""
        asked = [str(self._position[name]) for name in columns if _may_be_thousands(table.column(str(self._position[name])))]
        if not asked:
            return
        raw = self._arrow(asked, EMPTY, dict.fromkeys(asked, pa.string()), ".")
        for name in columns:
            place = str(self._position[name])
            pointed = (
                [cell.strip() for cell in raw.column(place).unique().to_pylist() if cell and "." in cell]
                if place in asked
                else []
            )
            if pointed and all(POINTED_THOUSANDS.fullmatch(cell) for cell in pointed):
                row, cell = next((row, cell) for row, cell in enumerate(raw.column(place).to_pylist()) if cell and "." in cell)
                fix = "write thousands without signs; if they are decimals, write commas between the columns"
                problem = f"{cell.strip()!r:.60} may be a decimal or thousands"
                raise ValueError(f"{self.path}, {self.place(row)}, column {name!r}: {problem}; {fix}")

    def _refuse_among_commas(self, name: str, column: Any, cells: list[str]) -> None:
        """Name the first cell that is not a number in a column with decimal commas: one such cell makes the column a text
        column.
        """
        plain = (cell for cell in cells if cell not in BLANK and not NUMBER.fullmatch(cell))
        odd = {cell for cell in plain if "." in cell or not DECIMAL_COMMA.fullmatch(cell)}
        for row, cell in enumerate(column.to_pylist()) if odd else ():
            if cell is not None and cell.strip() in odd:
                what = f"must be a number such as 1093,5, as the other cells are, found {cell!r:.60}"
                raise ValueError(f"{self.path}, {self.place(row)}, column {name!r}: {what}; correct the cell, or empty it")

    def _header(self) -> tuple[str, list[str]]:
        """The separator between the columns, and the names in the first line."""
        try:
            with self._bytes() as file:
                start = file.read(16)
            for magic, what in FOREIGN.items():
                if start.startswith(magic):
                    raise ValueError(f"{self.path}: is {what}, not CSV; name the file accordingly, or save it as CSV in UTF-8")
            if start.startswith(UTF16) or b"\0" in start:
                raise ValueError(f"{self.path}: {UTF8_FIX}")
            cells_by_sign = {sign: self._first_cells(sign) for sign in SIGNS}
        except UnicodeDecodeError:
            raise ValueError(f"{self.path}{self._not_utf8()}: {UTF8_FIX}") from None
        except (*UNREADABLE, csv.Error) as error:
            if type(error) is ValueError:
                raise
            raise ValueError(f"{self.path}: cannot be read as CSV ({error!s:.200})") from None
        if note := EXCEL_LINE.fullmatch(start):
            raise ValueError(f"{self.path}, line 1: is a note for Excel, {note[1].decode()!r}; delete this line")
        several = [sign for sign, cells in cells_by_sign.items() if len(cells) > 1]
        if len(several) > 1:
            words = " and ".join(SIGNS[sign] for sign in several)
            raise ValueError(
                f"{self.path}, line 1: has {words} between the names; write commas between columns, and rename those with signs"
            )
        sign = several[0] if several else ","
        if not any(name.strip() for name in cells_by_sign[sign]):
            raise ValueError(f"{self.path}: its first line must name the columns, found nothing there")
        if any("\n" in name or "\r" in name for name in cells_by_sign[sign]):
            raise ValueError(f"{self.path}, line 1: a name goes over several lines; remove the line break, or the stray quotes")
        return sign, [composed_name(name) for name in cells_by_sign[sign]]

    def _first_cells(self, sign: str) -> list[str]:
        with self._text() as file:
            try:
                return next(csv.reader(file, delimiter=sign), [])
            except csv.Error:  # one cell of a very long line is not a separator
                return []

    @cached_property
    def _lines(self) -> np.ndarray:
        """The line of each row."""
        return np.fromiter((line for line, _ in self._records()), np.int64)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The rows below the header with the number of their first line. Blank lines are left out, as in Arrow."""
        try:
            with self._text() as file:
                reader = csv.reader(file, delimiter=self.delimiter)
                next(reader, None)
                end = reader.line_num
                for cells in reader:
                    if cells:
                        yield end + 1, cells
                    end = reader.line_num
        except UnicodeDecodeError:
            raise ValueError(f"{self.path}{self._not_utf8()}: {UTF8_FIX}") from None
        except csv.Error as error:
            raise ValueError(f"{self.path}, line {reader.line_num}: cannot be read as CSV ({error})") from None

    def _not_utf8(self) -> str:
        """The first line that is not UTF-8, for a message."""
        with self._bytes() as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f", line {number}"
        return ""

    @cached_property
    def _quoted(self) -> bool:
        return self._scan[0]

    @cached_property
    def _breaks(self) -> int:
        """How many lines there are."""
        return self._scan[1]

    @cached_property
    def _may_be_hexadecimal(self) -> bool:
        return self._scan[2]

    @cached_property
    def _scan(self) -> tuple[bool, int, bool]:
        """Whether the file has quotes, its number of lines, and whether it contains 0x."""
        quoted, lines, last, hexadecimal = False, 0, b"\n", False
        try:
            with self._bytes() as file:
                while chunk := file.read(CHUNK):
                    quoted = quoted or b'"' in chunk
                    lines += chunk.count(b"\n")
                    hexadecimal = hexadecimal or any(sign in last + chunk for sign in (b"0x", b"0X"))
                    last = chunk[-1:]
        except UNREADABLE as error:  # an archive that ends early, say
            raise ValueError(f"{self.path}: cannot be read as CSV ({error!s:.200})") from None
        return quoted, lines + (last != b"\n"), hexadecimal

    @contextmanager
    def _bytes(self) -> Iterator[BinaryIO]:
        suffix = self.path.suffix.lower()
        if suffix == ".zip":
            with zipfile.ZipFile(self.path) as packed:
                if len(packed.namelist()) != 1:
                    raise ValueError(f"{self.path}: must hold one CSV file, found {len(packed.namelist())} files")
                with packed.open(packed.namelist()[0]) as file:
                    yield cast(BinaryIO, file)
            return
        with OPENERS[suffix](self.path) if suffix in OPENERS else self.path.open("rb") as file:
            yield cast(BinaryIO, file)

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        with self._bytes() as file:
            yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
