"""A study's folder: what is finished is on disk, complete, and stays there.

study.json      what the rows mean: name, protocol, version, machine
.lock           held by the run that writes
parts/          the rows of each finished job, one Parquet file each, moved into place when complete
failed/         the traceback of each job that failed
rows.parquet    all rows, in the order of the grid, once the run has ended; the parts are then removed
jobs.parquet    how long each job took

study.json and the Parquet files hold digests of themselves (dffl.studies.sealed): damage is refused, not read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dffl
from dffl.files import write_text, write_whole
from dffl.studies.job import TIMES, Finished, one_line
from dffl.studies.sealed import check_table, seal_json, seal_table
from dffl.studies.study import Job, Study, first_difference

FORMAT = 2
"""Of the folder. Raise it when a reader of old folders would go wrong. Format 1 had no digests: it is read as it stands."""


class Store:
    """The folder of one study. One run writes; others may read at any moment."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._kinds: dict[str, str] | None = None
        self.damaged: list[Path] = []
        """Parts that were cut short or altered, and whose jobs therefore count as not done."""

    # Opening

    def describe(self) -> dict[str, Any]:
        """The content of study.json."""
        path, another = self.folder / "study.json", "restore it from a copy, or choose another folder"
        try:
            described = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"{self.folder}: holds no study (no study.json there); run one first") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}: cannot be read ({error}); {another}") from None
        if type(described) is not dict:
            raise ValueError(
                f"{path}: must be an object with the fields of a study, found {type(described).__name__}; {another}"
            )
        number = described.get("format")
        if type(number) is not int or not 1 <= number <= FORMAT:
            raise ValueError(f"{path}: format must be 1 to {FORMAT}, found {number!r}; choose another folder")
        if (number > 1 or "digest" in described) and described.get("digest") != seal_json(described)["digest"]:
            raise ValueError(f"{path}: is damaged or was edited (its content does not match its digest); {another}")
        for name, kind, asked in (("study", str, "a text"), ("dffl", str, "a text"), ("protocol", dict, "an object")):
            if not isinstance(described.get(name), kind):
                raise ValueError(f"{path}: {name} must be {asked}, found {described.get(name)!r}; {another}")
        return described

    def check(self, study: Study) -> dict[str, Any]:
        """The content of study.json; a folder with the rows of another study or protocol is refused."""
        described = self.describe()
        named = first_difference({"study": study.name}, {"study": described["study"]})
        if difference := named or first_difference(json_copy(study.protocol), described["protocol"]):
            raise ValueError(f"{self.folder}: holds another run ({difference}); choose another folder with --out")
        return described

    def prepare(self, study: Study) -> None:
        """Make the folder this study's own, or see that it is. For the run that holds the lock."""
        if (self.folder / "study.json").exists():
            described = self.check(study)
            theirs, mine = (described["dffl"], described["format"]), (dffl.__version__, FORMAT)
            if theirs != mine and self.missing(study):
                version, number = theirs
                raise ValueError(
                    f"{self.folder}: holds unfinished rows of dffl {version} (folder format {number}), and this is "
                    f"{dffl.__version__} ({FORMAT}); finish them with that version, or choose another folder"
                )
            for left in self.folder.rglob(".*.tmp"):  # of a run that was killed while it wrote
                left.unlink(missing_ok=True)
            return
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise ValueError(f"{self.folder}: is not empty and holds no study; choose another folder")
        described = {"format": FORMAT, "study": study.name, "dffl": dffl.__version__, "protocol": json_copy(study.protocol)}
        sealed = seal_json(described | {"machine": machine()})
        write_text(self.folder / "study.json", json.dumps(sealed, indent=2) + "\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of this folder while this one writes, where the system has locks. It dies with the process."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder}: must be a folder, found a file")
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # not a Unix
            yield
            return
        # The file stays: without it, a third run could lock a new one while a second still holds the old one.
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    taken = f"{self.folder}: another run is writing there; wait for it, or choose another folder"
                    raise ValueError(taken) from None
                # A file system without locks is no reason not to run.
            yield

    # Reading. Parts are looked at before what is packed: a run that packs in between moves rows only that way.

    def missing(self, study: Study) -> list[Job]:
        """The study's jobs that are not done."""
        done = set(self._parts())
        packed = self._packed("rows.parquet", columns=["job"])
        done |= set() if packed is None else set(packed["job"].unique())
        return [job for job in study.jobs if job.key not in done]

    def rows(self) -> pd.DataFrame:
        """The rows of every job that is done, at any moment of a run."""
        parts = self._parts()
        packed = self._packed("rows.parquet")
        frames = [] if packed is None else [packed]
        known = set() if packed is None else set(packed["job"].unique())
        frames += [part.rows for key, part in parts.items() if key not in known]
        if not frames:
            return pd.DataFrame({"job": pd.Series(dtype=str)})
        rows = pd.concat(frames, ignore_index=True)
        # Where jobs differ in their columns, the order must not depend on which of them was done first.
        alike = takewhile(lambda names: len(set(names)) == 1, zip_longest(*(frame.columns for frame in frames)))
        first = [names[0] for names in alike]
        return rows if len(first) == rows.shape[1] else rows[first + sorted(set(rows.columns) - set(first))]

    def jobs(self) -> pd.DataFrame:
        """One row for each finished job: key, seconds, cpu_seconds."""
        parts = self._parts()
        found = pd.DataFrame({"job": list(parts)} | {name: [getattr(part, name) for part in parts.values()] for name in TIMES})
        packed = self._packed("jobs.parquet")
        frames = [frame for frame in (packed, found) if frame is not None and len(frame)]
        if not frames:
            return pd.DataFrame({"job": pd.Series(dtype=str), "seconds": [], "cpu_seconds": []})
        return pd.concat(frames, ignore_index=True).drop_duplicates("job", ignore_index=True)

    def failures(self) -> set[str]:
        """The keys of the jobs that failed when they were last tried."""
        return {path.stem for path in (self.folder / "failed").glob("*.txt")}

    # Writing

    def write(self, job: Job, finished: Finished) -> None:
        """Keep a job's rows. They are complete on disk before they are visible."""
        table = _table(job, finished.rows)
        self._require_alike(table)
        cost = {name: f"{getattr(finished, name):.3f}" for name in TIMES}
        content = seal_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **cost}))
        (self.folder / "parts").mkdir(exist_ok=True)
        _save(self.folder / "parts" / f"{job.key}.parquet", content)
        (self.folder / "failed" / f"{job.key}.txt").unlink(missing_ok=True)

    def fail(self, job: Job, trace: str) -> None:
        (self.folder / "failed").mkdir(exist_ok=True)
        write_text(self.folder / "failed" / f"{job.key}.txt", f"{job}\n\n{trace}")

    def pack(self, order: list[Job]) -> None:
        """Gather everything in rows.parquet and jobs.parquet, and drop the parts that are in there.

        Rows are in the order of the grid as soon as the grid has all the folder's jobs; a part of it only adds to the end.
        """
        place = {job.key: number for number, job in enumerate(order)}
        rows, jobs = self.rows(), self.jobs()
        done = set(rows["job"].unique())
        if done <= set(place):
            rows, jobs = _ordered(rows, place), _ordered(jobs, place)
        packed = self._packed("rows.parquet", columns=["job"])
        if packed is None or not packed["job"].equals(rows["job"]):
            # jobs.parquet first: rows.parquet decides which jobs are done, and must not be ahead of it.
            _save(self.folder / "jobs.parquet", _compact(jobs))
            _save(self.folder / "rows.parquet", _compact(rows))
        for path in (self.folder / "parts").glob("*.parquet"):
            if path.stem in done:  # a part that could not be read stays: the next run that has its job writes it again
                path.unlink()
        for name in ("parts", "failed"):
            with contextlib.suppress(OSError):  # not there, or not empty
                (self.folder / name).rmdir()

    # Inside

    def _require_alike(self, table: pa.Table) -> None:
        """Refuse rows whose columns hold other kinds of values than those of the jobs before: no file could hold both."""
        if self._kinds is None:
            self._kinds = _kinds(pa.Table.from_pandas(self.rows(), preserve_index=False))
        for name, kind in _kinds(table).items():
            if self._kinds.setdefault(name, kind) != kind:
                raise ValueError(f"the task's column {name!r} holds {kind} here and {self._kinds[name]} in other jobs")

    def _parts(self) -> dict[str, Finished]:
        """The jobs whose parts are sound, by key. Each part is read to its end: a sound footer does not prove sound data."""
        paths = sorted((self.folder / "parts").glob("*.parquet"))
        sealed, parts = bool(paths) and self._sealed(), {}
        for path in paths:
            try:
                content = _content(path, sealed)
                stored = pq.read_schema(io.BytesIO(content)).metadata
                costs = (float(stored[name.encode()]) for name in TIMES)
                found = Finished(pd.read_parquet(io.BytesIO(content)), *costs)
                if set(found.rows["job"]) - {path.stem}:
                    raise ValueError("the rows of another job")
                parts[path.stem] = found
            except FileNotFoundError:  # a run that is writing has just packed it
                continue
            except Exception:  # where there is no digest, damage can make any part of the reader fail
                if path not in self.damaged:
                    self.damaged.append(path)
        return parts

    def _packed(self, name: str, columns: list[str] | None = None) -> pd.DataFrame | None:
        path = self.folder / name
        if not path.exists():
            return None
        sealed = self._sealed()
        try:
            return pd.read_parquet(io.BytesIO(_content(path, sealed)), columns=columns)
        except Exception as error:  # as above
            why = one_line(error)
            raise ValueError(f"{path}: is damaged ({why}); restore it from a copy, or choose another folder") from None

    def _sealed(self) -> bool:
        return int(self.describe()["format"]) > 1


