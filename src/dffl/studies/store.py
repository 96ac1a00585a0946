"""A study's folder: what is finished is on disk, whole, and stays there whatever happens next.

study.json      what the rows mean: name, protocol, version, machine
.lock           held by the run that writes
parts/          the rows of each finished job, one Parquet file each, moved into place when complete
failed/         the traceback of each job that failed
rows.parquet    all rows, in the order of the grid, once the run has ended; the parts are then removed
jobs.parquet    how long each job took
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dffl
from dffl.files import write_text, write_whole
from dffl.studies.study import Job, Study, first_difference

FORMAT = 1
"""Of the folder. Raise it when a reader of old folders would go wrong."""


class Finished(NamedTuple):
    """A job's rows and what they cost."""

    rows: pd.DataFrame
    seconds: float
    cpu_seconds: float


class Store:
    """The folder of one study. One run writes; anybody may read at any moment."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self.damaged: list[Path] = []
        """Parts that could not be read, and whose jobs therefore count as not done."""

    # Opening

    def describe(self) -> dict[str, Any]:
        """What study.json says."""
        path = self.folder / "study.json"
        try:
            described = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"{self.folder}: holds no study (no study.json there); run one first") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: cannot be read ({error}); restore it, or choose another folder") from None
        if described.get("format") != FORMAT:
            raise ValueError(f"{path}: format must be {FORMAT}, found {described.get('format')!r}; choose another folder")
        return dict(described)

    def check(self, study: Study) -> dict[str, Any]:
        """What study.json says; a folder with the rows of another study or protocol is refused."""
        described = self.describe()
        mine = {"study": study.name, **as_json(study.protocol)}
        theirs = {"study": described.get("study"), **described.get("protocol", {})}
        if difference := first_difference(mine, theirs):
            raise ValueError(f"{self.folder}: holds another run ({difference}); choose another folder with --out")
        return described

    def prepare(self, study: Study) -> None:
        """Make the folder this study's own, or see that it is. For the run that holds the lock."""
        if (self.folder / "study.json").exists():
            version = self.check(study).get("dffl")
            if version != dffl.__version__ and self.missing(study):
                raise ValueError(
                    f"{self.folder}: holds unfinished rows of dffl {version}, and this is {dffl.__version__}; "
                    "finish them with that version, or choose another folder"
                )
            for left in self.folder.rglob(".*.tmp"):  # of a run that was killed while it wrote
                left.unlink(missing_ok=True)
            return
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise ValueError(f"{self.folder}: is not empty and holds no study; choose another folder")
        described = {"format": FORMAT, "study": study.name, "dffl": dffl.__version__, "protocol": as_json(study.protocol)}
        write_text(self.folder / "study.json", json.dumps(described | {"machine": machine()}, indent=2) + "\n")

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
        # The file stays: if it went, a third run could lock a new one while a second still holds the old.
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
        done = {path.stem for path in self._parts()}
        done |= self._packed_keys()
        return [job for job in study.jobs if job.key not in done]

    def rows(self) -> pd.DataFrame:
        """The rows of every job that is done, at any moment of a run."""
        parts = {path.stem: part for path in self._parts() if (part := self._read_part(path)) is not None}
        packed = self._read(self.folder / "rows.parquet")
        frames = [] if packed is None else [packed]
        known = set() if packed is None else set(packed["job"].unique())
        frames += [part for key, part in parts.items() if key not in known]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"job": pd.Series(dtype=str)})

    def jobs(self) -> pd.DataFrame:
        """A row a finished job: key, seconds, cpu_seconds."""
        found = [{"job": path.stem} | cost for path in self._parts() if (cost := _cost(path)) is not None]
        packed = self._read(self.folder / "jobs.parquet")
        frames = [frame for frame in (packed, pd.DataFrame(found)) if frame is not None and len(frame)]
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
        cost = {b"seconds": f"{finished.seconds:.3f}", b"cpu_seconds": f"{finished.cpu_seconds:.3f}"}
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **cost})
        (self.folder / "parts").mkdir(exist_ok=True)
        write_whole(self.folder / "parts" / f"{job.key}.parquet", lambda path: pq.write_table(table, path))
        (self.folder / "failed" / f"{job.key}.txt").unlink(missing_ok=True)

    def fail(self, job: Job, trace: str) -> None:
        """Keep why a job failed."""
        (self.folder / "failed").mkdir(exist_ok=True)
        write_text(self.folder / "failed" / f"{job.key}.txt", f"{job}\n\n{trace}")

    def pack(self, order: list[Job]) -> None:
        """Gather everything in rows.parquet and jobs.parquet, and drop the parts.

        Rows stand in the order of the grid as soon as the grid has all the folder's jobs; a part of it only adds to the end.
        """
        place = {job.key: number for number, job in enumerate(order)}
        rows, jobs = self.rows(), self.jobs()
        if set(rows["job"].unique()) <= set(place):
            rows, jobs = _ordered(rows, place), _ordered(jobs, place)
        packed = self._read(self.folder / "rows.parquet", columns=["job"])
        if packed is None or not packed["job"].equals(rows["job"]):
            # jobs.parquet first: rows.parquet says which jobs are done, and must not be ahead of it.
            write_whole(self.folder / "jobs.parquet", lambda path: jobs.to_parquet(path, index=False))
            write_whole(self.folder / "rows.parquet", lambda path: _write_compact(rows, path))
        for path in (self.folder / "parts").glob("*.parquet"):
            path.unlink()
        for name in ("parts", "failed"):
            with contextlib.suppress(OSError):  # not there, or not empty
                (self.folder / name).rmdir()

    # Inside

    def _parts(self) -> list[Path]:
        return [path for path in sorted((self.folder / "parts").glob("*.parquet")) if self._whole(path)]

    def _whole(self, path: Path) -> bool:
        """Whether a part can be read: its footer is written last, so a part without one was cut short."""
        try:
            pq.read_metadata(path)
        except FileNotFoundError:  # the run that we are watching has just packed it
            return False
        except (OSError, pa.ArrowException):
            self._note_damaged(path)
            return False
        return True

    def _note_damaged(self, path: Path) -> None:
        if path not in self.damaged:
            self.damaged.append(path)

    def _packed_keys(self) -> set[str]:
        packed = self._read(self.folder / "rows.parquet", columns=["job"])
        return set() if packed is None else set(packed["job"].unique())

    def _read(self, path: Path, columns: list[str] | None = None) -> pd.DataFrame | None:
        if not path.exists():
            return None
        try:
            return pd.read_parquet(path, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{path}: is damaged ({error}); restore it from a copy, or choose another folder") from None

    def _read_part(self, path: Path) -> pd.DataFrame | None:
        try:
            return pd.read_parquet(path)
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException):
            self._note_damaged(path)
            return None


