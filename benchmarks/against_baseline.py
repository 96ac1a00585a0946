"""An older commit of dffl beside the working tree: are the numbers the same, and is it as fast?

    python benchmarks/against_baseline.py                          # numbers of every case, float64
    python benchmarks/against_baseline.py --configurations 4       # a faster check: the first 4 of the quick study's 32
    python benchmarks/against_baseline.py --dtype float32          # how far float32 moves; never fails for it
    python benchmarks/against_baseline.py --speed --only step      # old and new in alternation

The commit is unpacked, built and installed into ``benchmarks/.cache/<hash>``, and its numbers are kept there, for they do not
change; ``--fresh`` computes them anew, as is due when a case itself was changed. What the tree gave last is in
``benchmarks/.cache/tree``. Each case runs in a process of its own (`baseline_cases.py`) in the environment of this Python;
which dffl it imports is set by ``PYTHONPATH`` and checked.

Exit codes: 0 the same; 1 a float64 case differs by more than the tolerance, or lacks rows or columns; 2 something failed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CACHE = HERE / ".cache"
BASE = "7feba4fba8f6d111ee201338fb5d23431b9480bd"
ENERGY_DATA = "DFFL_ENERGY_DATA"
NUMBERS: dict[str, tuple[str, ...]] = {
    "demo": ("demo",),
    "quick-short": ("quick", "--rounds", "5"),
    "quick": ("quick",),
    "energy": ("energy",),
    "energy-lags": ("energy", "--lags"),
}
"""The cases of numbers, and how `baseline_cases.py` is asked for them.

Training multiplies rounding errors: a portfolio that trains for the study's 250 epochs turns the last bit of its features into
half a percent of its regret. Where the order of a sum has changed, `quick` may therefore differ and nothing be wrong;
`quick-short` stops before that, so a difference there is a change of the arithmetic's meaning.
"""
SPEEDS = ("step", "rounds", "study", "sizes")
KEYS = {
    "demo": ["method", "client"],
    "quick-short": ["configuration", "method", "client"],
    "quick": ["configuration", "method", "client"],
    "energy": ["seed", "method", "zone"],
    "energy-lags": ["seed", "method", "zone"],
}
"""The columns that tell the rows of a case apart."""
CHOICES = ("lambda", "epochs")
"""Columns that hold one of a few values which a method picked: whether it is the same one, not by how much it differs."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
"""As in a study's workers: arithmetic must not depend on how busy the machine is."""
STUDIED = 4
"""The configurations of the quick study whose time is taken."""
SIZES_RUNS = 3
"""The case sizes takes minutes, so it runs at most so often."""
WIDTH = 120
"""The tables are at least so wide: a cut number is of no use."""
TRACE = 15
"""How many lines of a failed process are shown."""
NAMED = 5
"""How many rows of only one side are named."""

Thing = TypeVar("Thing")

log = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class FailedRun(Exception):
    """A process that ended badly, in one line."""


