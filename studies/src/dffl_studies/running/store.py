"""A study's folder: what is finished is on disk, complete, and stays there.

study.json      what the rows mean: name, protocol, versions of dffl, machine
.lock           held by the run that writes
parts/          the rows of each finished job, one Parquet file each, moved into place when complete
failed/         the traceback of each job that failed
rows.parquet    all rows, in the order of the grid, once the run has ended; the parts are then removed
jobs.parquet    how long each job took, for each time that rows were added to it

study.json and the Parquet files hold digests of themselves (dffl_studies.running.sealed): damage is refused, not read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import dffl
from dffl.files import write_text, write_whole
from dffl.ray_cluster import one_line
from dffl_studies.running.description import (
    ANOTHER,
    Description,
    axis_column,
    axis_values,
    first_description,
    read_description,
    widened,
    write_description,
)
from dffl_studies.running.frames import (
    COSTS,
    Part,
    column_kinds,
    compact,
    cost_table,
    joined,
    ordered,
    part_bytes,
    read_part,
    require_values,
    row_table,
    units,
    with_all_costs,
    with_version,
    without,
)
from dffl_studies.running.job import TIMES, Finished
from dffl_studies.running.sealed import check_table
from dffl_studies.running.study import Job, Study
from dffl_studies.running.versions import count_versions, in_words


class Store:
    """The folder of one study. One run writes; others may read at any time."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._kinds: dict[str, str] | None = None
        self.damaged: list[Path] = []
        """Damaged parts, whose jobs therefore count as not done."""

    # Opening

    def describe(self) -> Description:
        """The content of study.json."""
        return read_description(self.folder)

    def check(self, study: Study) -> Description:
        """The content of study.json. A folder of another study or protocol is refused."""
        described = self.describe()
        if difference := study.difference(described["study"], described["protocol"]):
            raise ValueError(f"{self.folder}: holds another run ({difference}); choose another folder with --out")
        return described

    def prepare(self, study: Study, accept_versions: bool = False) -> list[Job]:
        """Make the folder that of this study, or check that it is; returns the jobs to run. For the run that has the lock."""
        if (self.folder / "study.json").exists():
            described = self.check(study)
            if missing := self.missing(study):
                self._require_version(accept_versions)
                self._widen(described, study)
            for left in self.folder.rglob(".*.tmp"):  # of a run that was killed during a write
                left.unlink(missing_ok=True)
            return missing
        if any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise ValueError(f"{self.folder}: is not empty and holds no study; choose another folder")
        write_description(self.folder, first_description(study))
        return self.missing(study)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Prevent a second run in this folder while this one writes, on systems with locks. The lock ends with the process."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder}: must be a folder, found a file")
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # not a Unix
            yield
            return
        # The file is not deleted: otherwise a third run could lock a new file while a second one still has the old one.
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    taken = f"{self.folder}: another run is writing there; wait for it, or choose another folder"
                    raise ValueError(taken) from None
                # Without locks in the file system, the run continues.
            yield

    # Reading. Parts are read before the packed files: a run that packs moves rows only in this direction.

    def missing(self, study: Study) -> list[Job]:
        """The study's jobs that are not done, each with the missing values of the inner axis."""
        column = study.inner_axis[1] if study.inner_axis else None
        rows = self.rows()
        if column and len(rows) and column not in rows:
            raise ValueError(f"{self.folder}: its rows have no column {column!r}, by which the study adds to them; {ANOTHER}")
        done = units(rows, column) if len(rows) else set()
        if column is None:
            return [job for job in study.jobs if (job.key,) not in done]
        lacking = [(job, tuple(value for value in study.values if (job.key, value) not in done)) for job in study.jobs]
        return [Job(job.parameters, values) for job, values in lacking if values]

    def rows(self) -> pd.DataFrame:
        """The rows of every finished job, at any time during a run. ``dffl`` is the version that made a row."""
        parts = self._parts()
        return self._rows(parts, self._packed("rows.parquet"))

    def jobs(self) -> pd.DataFrame:
        """One row for each finished job: key, seconds, cpu_seconds."""
        parts = self._parts()
        return self._costs(parts, self._packed("jobs.parquet")).groupby("job", sort=False, as_index=False)[list(TIMES)].sum()

    def failures(self) -> set[str]:
        """The keys of the jobs that failed in their last run."""
        return {path.stem for path in (self.folder / "failed").glob("*.txt")}

    # Writing

    def write(self, job: Job, finished: Finished) -> None:
        """Store a job's rows, together with its earlier ones. They are complete on disk before they are visible."""
        described, version = self.describe(), dffl.__version__
        column = axis_column(described)
        rows, costs = row_table(job, finished.rows, version), cost_table(job, version, finished.seconds, finished.cpu_seconds)
        if column:
            require_values(job, rows, column)
        self._require_alike(rows)
        path = self.folder / "parts" / f"{job.key}.parquet"
        path.parent.mkdir(exist_ok=True)
        if column and path.exists() and (before := self._part(path, described)) is not None:
            # Other values of the same job, of this run or of one that was killed before it packed them.
            others = without(before.rows, units(rows, column), column)
            rows, costs = joined([others, rows]), pd.concat([before.costs, costs], ignore_index=True)
        _save(path, part_bytes(Part(rows, costs)))
        (self.folder / "failed" / f"{job.key}.txt").unlink(missing_ok=True)

    def fail(self, job: Job, trace: str) -> None:
        (self.folder / "failed").mkdir(exist_ok=True)
        write_text(self.folder / "failed" / f"{job.key}.txt", f"{job}\n\n{trace}")

    def pack(self, order: list[Job], anew: bool = False) -> None:
        """Gather everything in rows.parquet and jobs.parquet, and drop the parts that are in there.

        Rows are in the order of the grid as soon as the grid has all the folder's jobs; a part of it only adds to the end.
        With ``anew`` the two files are written even if they have everything.
        """
        described, place = self.describe(), {job.key: number for number, job in enumerate(order)}
        column, values, parts = axis_column(described), axis_values(described), self._parts()
        packed = self._packed("rows.parquet")
        rows, costs = self._rows(parts, packed), self._costs(parts, self._packed("jobs.parquet"))
        done = set(rows["job"].unique())
        if done <= set(place):
            rows, costs = ordered(rows, place), ordered(costs, place)
        keys = ["job", *([column] if column and column in rows else [])]
        if anew or packed is None or not packed[keys].equals(rows[keys]):
            # jobs.parquet first: rows.parquet determines which jobs are done, so it must not be newer.
            _save(self.folder / "jobs.parquet", compact(costs))
            _save(self.folder / "rows.parquet", compact(rows))
        there = units(rows, column) if column in rows else set()
        for path in (self.folder / "parts").glob("*.parquet"):
            # A part that could not be read is kept as long as it may contain rows that the folder lacks.
            if path.stem in parts or (path.stem in done and all((path.stem, value) in there for value in values)):
                path.unlink()
        for name in ("parts", "failed"):
            with contextlib.suppress(OSError):  # absent, or not empty
                (self.folder / name).rmdir()

    # Internals

    def _require_version(self, accept_versions: bool) -> None:
        """Refuse to add to rows of another version, unless that is wanted: its numbers may differ."""
        versions = count_versions(self.rows())
        if set(versions) - {dffl.__version__} and not accept_versions:
            raise ValueError(
                f"{self.folder}: holds rows of dffl {in_words(versions)}, and this is {dffl.__version__}, whose numbers may "
                "differ; add to them with --accept-versions (accept_versions=True), or choose another folder"
            )

    def _widen(self, described: Description, study: Study) -> None:
        """Describe in study.json what will be added. A folder of an older format gets this format."""
        wider = widened(described, study)
        if wider == described:
            return
        if described["format"] == 1:  # its files get their digests before study.json says that they have them
            self.pack([], anew=(self.folder / "rows.parquet").exists())
        write_description(self.folder, wider)

    def _require_alike(self, rows: pd.DataFrame) -> None:
        """Refuse rows whose columns have other types than those of earlier jobs: no file could contain both."""
        if self._kinds is None:
            self._kinds = column_kinds(self.rows())
        for name, kind in column_kinds(rows).items():
            if self._kinds.setdefault(name, kind) != kind:
                raise ValueError(f"the task's column {name!r} holds {kind} here and {self._kinds[name]} in other jobs")

    def _rows(self, parts: dict[str, Part], packed: pd.DataFrame | None) -> pd.DataFrame:
        """The packed rows, and the rows of parts that are not packed."""
        described = self.describe() if parts or packed is not None else {}
        column = axis_column(described)
        frames = [] if packed is None or packed.empty else [with_version(packed, described["dffl"])]
        known = units(frames[0], column) if frames and parts else set()
        frames += [fresh for part in parts.values() if len(fresh := without(part.rows, known, column))]
        return joined(frames) if frames else pd.DataFrame({name: pd.Series(dtype=str) for name in ("job", "dffl")})

    def _costs(self, parts: dict[str, Part], packed: pd.DataFrame | None) -> pd.DataFrame:
        """The same for the costs of jobs."""
        frames = [] if packed is None else [with_all_costs(packed, self.describe()["dffl"])]
        frames += [part.costs for part in parts.values()]
        if not frames:
            return pd.DataFrame({name: pd.Series(dtype=float if name in TIMES else str) for name in COSTS})
        return pd.concat(frames, ignore_index=True).drop_duplicates(["job", "added"], ignore_index=True)

    def _parts(self) -> dict[str, Part]:
        """The undamaged parts, by the key of their job."""
        paths = sorted((self.folder / "parts").glob("*.parquet"))
        described = self.describe() if paths else {}
        read = {path.stem: self._part(path, described) for path in paths}
        return {key: part for key, part in read.items() if part is not None}

    def _part(self, path: Path, described: Description) -> Part | None:
        """A part, if it is undamaged. It is read to its end: a valid footer does not prove valid data."""
        try:
            return read_part(_content(path, described["format"] > 1), path.stem, described["dffl"])
        except FileNotFoundError:  # another run has just packed it
            return None
        except Exception:  # without a digest, damage can cause any error in the reader
            if path not in self.damaged:
                self.damaged.append(path)
            return None

    def _packed(self, name: str) -> pd.DataFrame | None:
        path = self.folder / name
        if not path.exists():
            return None
        sealed = self.describe()["format"] > 1
        try:
            return pd.read_parquet(io.BytesIO(_content(path, sealed)))
        except Exception as error:  # as above
            raise ValueError(f"{path}: is damaged ({one_line(error)}); {ANOTHER}") from None


def _save(path: Path, content: bytes) -> None:
    write_whole(path, lambda where: where.write_bytes(content))


def _content(path: Path, sealed: bool) -> bytes:
    """A Parquet file, read at once because a run may replace it at any time, and checked."""
    content = path.read_bytes()
    if sealed:
        check_table(content)
    return content
