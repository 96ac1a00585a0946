"""A study's folder: what is finished is on disk, whole, and stays there whatever happens next.

study.json      what the rows mean: name, protocol, version, machine
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
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dffl
from dffl.studies.study import Job, Study, first_difference

FORMAT = 1
"""Of the folder. Raise it when a reader of old folders would go wrong."""


class Finished(NamedTuple):
    """A job's rows and what they cost."""

    rows: pd.DataFrame
    seconds: float
    cpu_seconds: float


class Store:
    """The folder of one study."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.damaged: list[Path] = []
        """Parts that could not be read, and whose jobs therefore count as not done."""

    # Opening

    def describe(self) -> dict[str, Any]:
        """What study.json says."""
        path = self.folder / "study.json"
        try:
            described = json.loads(path.read_text())
        except FileNotFoundError:
            raise ValueError(f"{self.folder}: holds no study (no study.json there); run one first") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: cannot be read ({error}); restore it, or choose another folder") from None
        if described.get("format") != FORMAT:
            raise ValueError(f"{path}: format must be {FORMAT}, found {described.get('format')!r}; choose another folder")
        return dict(described)

    def prepare(self, study: Study) -> None:
        """Make the folder this study's own, or see that it is; refuse the rows of another study, protocol or version."""
        if (self.folder / "study.json").exists():
            described = self.describe()
            mine = {"study": study.name, **as_json(study.protocol)}
            theirs = {"study": described.get("study"), **described.get("protocol", {})}
            if difference := first_difference(mine, theirs):
                raise ValueError(f"{self.folder}: holds the rows of another protocol ({difference}); choose another folder")
            if described.get("dffl") != dffl.__version__ and self.missing(study):
                raise ValueError(
                    f"{self.folder}: holds unfinished rows of dffl {described.get('dffl')}, and this is {dffl.__version__}; "
                    "finish them with that version, or choose another folder"
                )
            return
        if self.folder.is_dir() and any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise ValueError(f"{self.folder}: is not empty and holds no study; choose another folder")
        described = {"format": FORMAT, "study": study.name, "dffl": dffl.__version__, "protocol": as_json(study.protocol)}
        text = json.dumps(described | {"machine": machine()}, indent=2)
        write_text(self.folder / "study.json", text + "\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of this folder while this one writes. The lock dies with the process."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder}: must be a folder, found a file")
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # not a Unix: go on without
            yield
            return
        lock = self.folder / ".lock"
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                raise ValueError(
                    f"{self.folder}: another run is writing there; wait for it, or choose another folder"
                ) from None
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    # Reading

    def missing(self, study: Study) -> list[Job]:
        """The study's jobs that are not done."""
        done = self._packed_keys() | {path.stem for path in self._parts()}
        return [job for job in study.jobs if job.key not in done]

    def rows(self) -> pd.DataFrame:
        """The rows of every job that is done, at any moment of a run."""
        packed = self._read(self.folder / "rows.parquet")
        frames = [] if packed is None else [packed]
        frames += [part for path in self._parts() if (part := self._read_part(path)) is not None]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def jobs(self) -> pd.DataFrame:
        """A row a finished job: key, seconds, cpu_seconds."""
        packed = self._read(self.folder / "jobs.parquet")
        found = [{"job": path.stem} | _cost(path) for path in self._parts()]
        frames = [frame for frame in (packed, pd.DataFrame(found)) if frame is not None and len(frame)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["job", "seconds", "cpu_seconds"])

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
        """Gather everything in rows.parquet and jobs.parquet, in the order of the grid, and drop the parts."""
        parts = self._parts()
        if not parts:
            return
        rows, jobs = self.rows(), self.jobs()
        place = {job.key: number for number, job in enumerate(order)}
        keys = rows["job"].map(place).fillna(len(place))  # jobs of an earlier, wider grid stay, at the end
        rows = rows.iloc[keys.argsort(kind="stable")].reset_index(drop=True)
        jobs = jobs.iloc[jobs["job"].map(place).fillna(len(place)).argsort(kind="stable")].reset_index(drop=True)
        # jobs.parquet first: rows.parquet says which jobs are done, and must not be ahead of it.
        write_whole(self.folder / "jobs.parquet", lambda path: jobs.to_parquet(path, index=False))
        write_whole(self.folder / "rows.parquet", lambda path: _write_compact(rows, path))
        for path in parts:
            if path not in self.damaged:
                path.unlink()
        with contextlib.suppress(OSError):
            (self.folder / "parts").rmdir()
        with contextlib.suppress(OSError):
            (self.folder / "failed").rmdir()

    # Inside

    def _parts(self) -> list[Path]:
        packed = self._packed_keys()
        return [
            path for path in sorted((self.folder / "parts").glob("*.parquet")) if path.stem not in packed and self._whole(path)
        ]

    def _whole(self, path: Path) -> bool:
        """Whether a part can be read: its footer is written last, so a part without one was cut short."""
        try:
            pq.read_metadata(path)
        except (OSError, pa.ArrowException):
            if path not in self.damaged:
                self.damaged.append(path)
            return False
        return True

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
        except FileNotFoundError:  # the run that we are watching has just packed it
            return None


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside ``path``, then move into place: the file is complete or it is not there."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda where: where.write_text(text))


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
    for name in (clash := set(rows.columns) & {"job", *job.parameters}):
        raise ValueError(f"the task's rows must not have a column {name!r}, which is a parameter ({sorted(clash)})")
    columns = {"job": job.key, **job.parameters}
    return pa.Table.from_pandas(pd.concat([pd.DataFrame(columns, index=rows.index), rows], axis=1), preserve_index=False)


def _cost(path: Path) -> dict[str, float]:
    stored = pq.read_schema(path).metadata
    return {name: float(stored[name.encode()]) for name in ("seconds", "cpu_seconds")}


def _write_compact(rows: pd.DataFrame, path: Path) -> None:
    """Numbers by their bytes, texts and repeated values by a dictionary: a fifth of the size."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    floats = [field.name for field in table.schema if field.type == pa.float32()]
    others = [field.name for field in table.schema if field.name not in floats]
    encoding = dict.fromkeys(floats, "BYTE_STREAM_SPLIT")
    pq.write_table(table, path, compression="zstd", compression_level=9, use_dictionary=others, column_encoding=encoding)