@dataclass(frozen=True)
class Side:
    """One version of dffl: the folder that holds the package, and where its compiled programs are kept."""

    name: str
    package: Path
    programs: Path

    def run(self, *command: str, threads: bool = False, programs: Path | None = None) -> dict[str, Any]:
        """What a Python process prints as its last line, which is JSON; ``threads`` lets XLA use every core."""
        environment = os.environ | {"PYTHONPATH": str(self.package), "DFFL_CACHE_DIR": str(programs or self.programs)}
        if not threads:
            environment |= {"XLA_FLAGS": ONE_THREAD, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        # `python -m` looks into the current folder first: it must be one without a dffl.
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=CACHE, capture_output=True, text=True, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            log.print(*said[-TRACE:], sep="\n")
            raise FailedRun(f"{self.name}: {said[-1]}")
        return dict(json.loads(lines[-1]))

    def case(self, name: str, *options: str, threads: bool = False, programs: Path | None = None) -> dict[str, Any]:
        """Run a case of `baseline_cases.py`."""
        command = (str(HERE / "baseline_cases.py"), name, "--package", str(self.package), *options)
        return self.run(*command, threads=threads, programs=programs)

    def measure(self, *command: str) -> float:
        """Run one of the package's own measurements."""
        return float(self.run("-m", "dffl_studies.bench.measure", *command, "--seconds", "3", threads=True)["value"])

    def check(self) -> str:
        """The file of the dffl that this side imports."""
        found = str(self.run("-c", "import dffl, json; print(json.dumps({'package': dffl.__file__}))")["package"])
        if not Path(found).resolve().is_relative_to(self.package.resolve()):
            raise FailedRun(f"dffl comes from {found}, and not from {self.package}")
        return found


def built(revision: str) -> Side:
    """The package of a commit, unpacked, built and installed into a folder of its own."""
    named = _output("git", "-C", str(ROOT), "rev-parse", "--verify", f"{revision}^{{commit}}")
    commit = named.decode().strip()
    folder = CACHE / commit
    package = folder / "site"
    if not package.is_dir():
        log.print(f"building dffl of {commit}")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            source, wheels, site = (Path(place) / name for name in ("source", "wheels", "site"))
            with tarfile.open(fileobj=io.BytesIO(_output("git", "-C", str(ROOT), "archive", commit))) as archive:
                archive.extractall(source, filter="data")
            pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
            _output(*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source))
            (wheel,) = wheels.glob("dffl-*.whl")
            _output(*pip, "install", "--no-deps", "--target", str(site), str(wheel))
            site.rename(package)
    return Side("old", package, folder / "programs")