def json_copy(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` as they come back from a JSON file."""
    return dict(json.loads(json.dumps(values)))


def machine() -> dict[str, Any]:
    """What the numbers were computed on; no name of the machine."""
    names = ("jax", "jaxlib", "optax", "equinox", "numpy")
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    versions = {name: metadata.version(name) for name in names}
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version(), **versions}


class ColumnClashError(ValueError):
    """Rows with a column of the name of a parameter: a mistake of the study, which all its jobs share."""


def _table(job: Job, rows: pd.DataFrame) -> pa.Table:
    if clash := sorted(set(rows.columns) & {"job", *job.parameters}):
        fix = "rename the column in the task, or the parameter"
        raise ColumnClashError(f"the task's rows have a column {clash[0]!r}, which is also a parameter of the grid; {fix}")
    if named := [name for name in rows.index.names if name is not None]:
        raise ValueError(f"the task's rows have an index {named[0]!r}, which would be lost; return rows.reset_index()")
    columns = {"job": job.key, **job.parameters}
    return pa.Table.from_pandas(pd.concat([pd.DataFrame(columns, index=rows.index), rows], axis=1), preserve_index=False)


def _kinds(table: pa.Table) -> dict[str, str]:
    """What each column holds; a column without any value may hold anything."""
    found = {}
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if table[field.name].null_count < len(table):
            found[field.name] = "numbers" if number else "texts" if text else str(kind)
    return found


def _save(path: Path, content: bytes) -> None:
    write_whole(path, lambda where: where.write_bytes(content))


def _content(path: Path, sealed: bool) -> bytes:
    """A Parquet file, read in one go, because a run may put another in its place at any moment, and checked."""
    content = path.read_bytes()
    if sealed:
        check_table(content)
    return content


def _ordered(table: pd.DataFrame, place: dict[str, int]) -> pd.DataFrame:
    return table.iloc[table["job"].map(place).argsort(kind="stable")].reset_index(drop=True)


def _compact(rows: pd.DataFrame) -> bytes:
    """Numbers by their bytes, texts and repeated values by a dictionary: a fifth of the size."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    floats = [field.name for field in table.schema if field.type == pa.float32()]
    others = [field.name for field in table.schema if field.name not in floats]
    encoding = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
    return seal_table(table, compression="zstd", compression_level=9, use_dictionary=others, column_encoding=encoding)
