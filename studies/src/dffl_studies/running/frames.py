"""Rows as tables of Parquet: checked, in a fixed order, small. Also the file of one job, with its cost."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dffl_studies.running.job import TIMES
from dffl_studies.running.sealed import seal_table
from dffl_studies.running.study import RESERVED, Job

COSTS = ["job", "added", "dffl", *TIMES]
"""Columns of jobs.parquet: one row for each run of a job. ``added`` is the JSON list of the values of the inner axis that it
computed; empty if it computed all.
"""


class ColumnClashError(ValueError):
    """A column of the rows has the name of a parameter: a mistake of the study, for all its jobs."""


class Part(NamedTuple):
    """Rows of one job, and its cost."""

    rows: pd.DataFrame
    costs: pd.DataFrame


def row_table(job: Job, rows: pd.DataFrame, version: str) -> pd.DataFrame:
    """A task's rows with the job's key and parameters, and the version that made them."""
    if clash := sorted(set(rows.columns) & {*RESERVED, *job.parameters}):
        of = "every study has" if clash[0] in RESERVED else "is also a parameter of the grid"
        fix = "rename the column in the task" + ("" if clash[0] in RESERVED else ", or the parameter")
        raise ColumnClashError(f"the task's rows have a column {clash[0]!r}, which {of}; {fix}")
    if named := [name for name in rows.index.names if name is not None]:
        raise ValueError(f"the task's rows have an index {named[0]!r}, which would be lost; return rows.reset_index()")
    columns = {"job": job.key, "dffl": version, **job.parameters}
    return pd.concat([pd.DataFrame(columns, index=rows.index), rows], axis=1).reset_index(drop=True)


def require_values(job: Job, rows: pd.DataFrame, column: str) -> None:
    """Refuse rows without the column of the inner axis, and rows with values that were not asked for."""
    if column not in rows:
        raise ValueError(f"the task's rows have no column {column!r}, which the study's inner axis needs")
    values = list(dict.fromkeys(rows[column]))
    if job.values is None:
        return
    if lacking := [value for value in job.values if value not in values]:
        raise ValueError(f"the task's rows lack {column} {lacking[0]!r}, which was asked for")
    if other := [value for value in values if value not in job.values]:
        raise ValueError(f"the task's rows have {column} {other[0]!r}, which was not asked for")


def cost_table(job: Job, version: str, seconds: float, cpu_seconds: float) -> pd.DataFrame:
    """The cost of one run of a job."""
    added = "" if job.values is None else json.dumps(job.values)
    return pd.DataFrame([[job.key, added, version, round(seconds, 3), round(cpu_seconds, 3)]], columns=COSTS)


def with_version(table: pd.DataFrame, version: str) -> pd.DataFrame:
    """Folders with one version do not store it in the rows: they get it here."""
    if "dffl" not in table:
        table.insert(1, "dffl", pd.Series(version, table.index, dtype=table["job"].dtype))
    return table


def with_all_costs(table: pd.DataFrame, version: str) -> pd.DataFrame:
    """The times of jobs, with the columns that older folders lack."""
    return with_version(table if "added" in table else table.assign(added=""), version)[COSTS]


def units(rows: pd.DataFrame, column: str | None) -> set[tuple[str, ...]]:
    """The units that exist: a job, or a job and a value of the inner axis. A unit is complete or absent."""
    columns = ["job", *([column] if column else [])]
    return set(rows[columns].drop_duplicates().itertuples(index=False, name=None))


def without(rows: pd.DataFrame, known: set[tuple[str, ...]], column: str | None) -> pd.DataFrame:
    """The rows whose unit is not among those known."""
    keys = zip(rows["job"], *([rows[column]] if column else []), strict=True)
    return rows[np.fromiter((key not in known for key in keys), bool, len(rows))]


def joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table. If frames have different columns, the result must not depend on which of them came first."""
    rows = pd.concat(frames, ignore_index=True)
    alike = takewhile(lambda names: len(set(names)) == 1, zip_longest(*(frame.columns for frame in frames)))
    first = [names[0] for names in alike]
    return rows if len(first) == rows.shape[1] else rows[first + sorted(set(rows.columns) - set(first))]


def ordered(table: pd.DataFrame, place: dict[str, int]) -> pd.DataFrame:
    """Rows in the order of the jobs; those of one job stay in the order in which they came."""
    return table.iloc[table["job"].map(place).argsort(kind="stable")].reset_index(drop=True)


def column_kinds(rows: pd.DataFrame) -> dict[str, str]:
    """The type of each column; a column without values may have any type."""
    table, kinds = pa.Table.from_pandas(rows, preserve_index=False), {}
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if table[field.name].null_count < len(table):
            kinds[field.name] = "numbers" if number else "texts" if text else str(kind)
    return kinds


def compact(rows: pd.DataFrame) -> bytes:
    """Numbers by their bytes, texts and repeated values by a dictionary: a fifth of the size."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    floats = [field.name for field in table.schema if field.type == pa.float32()]
    others = [field.name for field in table.schema if field.name not in floats]
    encoding = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
    return seal_table(table, compression="zstd", compression_level=9, use_dictionary=others, column_encoding=encoding)


def part_bytes(part: Part) -> bytes:
    """A part as a Parquet file, with its costs in the metadata."""
    table = pa.Table.from_pandas(part.rows, preserve_index=False)
    costs = json.dumps(part.costs.to_dict("records"))
    return seal_table(table.replace_schema_metadata({**(table.schema.metadata or {}), "costs": costs}))


def read_part(content: bytes, key: str, version: str) -> Part:
    """The inverse of `part_bytes`, also for older formats."""
    stored = pq.read_schema(io.BytesIO(content)).metadata
    if b"costs" in stored:
        costs = pd.DataFrame(json.loads(stored[b"costs"]), columns=COSTS)
    else:
        old: dict[str, Any] = {name: float(stored[name.encode()]) for name in TIMES}
        costs = with_all_costs(pd.DataFrame([{"job": key, **old}]), version)
    rows = with_version(pd.read_parquet(io.BytesIO(content)), version)
    if set(rows["job"]) - {key}:
        raise ValueError("the rows of another job")
    return Part(rows, costs)