def _output(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise FailedRun(f"{' '.join(command[:4])} ...: {reason[-1]}")
    return done.stdout


# Numbers


@dataclass(frozen=True)
class Asked:
    """What is asked of the cases."""

    dtype: str
    plan: Path
    """The configurations of the quick study, as the baseline has them."""
    configurations: int
    data: Path | None
    """The energy study's; None: that is skipped."""
    seeds: int
    fresh: bool


@dataclass(frozen=True)
class Column:
    """How one column of a case differs. ``relative`` is to the old value; ``above`` is to max(1, |old value|)."""

    column: str
    values: int
    absolute: float
    relative: float
    above: int
    choices_changed: int
    worst: str
    """The row with the largest difference."""


@dataclass(frozen=True)
class Comparison:
    """A case of both sides: its columns, and what only one side has. ``error`` says why there is nothing to compare."""

    case: str
    rows: int = 0
    columns: list[Column] = field(default_factory=list)
    only_old: list[str] = field(default_factory=list)
    only_new: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    error: str = ""

    @property
    def same(self) -> bool:
        """Whether no cell differs and nothing of the old side is missing. What is only in the new one is no harm."""
        return not (self.error or self.only_old or any(column.above for column in self.columns))

    def as_json(self) -> dict[str, Any]:
        """For programs; JSON has no infinity, so the difference of a number and none is the text inf."""
        columns = []
        for column in self.columns:
            figures = {name: getattr(column, name) for name in ("absolute", "relative")}
            columns.append(asdict(column) | {name: x if np.isfinite(x) else "inf" for name, x in figures.items()})
        return asdict(self) | {"columns": columns, "same": self.same}


def compared(case: str, old: pd.DataFrame, new: pd.DataFrame, tolerance: float) -> Comparison:
    """The rows of both sides, matched by their keys, cell by cell."""
    old, new = (_by_key(case, side, table) for side, table in (("old", old), ("new", new)))
    both = old.index.intersection(new.index, sort=False)
    columns = [name for name in old.columns if name in new.columns]
    found = [_column(name, old.loc[both, name], new.loc[both, name], tolerance) for name in columns]
    return Comparison(case, len(both), found, _only(old, new), _only(new, old))


def _only(mine: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    """The rows and columns that the other table lacks."""
    keys = [str(key) for key in mine.index.names]
    rows = [_named(keys, row) for row in mine.index.difference(theirs.index, sort=False)]
    return [*rows, *(f"column {name}" for name in mine.columns if name not in theirs.columns)]


def _by_key(case: str, side: str, table: pd.DataFrame) -> pd.DataFrame:
    found = table.set_index(KEYS[case])
    if not found.index.is_unique:
        raise FailedRun(f"{side}: two rows are alike in {', '.join(KEYS[case])}")
    return found


def _named(keys: list[str], row: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in zip(keys, row, strict=True))


def _column(name: str, old: pd.Series, new: pd.Series, tolerance: float) -> Column:
    """Missing values are alike among themselves, and infinitely far from any number."""
    keys = [str(key) for key in old.index.names]
    absent = old.isna().to_numpy() & new.isna().to_numpy()
    values = int((~absent).sum())
    if not all(pd.api.types.is_numeric_dtype(side) and not pd.api.types.is_bool_dtype(side) for side in (old, new)):
        changed = ~absent & (old.astype(str) != new.astype(str)).to_numpy()
        worst = _named(keys, old.index[int(np.argmax(changed))]) if changed.any() else ""
        return Column(name, values, 0.0, 0.0, int(changed.sum()), int(changed.sum()), worst)
    one, other = (side.to_numpy(dtype=np.float64, na_value=np.nan) for side in (old, new))
    with np.errstate(invalid="ignore", divide="ignore"):
        equal = absent | (one == other)
        difference = np.where(equal, 0.0, np.nan_to_num(np.abs(one - other), nan=np.inf))
        relative = np.where(equal, 0.0, np.nan_to_num(difference / np.abs(one), nan=np.inf, posinf=np.inf))
        scaled = np.where(equal, 0.0, np.nan_to_num(difference / np.maximum(1, np.abs(one)), nan=np.inf, posinf=np.inf))
    worst = _named(keys, old.index[int(np.argmax(scaled))]) if difference.any() else ""
    above = int((scaled > tolerance).sum())
    largest, largest_relative = (float(array.max(initial=0.0)) for array in (difference, relative))
    return Column(name, values, largest, largest_relative, above, above if name in CHOICES else 0, worst)


def numbers(case: str, side: Side, folder: Path, asked: Asked) -> tuple[pd.DataFrame, float]:
    """The rows of a case on one side, written into a folder, and the seconds that they took."""
    out = folder / f"{case}-{asked.dtype}.parquet"
    options = ["--dtype", asked.dtype, "--out", str(out)]
    if case.startswith("quick"):
        options += ["--plan", str(asked.plan), "--configurations", str(asked.configurations)]
    if case.startswith("energy"):
        options += ["--data", str(asked.data), "--seeds", str(asked.seeds)]
    folder.mkdir(parents=True, exist_ok=True)
    log.print(f"{side.name}: {case}, {asked.dtype}")
    done = side.case(*NUMBERS[case], *options)
    log.print(f"{side.name}: {case}, {asked.dtype}: {done['value']:.1f} s, {done['package']}")
    return pd.read_parquet(out), float(done["value"])


def kept_numbers(case: str, side: Side, asked: Asked) -> tuple[pd.DataFrame, float]:
    """The rows of a case of the baseline: those kept, if they were made in the same way, or new ones."""
    folder = side.package.parent / "numbers"
    stamp_file = folder / f"{case}-{asked.dtype}.json"
    stamp: dict[str, Any] = {name: version(name) for name in ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")}
    if case.startswith("quick"):
        stamp["configurations"] = asked.configurations
    if case.startswith("energy"):
        stamp |= {"seeds": asked.seeds, "data": _digest(asked.data)}
    if stamp_file.is_file() and not asked.fresh:
        kept = json.loads(stamp_file.read_text())
        seconds, enough = kept.pop("seconds"), kept.get("configurations", 0) >= stamp.get("configurations", 0)
        if enough and kept | {"configurations": 0} == stamp | {"configurations": 0}:
            log.print(f"{side.name}: {case}, {asked.dtype}: kept, {stamp_file.with_suffix('.parquet')}")
            rows = pd.read_parquet(stamp_file.with_suffix(".parquet"))
            if case.startswith("quick"):
                rows = rows[rows["configuration"] < asked.configurations]
                seconds *= asked.configurations / kept["configurations"]  # roughly
            return rows, seconds
    stamp_file.unlink(missing_ok=True)
    rows, seconds = numbers(case, side, folder, asked)
    stamp_file.write_text(json.dumps(stamp | {"seconds": seconds}))
    return rows, seconds


def _digest(folder: Path | None) -> str:
    """What the energy study reads, in a few letters."""
    files = [] if folder is None else sorted(file for file in folder.iterdir() if file.is_file())
    whole = hashlib.blake2b(digest_size=8)
    for file in files:
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


def compare_numbers(cases: list[str], old: Side, new: Side | None, asked: Asked, tolerance: float) -> Iterator[Comparison]:
    """Every case on both sides; without a new side the old numbers are only made and kept."""
    for case in cases:
        if case.startswith("energy") and asked.data is None:
            log.print(f"{case}: SKIPPED, no data; name a folder by --energy-data or {ENERGY_DATA}")
            continue
        try:
            rows, seconds = kept_numbers(case, old, asked)
            if new is not None:
                other, taken = numbers(case, new, CACHE / "tree", asked)
                found = compared(case, rows, other, tolerance)
                yield replace(found, seconds={"old": seconds, "new": taken})
        except FailedRun as error:
            yield Comparison(case, error=str(error))


def show_numbers(results: list[Comparison], dtype: str, tolerance: float, console: Console) -> None:
    """One table, a row a case and column, and what only one side has."""
    table = Table(title=f"New against old, {dtype}: the largest differences, and how many values differ", title_justify="left")
    for heading in ("case", "rows", "column", "values", "absolute", "relative", f"> {tolerance:g}", "choices"):
        table.add_column(heading, justify="left" if heading in ("case", "column") else "right")
    for one in results:
        for place, column in enumerate(one.columns):
            head = (one.case, str(one.rows)) if place == 0 else ("", "")
            figures = (f"{column.absolute:.2g}", f"{column.relative:.2g}", str(column.above), str(column.choices_changed))
            cells = (*head, column.column, str(column.values), *figures)
            table.add_row(*cells, style="red" if column.above else "", end_section=place == len(one.columns) - 1)
    if table.row_count:
        console.print(table)
    for one in results:
        if one.error:
            console.print(f"{one.case}: FAILED: {one.error}", style="red", highlight=False, markup=False)
        for column in one.columns:
            if column.above:
                console.print(f"{one.case}: {column.column} differs most at {column.worst}", highlight=False, markup=False)
        for name, rows in (("old", one.only_old), ("new", one.only_new)):
            if rows:
                more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
                console.print(f"{one.case}: only in the {name} one: {'; '.join(rows[:NAMED])}{more}", highlight=False)
        if one.seconds:
            taken = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in one.seconds.items())
            console.print(f"{one.case}: {'the same' if one.same else 'NOT the same'} ({taken})", highlight=False)


# Speed


@dataclass
class Timing:
    """One measurement of two things in alternation, such as the old and the new package."""

    case: str
    unit: str
    labels: tuple[str, str] = ("old", "new")
    values: dict[str, list[float]] = field(default_factory=dict)
    error: str = ""

    def add(self, label: str, value: float) -> None:
        """Note one run."""
        log.print(f"{self.case}: {label} {value:.4g} {self.unit}")
        self.values.setdefault(label, []).append(value)

    def median(self, label: str) -> float | None:
        """The middle of what was measured; None if nothing was."""
        return statistics.median(self.values[label]) if label in self.values else None

    @property
    def ratio(self) -> float | None:
        """The second median over the first."""
        first, second = (self.median(label) for label in self.labels)
        return second / first if first and second else None

    @property
    def ratio_range(self) -> tuple[float, float] | None:
        """The least and the largest ratio of two runs that followed each other."""
        first, second = (self.values.get(label, []) for label in self.labels)
        ratios = [two / one for one, two in zip(first, second, strict=False)]
        return (min(ratios), max(ratios)) if ratios else None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        medians = {label: self.median(label) for label in self.values}
        return asdict(self) | {"medians": medians, "ratio": self.ratio, "ratio_range": self.ratio_range}


def in_turn(runs: int, things: Sequence[Thing]) -> Iterator[Thing]:
    """Each thing so many times, in alternation; every other round backwards, so that a drift of the machine cancels."""
    for number in range(runs):
        yield from things if number % 2 == 0 else reversed(things)


def time_sides(timing: Timing, sides: list[Side], runs: int, measured: Callable[[Side], float], warm: bool = False) -> Timing:
    """Measure the old and the new package in alternation, after a run of each that does not count if ``warm``."""
    try:
        for side in sides if warm else ():
            measured(side)
        for side in in_turn(runs, sides):
            timing.add(side.name, measured(side))
    except FailedRun as error:
        timing.error = str(error)
    return timing


def time_sizes(new: Side, runs: int, dtype: str) -> Iterator[Timing]:
    """Clients of 150 sizes against as many of one size, with compiled programs on disk and without."""

    def once(kind: str, programs: Path | None) -> float:
        options = ("--dtype", dtype, *(["--distinct"] if kind == "distinct" else []))
        return float(new.case("sizes", *options, threads=True, programs=programs)["value"])

    kinds = ("equal", "distinct")
    for empty in (True, False):
        timing = Timing(f"sizes, {'no' if empty else 'all'} programs on disk", "s", kinds)
        try:
            for kind in () if empty else kinds:
                once(kind, None)
            for kind in in_turn(min(runs, SIZES_RUNS), kinds):
                with tempfile.TemporaryDirectory() as nothing:
                    timing.add(kind, once(kind, Path(nothing) if empty else None))
        except FailedRun as error:
            timing.error = str(error)
        yield timing


def time_all(cases: list[str], old: Side, new: Side | None, asked: Asked, runs: int) -> Iterator[Timing]:
    """Every measurement that is asked for; the study's and the sizes' seconds begin before dffl is imported."""
    sides = [old] if new is None else [old, new]
    study = ("--dtype", asked.dtype, "--plan", str(asked.plan), "--configurations", str(STUDIED))
    if "step" in cases:
        yield time_sides(Timing("step knapsack", "ms"), sides, runs, lambda side: side.measure("step", "knapsack"))
    if "rounds" in cases:
        yield time_sides(Timing("rounds, 20 clients", "rounds/s"), sides, runs, lambda side: side.measure("rounds", "20"))
    if "study" in cases:
        timing = Timing(f"quick study, {STUDIED} configurations", "s")
        yield time_sides(timing, sides, runs, lambda side: float(side.case("quick", *study)["value"]), warm=True)
    if "sizes" in cases and new is not None:
        yield from time_sizes(new, runs, asked.dtype)


def show_speed(results: list[Timing], console: Console) -> None:
    """One table: medians with their ranges, and the ratio with the range over pairs of runs."""
    table = Table(title="Medians (least to largest)", title_justify="left")
    for heading in ("case", "unit", "first", "second", "second / first", "runs"):
        table.add_column(heading, justify="left" if heading in ("case", "unit") else "right")
    for one in results:
        cells = []
        for label in one.labels:
            values, middle = one.values.get(label, []), one.median(label)
            cells.append("-" if middle is None else f"{label} {middle:.4g} ({min(values):.4g} to {max(values):.4g})")
        span = one.ratio_range
        ratio = "-" if one.ratio is None or span is None else f"{one.ratio:.3f} ({span[0]:.3f} to {span[1]:.3f})"
        runs = min((len(values) for values in one.values.values()), default=0)
        table.add_row(one.case, one.unit, *cells, one.error or ratio, str(runs), style="red" if one.error else "")
    console.print(table)


# The command


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=BASE, metavar="COMMIT", help="the older commit (default: %(default).8s)")
    parser.add_argument("--tree", type=Path, default=ROOT / "src", help="the folder of the newer dffl (default: src)")
    parser.add_argument("--only", action="append", choices=(*NUMBERS, *SPEEDS), help="a case; may be repeated")
    parser.add_argument("--speed", action="store_true", help="measure speed instead of comparing numbers")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="default: float64, and float32 for speed")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="of max(1, |value|) (default: %(default)g)")
    parser.add_argument("--configurations", type=int, metavar="N", help="of the quick study: the first N of a fixed order")
    parser.add_argument("--energy-data", type=Path, metavar="FOLDER", help=f"prices and weather (default: ${ENERGY_DATA})")
    parser.add_argument("--seeds", type=int, default=1, help="energy: how many seeds (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="speed: runs of each side (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="compute the old numbers anew")
    parser.add_argument("--baseline-only", action="store_true", help="make and keep the old numbers, or time the old alone")
    parser.add_argument("--json", action="store_true", help="print for programs")
    options = parser.parse_args(arguments)
    allowed = SPEEDS if options.speed else NUMBERS
    options.only = options.only or list(allowed)
    if wrong := [case for case in options.only if case not in allowed]:
        parser.error(f"{wrong[0]} is a case of {'numbers, without' if options.speed else 'speed, with'} --speed")
    for name in ("seeds", "runs", "configurations"):
        if (count := getattr(options, name)) is not None and count < 1:
            parser.error(f"--{name} must be at least 1, found {count}")
    if options.energy_data is None and os.environ.get(ENERGY_DATA):
        options.energy_data = Path(os.environ[ENERGY_DATA])
    if options.energy_data is not None and not options.energy_data.is_dir():
        parser.error(f"--energy-data must be a folder, found {options.energy_data}")
    if not (options.tree / "dffl").is_dir():
        parser.error(f"--tree must be a folder with a package dffl, found {options.tree}")
    options.dtype = options.dtype or ("float32" if options.speed else "float64")
    return options


def asked_of(options: argparse.Namespace, old: Side) -> Asked:
    """What is asked, with the configurations that the baseline has."""
    plan = old.package.parent / "plan.json"
    if not plan.is_file():
        old.case("plan", "--out", str(plan))
    known = len(json.loads(plan.read_text())["jobs"])
    wanted = min(options.configurations or known, known)
    data = options.energy_data.resolve() if options.energy_data else None
    return Asked(options.dtype, plan, wanted, data, options.seeds, options.fresh)


def main() -> int:
    """Compare, or measure, and say how it went by the exit code."""
    options = options_of()
    try:
        old = built(options.base)
        new = None if options.baseline_only else Side("new", options.tree.resolve(), CACHE / "tree" / "programs")
        for side in (old, new):
            if side is not None:
                log.print(f"{side.name}: {side.check()}")
        asked = asked_of(options, old)
    except FailedRun as error:
        log.print(str(error), style="red")
        return 2
    console = Console()
    console.width = max(console.width, WIDTH)
    if options.speed:
        timings = list(time_all(options.only, old, new, asked, options.runs))
        if options.json:
            print(json.dumps({"speed": [one.as_json() for one in timings]}))
        else:
            show_speed(timings, console)
        return 2 if any(one.error for one in timings) else 0
    results = list(compare_numbers(options.only, old, new, asked, options.tolerance))
    if options.json:
        plain = [one.as_json() for one in results]
        print(json.dumps({"dtype": asked.dtype, "tolerance": options.tolerance, "numbers": plain}))
    elif results:
        show_numbers(results, asked.dtype, options.tolerance, console)
    if any(one.error for one in results):
        return 2
    return int(asked.dtype == "float64" and not all(one.same for one in results))


if __name__ == "__main__":
    sys.exit(main())
