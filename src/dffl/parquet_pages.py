"""The size that a Parquet file will have in memory, from its page headers alone; nothing is decoded.

A few bytes of Parquet can stand for billions of values, by repetition, dictionaries or compression. The footer gives the
number of rows, but not the true size; the page headers do. A reader allocates memory by these headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PLAIN_KINDS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY")
CODECS = ("UNCOMPRESSED", "SNAPPY")
"""Snappy expands a page at most about 20 times; other codecs have no such bound."""
SIMPLE = (0, 2, 3, 4, 8)
"""Plain values, dictionaries, repetitions and packed bits: in these encodings no text is built from parts of others."""
DATA, DICTIONARY, DATA_2 = 0, 2, 3
OWN_FIELD: dict[Any, int] = {DATA: 5, DICTIONARY: 7, DATA_2: 8}
"""The field of a page header that each kind of page has."""


class Extent(NamedTuple):
    """The size in memory: rows, columns, bytes of the unpacked pages, and which columns are texts."""

    rows: int
    columns: int
    unpacked: int
    texts: list[str]


def extent(content: bytes) -> Extent:
    """The extent of a table of plain numbers and texts; any other Parquet file raises a ValueError."""
    about = pq.read_metadata(pa.BufferReader(content))
    schema, unpacked = about.schema, 0
    for place in range(len(schema)):
        column = schema.column(place)
        if column.max_repetition_level or column.max_definition_level > 1 or column.physical_type not in PLAIN_KINDS:
            raise ValueError(f"its column {column.path!r:.80} is not one of plain numbers or texts")
    rows = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != about.num_rows:
        raise ValueError("its numbers of rows contradict each other")
    for number in range(about.num_row_groups):
        for place in range(about.num_columns):
            chunk = about.row_group(number).column(place)
            if chunk.num_values != rows[number] or chunk.file_path:
                raise ValueError("its columns are not all in it, with one value for each row")
            unpacked += sum(_pages(content, chunk))
    texts = [schema.column(place).name for place in range(len(schema)) if schema.column(place).physical_type == "BYTE_ARRAY"]
    return Extent(about.num_rows, about.num_columns, unpacked, texts)


def text_bytes(content: bytes, names: list[str]) -> int:
    """The bytes of all texts of some columns, from their dictionaries and the frequency of each entry."""
    if not names:
        return 0
    # From a buffer and without threads: no thread of Arrow may still use the file when it is refused.
    table = pq.ParquetFile(pa.BufferReader(content), read_dictionary=names).read(columns=names, use_threads=False)
    total = 0
    for column in table.columns:
        for part in column.chunks:
            lengths = pc.binary_length(part.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
            counts = np.bincount(part.indices.drop_null().to_numpy(), minlength=len(lengths))
            total += int(counts @ lengths.astype(np.int64))
    return total


def _pages(content: bytes, chunk: Any) -> Iterator[int]:
    """The unpacked size of the pages of one column of one row group, counted in the order of a reader."""
    if chunk.compression not in CODECS:
        raise ValueError(f"it is compressed by {chunk.compression}, as no file of dffl is")
    first = chunk.data_page_offset
    place = min(first, chunk.dictionary_page_offset) if chunk.dictionary_page_offset else first
    end, values = place + chunk.total_compressed_size, 0
    while place < end and values < chunk.num_values:
        header, place = _structure(content, place)
        kind, unpacked, packed = header.get(1), header.get(2, -1), header.get(3, -1)
        page_header = header.get(OWN_FIELD.get(kind, 0), {})
        encoding = page_header.get(4 if kind == DATA_2 else 2, -1)
        if unpacked < 0 or not 0 <= packed <= end - place or page_header.get(1, -1) < 0 or encoding not in SIMPLE:
            raise ValueError("a page of it is of another kind than dffl writes")
        if kind != DICTIONARY:
            values += page_header[1]
        yield unpacked
        place += packed
    if values != chunk.num_values or values < 0:
        raise ValueError("its pages hold another number of values than its footer says")


# Thrift's compact protocol, as far as page headers use it.


def _structure(content: bytes, place: int, deep: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a structure by their numbers, and the position after it."""
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head, place = content[place], place + 1
        if head == 0:
            return fields, place
        if head >> 4:
            number += head >> 4
        else:
            number, place = _whole(content, place)
        fields[number], place = _value(content, place, head & 15, deep + 1)


def _value(content: bytes, place: int, kind: int, deep: int) -> tuple[Any, int]:
    if deep > 4:
        raise ValueError("a page header of it is nested deeper than any of Parquet")
    if kind in (1, 2):
        return kind == 1, place
    if kind in (4, 5, 6):
        return _whole(content, place)
    if kind == 8:
        size, place = _plain(content, place)
        return None, place + size
    if kind == 12:
        return _structure(content, place, deep)
    raise ValueError("a page header of it has a field that Parquet does not know")


def _plain(content: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        byte, place = content[place], place + 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
    raise ValueError("a page header of it has a number without an end")


def _whole(content: bytes, place: int) -> tuple[int, int]:
    number, place = _plain(content, place)
    return (number >> 1) ^ -(number & 1), place