def as_json(values: dict[str, Any]) -> dict[str, Any]:
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


def _table(job: Job, rows: pd.DataFrame) -> pa.Table:
    if clash := sorted(set(rows.columns) & {"job", *job.parameters}):
        raise ValueError(f"the task's rows must not have a column {clash[0]!r}, which is a parameter")
    columns = {"job": job.key, **job.parameters}
    return pa.Table.from_pandas(pd.concat([pd.DataFrame(columns, index=rows.index), rows], axis=1), preserve_index=False)


def _ordered(table: pd.DataFrame, place: dict[str, int]) -> pd.DataFrame:
    return table.iloc[table["job"].map(place).argsort(kind="stable")].reset_index(drop=True)


def _cost(path: Path) -> dict[str, float] | None:
    try:
        stored = pq.read_schema(path).metadata
    except FileNotFoundError:  # just packed
        return None
    return {name: float(stored[name.encode()]) for name in ("seconds", "cpu_seconds")}


def _write_compact(rows: pd.DataFrame, path: Path) -> None:
    """Numbers by their bytes, texts and repeated values by a dictionary: a fifth of the size."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    floats = [field.name for field in table.schema if field.type == pa.float32()]
    others = [field.name for field in table.schema if field.name not in floats]
    encoding = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
    pq.write_table(table, path, compression="zstd", compression_level=9, use_dictionary=others, column_encoding=encoding)
